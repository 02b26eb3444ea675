package agent

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// The kubelet would kill the container while memcached loads or saves its items.
func TestHealthIgnoresAMemcachedThatStartsOrStops(t *testing.T) {
	for _, phase := range []wire.Phase{wire.PhaseStarting, wire.PhaseRestarting, wire.PhaseStopping} {
		if err := checkHealth(t.Context(), &state{status: wire.Status{Phase: phase}, superseded: make(chan struct{})}); err != nil {
			t.Errorf("%s: %v", phase, err)
		}
	}
}

// Otherwise the kubelet's probes wait behind all of them.
func TestFewRequestsForTheStatusWaitForStatistics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		defer close(hung)
		c := process.NewClient(protocol.Server{Address: "127.0.0.1:1", DialContext: func(context.Context, string, string) (net.Conn, error) {
			<-hung
			return nil, net.ErrClosed
		}})
		var states atomic.Pointer[state]
		states.Store(&state{status: wire.Status{Phase: wire.PhaseServing, PodUID: "pod"}, client: c})
		h := handler(&states)
		get := func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, wire.StatusPath, http.NoBody))
		}
		var requests sync.WaitGroup
		for range maxStatsWaiters {
			requests.Go(get)
		}
		synctest.Wait()
		began := time.Now()
		get()
		if took := time.Since(began); took != 0 {
			t.Errorf("one request more waited for %s", took)
		}
		requests.Wait()
		if took := time.Since(began); took != statsTimeout {
			t.Errorf("the others waited for %s", took)
		}
	})
}

// The kubelet would kill a container that waits for a slow node or for a Secret.
func TestHealthAnswersBeforeTheFirstStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		h := awaitStart(started, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
		answers := map[string]*httptest.ResponseRecorder{"/healthz": httptest.NewRecorder(), "/readyz": httptest.NewRecorder(), "/status": httptest.NewRecorder()}
		var requests sync.WaitGroup
		for path, w := range answers {
			requests.Go(func() {
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
			})
		}
		synctest.Wait()
		if health, ready := answers["/healthz"], answers["/readyz"]; health.Body.String() != "ok\n" || ready.Code != http.StatusOK || ready.Body.Len() != 0 {
			t.Errorf("before the start: /healthz %d %s, /readyz %d", health.Code, health.Body, ready.Code)
		}
		close(started)
		requests.Wait()
		if ready, status := answers["/readyz"].Code, answers["/status"].Code; ready != http.StatusTeapot || status != http.StatusTeapot {
			t.Errorf("after the start: /readyz %d, /status %d", ready, status)
		}
	})
}

// get returns the answer of the agent's server to a request.
func (p *pod) get(path string) (int, string) {
	w := httptest.NewRecorder()
	handler(p.states).ServeHTTP(w, httptest.NewRequestWithContext(p.t.Context(), http.MethodGet, path, http.NoBody))
	return w.Code, w.Body.String()
}

func TestUnansweredProbesFailReadinessSoonAndLivenessLater(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.run()
		p.memcached.latest().add(7)
		if code, body := p.get(wire.StatusPath); code != http.StatusOK || !strings.Contains(body, `"items":7`) {
			t.Errorf("/status: %d %s", code, body)
		}
		resume := p.memcached.latest().hang()
		for path, within := range map[string]time.Duration{"/readyz": servingTimeout, "/healthz": healthTimeout} {
			began := time.Now()
			if code, body := p.get(path); code != http.StatusServiceUnavailable || time.Since(began) != within {
				t.Errorf("%s: %d %s after %s", path, code, body, time.Since(began))
			}
		}
		if code, body := p.get(wire.StatusPath); code != http.StatusOK || !strings.Contains(body, `"items":0,"bytes"`) {
			t.Errorf("/status: %d %s", code, body)
		}
		resume()
		p.pass(time.Second)
		for _, path := range []string{"/readyz", "/healthz"} {
			if code, body := p.get(path); code != http.StatusOK {
				t.Errorf("%s after it continues: %d %s", path, code, body)
			}
		}
		p.finish()
	})
}

func TestStatusCountsTheLookupsOfTheLastMinute(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.run()
		memcached := p.memcached.latest()
		memcached.change(func() { memcached.lookups = 30 })
		if _, body := p.get(wire.StatusPath); !strings.Contains(body, `"recentGets":30`) {
			t.Errorf("right after them: %s", body)
		}
		p.pass(2 * time.Minute)
		if _, body := p.get(wire.StatusPath); !strings.Contains(body, `"recentGets":0`) || !strings.Contains(body, `"gets":30`) {
			t.Errorf("later: %s", body)
		}
		p.finish()
	})
}

func TestMetricsOfAMemcachedThatHangs(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.run()
		c := newCollector(p.states, p.history)
		scrape := func() string {
			t.Helper()
			text, err := c.answer(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if text := scrape(); !strings.Contains(text, "\nmemcached_up 1\n") {
			t.Errorf("while it serves:\n%s", text)
		}
		resume := p.memcached.latest().hang()
		p.pass(10*time.Second + metricsAge)
		if text := scrape(); !strings.Contains(text, "\nmemcached_up 0\n") {
			t.Errorf("while it hangs:\n%s", text)
		}
		resume()
		p.pass(10*time.Second + metricsAge)
		if text := scrape(); !strings.Contains(text, "\nmemcached_up 1\n") {
			t.Errorf("when it continues:\n%s", text)
		}
		if r, _ := p.history.Snapshot(); r.UnavailableSeconds < 1 || r.UnavailableSeconds > 12 {
			t.Errorf("unavailable for %v s", r.UnavailableSeconds)
		}
		p.finish()
	})
}

// At the end of a handover no pod of the shard serves, so that the kubelet's next probe would
// come late.
func TestProbeWaitsForTheEndOfAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states atomic.Pointer[state]
		states.Store(&state{status: wire.Status{Phase: wire.PhaseReceiving}, superseded: make(chan struct{})})
		began := time.Now()
		err := checkReadiness(t.Context(), &states)
		if took := time.Since(began); err == nil || took < time.Second || 2*time.Second <= took {
			t.Errorf("it answered %v after %s, want longer than the probes' period and shorter than their timeout", err, took)
		}
		go func() {
			<-time.After(time.Second)
			first := states.Swap(&state{status: wire.Status{Phase: wire.PhaseStopping}, superseded: make(chan struct{})})
			close(first.superseded)
		}()
		began = time.Now()
		err = checkReadiness(t.Context(), &states)
		if took := time.Since(began); took != time.Second || err == nil || !strings.Contains(err.Error(), "Stopping") {
			t.Errorf("it answered %v after %s, want the next state at once", err, took)
		}
	})
}

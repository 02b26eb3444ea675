package serve

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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
		if err := checkHealth(t.Context(), &State{Status: wire.Status{Phase: phase}, Superseded: make(chan struct{})}); err != nil {
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
		var states States
		states.Store(&State{Status: wire.Status{Phase: wire.PhaseServing, PodUID: "pod"}, Client: c})
		h := StatusHandler(&states)
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

// At the end of a handover no pod of the shard serves, so that the kubelet's next probe would
// come late.
func TestProbeWaitsForTheEndOfAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states States
		states.Store(&State{Status: wire.Status{Phase: wire.PhaseReceiving}, Superseded: make(chan struct{})})
		began := time.Now()
		err := checkReadiness(t.Context(), &states)
		if took := time.Since(began); err == nil || took < time.Second || 2*time.Second <= took {
			t.Errorf("it answered %v after %s, want longer than the probes' period and shorter than their timeout", err, took)
		}
		go func() {
			<-time.After(time.Second)
			first := states.Swap(&State{Status: wire.Status{Phase: wire.PhaseStopping}, Superseded: make(chan struct{})})
			close(first.Superseded)
		}()
		began = time.Now()
		err = checkReadiness(t.Context(), &states)
		if took := time.Since(began); took != time.Second || err == nil || !strings.Contains(err.Error(), "Stopping") {
			t.Errorf("it answered %v after %s, want the next state at once", err, took)
		}
	})
}

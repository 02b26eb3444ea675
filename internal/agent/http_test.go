package agent

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/serve"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// get returns the answer of the agent's server to a request.
func (p *pod) get(path string) (int, string) {
	w := httptest.NewRecorder()
	serve.StatusHandler(p.states).ServeHTTP(w, httptest.NewRequestWithContext(p.t.Context(), http.MethodGet, path, http.NoBody))
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
		for path, within := range map[string]time.Duration{"/readyz": 3 * time.Second, "/healthz": 4 * time.Second} {
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
		memcached.server.Lookups.Store(30)
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
		h := serve.MetricsHandler(p.states, p.history)
		scrape := func() string {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics?slabs", http.NoBody))
			return w.Body.String()
		}
		if text := scrape(); !strings.Contains(text, "\nmemcached_up 1\n") {
			t.Errorf("while it serves:\n%s", text)
		}
		resume := p.memcached.latest().hang()
		p.pass(11 * time.Second)
		if text := scrape(); !strings.Contains(text, "\nmemcached_up 0\n") {
			t.Errorf("while it hangs:\n%s", text)
		}
		resume()
		p.pass(11 * time.Second)
		if text := scrape(); !strings.Contains(text, "\nmemcached_up 1\n") {
			t.Errorf("when it continues:\n%s", text)
		}
		if r, _ := p.history.Snapshot(); r.UnavailableSeconds < 1 || r.UnavailableSeconds > 12 {
			t.Errorf("unavailable for %v s", r.UnavailableSeconds)
		}
		p.finish()
	})
}

package process

import (
	"net/http"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// delayReadiness delays readiness until a time; the zero time is no delay.
func delayReadiness(s *pods.Shard, at time.Time) {
	s.T.Helper()
	text := ""
	if !at.IsZero() {
		text = at.UTC().Format(time.RFC3339)
	}
	s.Annotate(agentwire.HoldFile, text)
}

// wantReady checks the probes: a delayed shard is healthy and not ready.
func wantReady(s *pods.Shard, want bool) {
	s.T.Helper()
	s.WaitForProbe("/healthz")
	if want {
		s.WaitForProbe("/readyz")
		return
	}
	code, body, err := s.Get("/readyz")
	if err != nil || code == http.StatusOK {
		s.T.Errorf("/readyz: %d %s, %v; want not ready", code, body, err)
	}
	pods.WantContains(s.T, "/readyz", string(body), "is being filled until ")
}

func released(s *pods.Shard) agentwire.Status {
	s.T.Helper()
	return s.WaitFor("the end of the delay", func(status agentwire.Status) bool { return status.HoldUntil.IsZero() })
}

func TestShardWithDelayedReadinessStoresItems(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	delayReadiness(s, until)
	if status := s.Run(); !status.HoldUntil.Equal(until) {
		t.Errorf("delayed until %s, want %s", status.HoldUntil, until)
	}
	wantReady(s, false)
	pods.Fill(t, s.Address(), 100)

	delayReadiness(s, time.Time{})
	released(s)
	wantReady(s, true)
	if n := pods.Count(t, s.Address(), 100); n != 100 {
		t.Errorf("%d of 100 items are there", n)
	}

	// A delay that appears now would take the shard away from its clients.
	delayReadiness(s, until)
	s.Announce("seen") // the agent has read all files
	wantReady(s, true)
}

package process

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// delayReadiness delays readiness until a time; the zero time is no delay.
func (s *shard) delayReadiness(at time.Time) {
	s.t.Helper()
	text := ""
	if !at.IsZero() {
		text = at.UTC().Format(time.RFC3339)
	}
	s.annotate(agentwire.HoldFile, text)
}

// wantReady checks the probes: a delayed shard is healthy and not ready.
func (s *shard) wantReady(want bool) {
	s.t.Helper()
	if code, body, err := s.get("/healthz"); err != nil || code != http.StatusOK {
		s.t.Errorf("/healthz: %d %s, %v", code, body, err)
	}
	code, body, err := s.get("/readyz")
	if err != nil || (code == http.StatusOK) != want {
		s.t.Errorf("/readyz: %d %s, %v; want ready %t", code, body, err, want)
	}
	if !want {
		wantContains(s.t, "/readyz", string(body), "is being filled until ")
	}
}

func (s *shard) released() agentwire.Status {
	s.t.Helper()
	return s.waitFor("the end of the delay", func(status agentwire.Status) bool { return status.HoldUntil.IsZero() })
}

func TestShardWithDelayedReadinessStoresItems(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	s.delayReadiness(until)
	if status := s.run(); !status.HoldUntil.Equal(until) {
		t.Errorf("delayed until %s, want %s", status.HoldUntil, until)
	}
	s.wantReady(false)
	fill(t, s.address(), 100)

	s.delayReadiness(time.Time{})
	s.released()
	s.wantReady(true)
	if n := count(t, s.address(), 100); n != 100 {
		t.Errorf("%d of 100 items are there", n)
	}

	// A delay that appears now would take the shard away from its clients.
	s.delayReadiness(until)
	s.announce("seen") // the agent has read all files
	s.wantReady(true)
}

func TestReadinessDelayEndsAtItsTimeWithoutTheOperator(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	until := time.Now().Add(10 * time.Second).Truncate(time.Second) // longer than a start takes on a busy machine
	s.delayReadiness(until)
	s.run()
	s.wantReady(false)
	s.released()
	if early := time.Until(until); early > 0 {
		t.Errorf("the delay was %s too short", early)
	}
	s.wantReady(true)
}

func TestReadinessDelayContinuesInTheNextContainer(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	until := time.Now().Add(20 * time.Second).Truncate(time.Second)
	s.delayReadiness(until)
	s.run()
	fill(t, s.address(), 100)
	s.stopContainer()
	wantWarm(t, s.run(), 100)
	s.wantReady(false)
	s.released()
	if early := time.Until(until); early > 0 {
		t.Errorf("the delay was %s too short", early)
	}
	s.stopContainer()
	wantWarm(t, s.run(), 100)
	s.wantReady(true) // the time has passed
}

func TestReadinessDelayContinuesAfterARestartInPlace(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.delayReadiness(time.Now().Add(time.Hour))
	s.run()
	s.annotate(agentwire.RestartFile, "now")
	s.waitFor("the restart", func(status agentwire.Status) bool {
		return status.Restart == "now" && status.Phase == agentwire.PhaseServing
	})
	s.wantReady(false)
}

// No client is connected, so none has to move to another pod.
func TestDeletedPodDoesNotDrainDuringAReadinessDelay(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.service = s.agentAddress() // only this pod is behind it
	s.delayReadiness(time.Now().Add(time.Hour))
	s.run()
	s.signal(syscall.SIGTERM)
	if status := s.exitWithoutDrain(); status != 0 {
		t.Errorf("exit code %d", status)
	}
}

func TestInvalidReadinessDelayHasNoEffect(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.annotate(agentwire.HoldFile, "until it is warm")
	if status := s.run(); !status.HoldUntil.IsZero() {
		t.Errorf("delayed until %s", status.HoldUntil)
	}
	s.wantReady(true)
}

package process

import (
	"net/http"
	"syscall"
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
	if code, body, err := s.Get("/healthz"); err != nil || code != http.StatusOK {
		s.T.Errorf("/healthz: %d %s, %v", code, body, err)
	}
	code, body, err := s.Get("/readyz")
	if err != nil || (code == http.StatusOK) != want {
		s.T.Errorf("/readyz: %d %s, %v; want ready %t", code, body, err, want)
	}
	if !want {
		pods.WantContains(s.T, "/readyz", string(body), "is being filled until ")
	}
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

func TestReadinessDelayEndsAtItsTimeWithoutTheOperator(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	until := time.Now().Add(10 * time.Second).Truncate(time.Second) // longer than a start takes on a busy machine
	delayReadiness(s, until)
	s.Run()
	wantReady(s, false)
	released(s)
	if early := time.Until(until); early > 0 {
		t.Errorf("the delay was %s too short", early)
	}
	wantReady(s, true)
}

func TestReadinessDelayContinuesInTheNextContainer(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	until := time.Now().Add(20 * time.Second).Truncate(time.Second)
	delayReadiness(s, until)
	s.Run()
	pods.Fill(t, s.Address(), 100)
	s.StopContainer()
	pods.WantWarm(t, s.Run(), 100)
	wantReady(s, false)
	released(s)
	if early := time.Until(until); early > 0 {
		t.Errorf("the delay was %s too short", early)
	}
	s.StopContainer()
	pods.WantWarm(t, s.Run(), 100)
	wantReady(s, true) // the time has passed
}

func TestReadinessDelayContinuesAfterARestartInPlace(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	delayReadiness(s, time.Now().Add(time.Hour))
	s.Run()
	s.Annotate(agentwire.RestartFile, "now")
	s.WaitFor("the restart", func(status agentwire.Status) bool {
		return status.Restart == "now" && status.Phase == agentwire.PhaseServing
	})
	wantReady(s, false)
}

// No client is connected, so none has to move to another pod.
func TestDeletedPodDoesNotDrainDuringAReadinessDelay(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Service = s.AgentAddress() // only this pod is behind it
	delayReadiness(s, time.Now().Add(time.Hour))
	s.Run()
	s.Signal(syscall.SIGTERM)
	if status := s.Exit(); status != 0 {
		t.Errorf("exit code %d", status)
	}
}

func TestInvalidReadinessDelayHasNoEffect(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Annotate(agentwire.HoldFile, "until it is warm")
	if status := s.Run(); !status.HoldUntil.IsZero() {
		t.Errorf("delayed until %s", status.HoldUntil)
	}
	wantReady(s, true)
}

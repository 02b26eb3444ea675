package process

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// holdUntil has the shard held until a time; the zero time is no hold.
func (s *shard) holdUntil(at time.Time) {
	s.t.Helper()
	text := ""
	if !at.IsZero() {
		text = at.UTC().Format(time.RFC3339)
	}
	s.annotate(agentapi.HoldFile, text)
}

// wantReady checks what the kubelet is told: a held shard is alive and not ready.
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

func (s *shard) released() agentapi.Status {
	s.t.Helper()
	return s.waitFor("the end of the hold", func(status agentapi.Status) bool { return status.HoldUntil.IsZero() })
}

func TestAHeldShardTakesItemsAndIsNotReadyUntilItIsReleased(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	s.holdUntil(until)
	if status := s.run(); !status.HoldUntil.Equal(until) {
		t.Errorf("it tells of a hold until %s, want %s", status.HoldUntil, until)
	}
	s.wantReady(false)
	fill(t, s.address(), 100)

	s.holdUntil(time.Time{})
	s.released()
	s.wantReady(true)
	if n := count(t, s.address(), 100); n != 100 {
		t.Errorf("%d of 100 items are there", n)
	}

	// A hold that comes now would take the shard away from its clients.
	s.holdUntil(until)
	s.announce("seen") // so have all files been read
	s.wantReady(true)
}

func TestAHoldEndsAtItsTimeWithoutTheOperator(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	until := time.Now().Add(4 * time.Second).Truncate(time.Second)
	s.holdUntil(until)
	s.run()
	s.wantReady(false)
	s.released()
	if early := time.Until(until); early > 0 {
		t.Errorf("it ended %s too early", early)
	}
	s.wantReady(true)
}

func TestAHeldShardIsHeldOnInItsNextContainerUntilThatTime(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	until := time.Now().Add(8 * time.Second).Truncate(time.Second)
	s.holdUntil(until)
	s.run()
	fill(t, s.address(), 100)
	s.stopContainer()
	wantWarm(t, s.run(), 100)
	s.wantReady(false)
	s.released()
	if early := time.Until(until); early > 0 {
		t.Errorf("it ended %s too early", early)
	}
	s.stopContainer()
	wantWarm(t, s.run(), 100)
	s.wantReady(true) // the time is past
}

func TestAShardIsHeldOverARestartInPlace(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.holdUntil(time.Now().Add(time.Hour))
	s.run()
	s.annotate(agentapi.RestartFile, "now")
	s.waitFor("the restart", func(status agentapi.Status) bool {
		return status.Restart == "now" && status.Phase == agentapi.PhaseServing
	})
	s.wantReady(false)
}

// Nobody is led to it, so there is nobody to hand over to another pod.
func TestAHeldPodThatGoesDoesNotWaitForItsReplacement(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.service = s.agentAddress() // where only it answers
	s.holdUntil(time.Now().Add(time.Hour))
	s.run()
	s.signal(syscall.SIGTERM)
	if status := s.exit(10 * time.Second); status != 0 {
		t.Errorf("it ended with status %d", status)
	}
}

func TestWhatIsNoTimeHoldsNothing(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.annotate(agentapi.HoldFile, "until it is warm")
	if status := s.run(); !status.HoldUntil.IsZero() {
		t.Errorf("held until %s", status.HoldUntil)
	}
	s.wantReady(true)
}

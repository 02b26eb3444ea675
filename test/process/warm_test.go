package process

import (
	"fmt"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// The items stay over a restart of the container with the same version and over
// every change of it, upwards and downwards. One shard walks through all pairs.
func TestItemsStayOverARestartOfTheContainer(t *testing.T) {
	t.Parallel()
	const size = 100_000
	a, b, c := oldest, middle, newest
	walk := []string{a, a, b, b, c, c, a, c, b, a}

	s := newShard(t)
	s.memcached = memcachedPath(walk[0])
	if status := s.run(); status.Start.Result != agentapi.StartCold || status.Version != walk[0] {
		t.Fatalf("the first start: %+v", status)
	}
	fill(t, s.address(), size)
	for i, to := range walk[1:] {
		from := walk[i]
		t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
			before := count(t, s.address(), size)
			if before < size*9/10 {
				t.Fatalf("only %d items to begin with", before)
			}
			held := s.status().Items
			stopped := time.Now()
			s.stopContainer()
			s.memcached = memcachedPath(to)
			status := s.run()
			t.Logf("without answers for %s", time.Since(stopped).Round(time.Millisecond))
			wantWarm(t, status, held)
			if status.Version != to {
				t.Errorf("version %s, want %s", status.Version, to)
			}
			after := count(t, s.address(), size)
			t.Logf("%d of %d items kept", after, before)
			if after*100 < before*99 {
				t.Errorf("%d of %d items kept, want 99 %%", after, before)
			}
		})
	}
}

// A restart in place begins late in a second, so that memcached may start again
// at once, and the agent knocks, so that memcached stops at once.
func TestARestartInPlaceIsWarmAndShort(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			const size = 20_000
			s := newShard(t)
			s.memcached = memcachedPath(version)
			status := s.run()
			fill(t, s.address(), size)
			shortest := time.Hour
			for i := range 3 {
				value, former := fmt.Sprintf("restart %d", i), status.PID
				s.annotate(agentapi.RestartFile, value)
				status = s.waitFor("the restart", func(status agentapi.Status) bool { return status.Restart == value })
				if status.Phase != agentapi.PhaseServing || status.PID == former {
					t.Errorf("restart %q is told while process %d, of before it, is %s", value, former, status.Phase)
				}
				wantWarm(t, status, size)
				shortest = min(shortest, status.Start.At.Sub(s.lastStop()))
			}
			if n := count(t, s.address(), size); n < size*99/100 {
				t.Errorf("%d of %d items kept", n, size)
			}
			t.Logf("without answers for %s", shortest)
			if shortest > 600*time.Millisecond {
				t.Errorf("without answers for %s at least", shortest)
			}
			time.Sleep(600 * time.Millisecond)
			if again := s.status(); again.PID != status.PID {
				t.Error("it was restarted a second time for the same annotation")
			}
		})
	}
}

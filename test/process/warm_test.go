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
// at once.
func TestARestartInPlaceIsWarmAndShort(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.memcached = memcachedPath(version)
			first := s.run()
			fill(t, s.address(), 20_000)
			s.annotate(agentapi.RestartFile, "please")
			status := s.waitFor("the restart", func(status agentapi.Status) bool {
				return status.Phase == agentapi.PhaseServing && status.PID != first.PID
			})
			wantWarm(t, status, 20_000)
			if status.Restart != "please" {
				t.Errorf("restart %q", status.Restart)
			}
			if n := count(t, s.address(), 20_000); n < 19_800 {
				t.Errorf("%d of 20000 items kept", n)
			}
			time.Sleep(600 * time.Millisecond)
			if again := s.status(); again.PID != status.PID {
				t.Error("it was restarted a second time for the same annotation")
			}
		})
	}
}

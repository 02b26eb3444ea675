package process

import (
	"fmt"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// One shard visits all pairs of versions, upwards and downwards.
func TestItemsSurviveARestartOfTheContainer(t *testing.T) {
	t.Parallel()
	const size = 100_000
	a, b, c := oldest, middle, newest
	visits := []string{a, a, b, b, c, c, a, c, b, a}

	s := newShard(t)
	s.memcached = memcachedPath(visits[0])
	if status := s.run(); status.Start.Result != agentwire.StartCold || status.Version != visits[0] {
		t.Fatalf("the first start: %+v", status)
	}
	fill(t, s.address(), size)
	for i, to := range visits[1:] {
		from := visits[i]
		t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
			before := count(t, s.address(), size)
			if before < size*9/10 {
				t.Fatalf("only %d items to begin with", before)
			}
			items := s.status().Items
			stopped := time.Now()
			s.stopContainer()
			s.memcached = memcachedPath(to)
			status := s.run()
			t.Logf("unavailable for %s", time.Since(stopped).Round(time.Millisecond))
			wantWarm(t, status, items)
			if status.Version != to {
				t.Errorf("version %s, want %s", status.Version, to)
			}
			after := count(t, s.address(), size)
			t.Logf("%d of %d items kept", after, before)
			if after*100 < before*99 {
				t.Errorf("%d of %d items kept, want 99%%", after, before)
			}
		})
	}
}

// A restart in place begins late in a second, so that memcached can start again
// immediately, and the agent pokes memcached, so that it stops immediately.
func TestRestartInPlaceIsWarmAndShort(t *testing.T) {
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
				s.annotate(agentwire.RestartFile, value)
				status = s.waitFor("the restart", func(status agentwire.Status) bool { return status.Restart == value })
				if status.Phase != agentwire.PhaseServing || status.PID == former {
					t.Errorf("restart %q is reported while the former process %d is %s", value, former, status.Phase)
				}
				wantWarm(t, status, size)
				shortest = min(shortest, status.Start.At.Sub(s.lastStop()))
			}
			if n := count(t, s.address(), size); n < size*99/100 {
				t.Errorf("%d of %d items kept", n, size)
			}
			t.Logf("unavailable for %s", shortest)
			if shortest > 600*time.Millisecond {
				t.Errorf("unavailable for at least %s", shortest)
			}
			time.Sleep(600 * time.Millisecond)
			if again := s.status(); again.PID != status.PID {
				t.Error("it was restarted a second time for the same annotation")
			}
		})
	}
}

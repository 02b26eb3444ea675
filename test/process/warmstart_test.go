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
			const size, lateInSecond = 20_000, int(800 * time.Millisecond)
			s := newShard(t)
			s.memcached = memcachedPath(version)
			status := s.run()
			fill(t, s.address(), size)
			// How long a start takes on this machine now.
			start := time.Hour
			for range 3 {
				began := time.Now()
				startRaw(t, version, sharedDir(t))
				start = min(start, time.Since(began))
			}
			limit := 600*time.Millisecond + start
			// A busy machine can delay some of the restarts.
			shortest, latest := time.Hour, 0
			for i := 0; i < 3 || i < 10 && (shortest > limit || latest < lateInSecond); i++ {
				value, former := fmt.Sprintf("restart %d", i), status.PID
				nextSecond(time.Now().Unix())
				s.annotate(agentwire.RestartFile, value)
				status = s.waitFor("the restart", func(status agentwire.Status) bool { return status.Restart == value })
				if status.Phase != agentwire.PhaseServing || status.PID == former {
					t.Errorf("restart %q is reported while the former process %d is %s", value, former, status.Phase)
				}
				wantWarm(t, status, size)
				shortest = min(shortest, status.Start.At.Sub(s.lastStop()))
				latest = max(latest, s.lastStop().Nanosecond())
			}
			if n := count(t, s.address(), size); n < size*99/100 {
				t.Errorf("%d of %d items kept", n, size)
			}
			t.Logf("unavailable for %s of %s", shortest, limit)
			if shortest > limit {
				t.Errorf("unavailable for at least %s, want at most %s", shortest, limit)
			}
			if latest < lateInSecond {
				t.Errorf("no restart began later in its second than after %s", time.Duration(latest))
			}
			time.Sleep(600 * time.Millisecond)
			if again := s.status(); again.PID != status.PID {
				t.Error("it was restarted a second time for the same annotation")
			}
		})
	}
}

package process

import (
	"strings"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/memcacheclient"
)

// wantRecent checks the gets and hits of a status, all of which are recent.
func wantRecent(t *testing.T, when string, status agentwire.Status, gets, hits int64) {
	t.Helper()
	if status.RecentGets != gets || status.RecentHits != hits || status.Gets != gets || status.Hits != hits {
		t.Errorf("%s: %d gets and %d hits, and %d and %d since the start; want %d and %d", when, status.RecentGets, status.RecentHits, status.Gets, status.Hits, gets, hits)
	}
}

func TestStatusReportsRecentGetsAndHits(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.memcached = memcachedPath(version)
			wantRecent(t, "at first", s.run(), 0, 0)
			fill(t, s.address(), 100)
			wantRecent(t, "after writes alone", s.status(), 0, 0)
			count(t, s.address(), 150)
			wantRecent(t, "after 100 hits and 50 misses", s.status(), 150, 100)

			conn, err := memcacheclient.Dial(t.Context(), s.address())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// memcached counts the first of them as a touch and the second as a get.
			for _, key := range []string{"item-1", "nothing"} {
				if _, err := conn.Get(t.Context(), key, " T100"); err != nil {
					t.Fatal(err)
				}
			}
			wantRecent(t, "after gets that touch", s.status(), 152, 101)

			s.annotate(agentwire.RestartFile, "once")
			status := s.waitFor("the restart", func(status agentwire.Status) bool { return status.Restart == "once" })
			wantWarm(t, status, 100)
			wantRecent(t, "after a restart in place", status, 0, 0)
			count(t, s.address(), 100)
			wantRecent(t, "after that", s.status(), 100, 100)

			s.stopContainer()
			wantRecent(t, "after a restart of the container", s.run(), 0, 0)
			count(t, s.address(), 120)
			wantRecent(t, "after that", s.status(), 120, 100)
		})
	}
}

// The period is 10 s. The test measures it, since a busy machine sleeps longer than requested.
func TestAgentSamplesLookupsPeriodically(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.annotate(agentwire.ArgumentsFile, s.arguments("-vv"))
	s.run()
	queries := func() int { return strings.Count(s.log.String(), ` stats" source=memcached`) }
	next := func(seen int) time.Time {
		for deadline := time.Now().Add(patience); queries() <= seen; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no query after %d", seen)
			}
		}
		return time.Now()
	}
	next(0)
	time.Sleep(time.Second) // until memcached has logged those of the start
	began := next(queries())
	const periods = 2
	before := queries()
	for i := range periods {
		next(before + i)
	}
	if took := time.Since(began); took < periods*10*time.Second*3/4 {
		t.Errorf("%d queries within %s, want one each 10 s", periods, took)
	}
}

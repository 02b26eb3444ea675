package process

import (
	"strings"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/memcacheclient"
)

// wantRecent checks the recent gets and hits of a status.
func wantRecent(t *testing.T, when string, status agentwire.Status, gets, hits int64) {
	t.Helper()
	if status.RecentGets != gets || status.RecentHits != hits {
		t.Errorf("%s: %d gets and %d hits, want %d and %d", when, status.RecentGets, status.RecentHits, gets, hits)
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

func TestAgentSamplesLookupsPeriodically(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.annotate(agentwire.ArgumentsFile, s.arguments("-vv"))
	s.run()
	time.Sleep(time.Second) // until memcached has logged the start
	queries := func() int { return strings.Count(s.log.String(), " stats\n") }
	before := queries()
	if before == 0 {
		t.Fatal("memcached does not log queries")
	}
	time.Sleep(13 * time.Second)
	if n := queries() - before; n != 1 {
		t.Errorf("%d queries within 14 s, want one", n)
	}
}

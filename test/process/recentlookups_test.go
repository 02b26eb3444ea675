package process

import (
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/memcacheclient"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
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
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			s.Memcached = pods.MemcachedPath(version)
			wantRecent(t, "at first", s.Run(), 0, 0)
			pods.Fill(t, s.Address(), 100)
			wantRecent(t, "after writes alone", s.Status(), 0, 0)
			pods.Count(t, s.Address(), 150)
			wantRecent(t, "after 100 hits and 50 misses", s.Status(), 150, 100)

			conn, err := memcacheclient.Dial(t.Context(), s.Address())
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
			wantRecent(t, "after gets that touch", s.Status(), 152, 101)
		})
	}
}

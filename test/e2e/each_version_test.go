package e2e

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// Two upgrades, and a downgrade to the first version, which the kubelet delays as that of a container that crashed: the pod
// had its image a moment ago. One shard holds a million items of 500 B, the other a few.
func TestVersionChangesKeepAMillionItems(t *testing.T) {
	const many, size, oneIn, few = 1_000_000, 500, 50, 20_000
	s := newSpace(t)
	order := []string{versions[0], versions[len(versions)/2], versions[len(versions)-1], versions[0]}
	spec := func(version string) v1beta1.MemcachedSpec {
		return suite.Small(2, suite.Memory("1Gi"), suite.Version(version))
	}
	s.Serve("cache", spec(order[0]))
	large := items.Sized("large", many, size, s.Address("cache", 0))
	t.Cleanup(func() { _ = large.Close() })
	began := time.Now()
	s.Must(large.Fill())
	sampled, err := large.Sample(oneIn)
	s.Must(err)
	others := s.Written("cache", 1, few)
	t.Logf("%d items written in %s", many, time.Since(began).Round(100*time.Millisecond))
	if held := s.count("cache", 0); held < many {
		t.Fatalf("%d of %d items fit", held, many)
	}

	for i, to := range order[1:] {
		from := order[i]
		held := []int64{s.count("cache", 0), s.count("cache", 1)}
		lives := s.Lives("cache")
		h := s.Follow("cache")
		s.readsUntilRestart("cache", 0, "large-0")
		began := time.Now()
		s.Apply("cache", spec(to))
		m := s.Updated("cache")
		took := time.Since(began)
		for ordinal, had := range held {
			shard := s.Shard(m, ordinal)
			now := s.count("cache", ordinal)
			t.Logf("%s → %s, shard %d: %d of %d items kept; %s in all for both shards", from, to, ordinal, now, had, took.Round(100*time.Millisecond))
			if now < had {
				t.Errorf("shard %d kept %d of %d items", ordinal, now, had)
			}
			if shard.Version != to || shard.StartResult != v1beta1.StartWarm || shard.Items < had || shard.ItemsBefore != had {
				t.Errorf("the shard's status is %+v", shard)
			}
		}
		now, err := large.Sample(oneIn)
		s.Must(err)
		if now < sampled {
			t.Errorf("%d of %d items of a sample are there", now, sampled)
		}
		sampled = now
		s.Restarted("cache", lives, map[string]int32{"cache-0": 1, "cache-1": 1})
		all := h.End()
		h.InTurn(all, "cache-0", "cache-1")
		for _, status := range all.Statuses() {
			if c := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionDegraded); c.Status == metav1.ConditionTrue {
				t.Errorf("it was Degraded: %s: %s", c.Reason, c.Message)
			}
		}
		s.Event("cache", v1beta1.EventShardKeptItems, "cache-0", fmt.Sprintf("with %d of %d items", s.Shard(m, 0).Items, held[0]))
		h.Says(all.Progress(), fmt.Sprintf("%s: shard 1 of 2: %s → %s", v1beta1.ReasonUpdatingShard, from, to))
		h.Says(all.Progress(), fmt.Sprintf("%s: shard 2 of 2: %s → %s; kept ", v1beta1.ReasonUpdatingShard, from, to), " of 1,000,000 items")
		s.Event("cache", v1beta1.EventUpdateStarted, from+" → "+to)
		s.Event("cache", v1beta1.EventUpdateFinished, "memcached:"+to, "kept", "items")
		s.NoPreflightPods()
		cost := m.Status.LastUpdate
		if cost == nil || cost.CompletionTime == nil || cost.Shards != 2 || cost.ItemsBefore != held[0]+held[1] || cost.Items < cost.ItemsBefore ||
			cost.MaxUnavailableMilliseconds <= 0 || cost.UnavailableMilliseconds <= cost.MaxUnavailableMilliseconds {
			t.Errorf("the update cost %+v", cost)
		}
		t.Logf("a shard is unavailable for %d ms on average, and at most for %d ms", cost.UnavailableMilliseconds/2, cost.MaxUnavailableMilliseconds)
	}
	s.Await("cache", "with its hit ratio back", func(m *v1beta1.Memcached) error {
		if cost := m.Status.LastUpdate; cost == nil || cost.HitRatioRecoveryTime == nil || cost.ExtraMisses == nil || *cost.ExtraMisses != 0 {
			return fmt.Errorf("the last update cost %+v", cost)
		}
		return nil
	})
	s.Holds(others)
	s.Holds(large)
}

// count returns how many items memcached says that a shard holds.
func (s *space) count(name string, ordinal int) int64 {
	s.Helper()
	connection, err := protocol.At(s.Address(name, ordinal)).Dial(s.Ctx)
	s.Must(err)
	defer connection.Close()
	general, err := connection.General(s.Ctx)
	s.Must(err)
	return general.Items
}

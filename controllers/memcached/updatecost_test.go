package memcached

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
)

// run reconciles and ticks for some seconds.
func (cluster *fakeCluster) run(seconds int) v1alpha1.MemcachedStatus {
	cluster.Helper()
	var m *v1alpha1.Memcached
	for range seconds {
		m = cluster.stepAll()
	}
	return m.Status
}

func TestCostOfAnUpdateIsInTheStatus(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 2, version: 1.6.38}")
	if cost := cluster.get("cache").Status.LastUpdate; cost != nil {
		t.Errorf("without an update: %+v", cost)
	}
	cluster.before = lookups{recentGets: 10_000, recentHits: 9000}
	cluster.after = lookups{5000, 4000, 5000, 4000} // 500 misses more each
	cluster.run(1)
	cluster.recorded()
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Version = "1.6.45" })
	began := cluster.clock.Now().Truncate(time.Second)
	cost := cluster.converge().Status.LastUpdate
	if cost == nil || cost.FinishedAt == nil || cost.StartedAt.Before(ptr.To(v1alpha1.Time(began))) || cost.FinishedAt.Before(&cost.StartedAt) {
		t.Fatalf("cost %+v", cost)
	}
	if cost.Shards != 2 || cost.Items != 2*(itemsPerShard-1) || cost.ItemsBefore != 2*itemsPerShard || cost.UnavailableMilliseconds != 800 || cost.MaxUnavailableMilliseconds != 400 {
		t.Errorf("cost %+v", cost)
	}
	if cost.ExtraMisses != nil || cost.HitRatioRecoveredAt != nil {
		t.Errorf("the hit ratio isn't back: %+v", cost)
	}
	events := cluster.recorded()
	if !slices.ContainsFunc(events, func(e string) bool {
		return strings.Contains(e, v1alpha1.EventUpdateFinished) && strings.Contains(e, "kept 99.9% of 2,000 items; unavailable for 800ms in total, for 400ms at most")
	}) {
		t.Errorf("events %q", events)
	}

	before := cluster.writes.Load()
	cluster.run(30)
	if n := cluster.writes.Load() - before; n != 0 {
		t.Errorf("%d writes while the hit ratio isn't back", n)
	}
	cluster.after = lookups{10_000, 8900, 20_000, 17_000}
	cost = cluster.run(2).LastUpdate
	if cost.ExtraMisses == nil || *cost.ExtraMisses != 2000 || cost.HitRatioRecoveredAt == nil {
		t.Errorf("the hit ratio is back: %+v", cost)
	}
	events = cluster.recorded()
	cluster.wantEvent(events, "the update caused 2,000 additional misses; the hit ratio recovered")

	cluster.change("cache", func(m *v1alpha1.Memcached) {
		m.Spec.PodMetadata = v1alpha1.PodMetadata{Labels: map[string]string{"team": "a"}}
	})
	if live := cluster.converge().Status.LastUpdate; live.Revision != cost.Revision || !live.FinishedAt.Equal(cost.FinishedAt) {
		t.Errorf("a change of labels cost %+v", live)
	}
}

func TestMissesOfAnUpdateAreReportedIfTheHitRatioIsNotBackInTime(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 1, handover: {mode: Disabled}}")
	cluster.before, cluster.after = lookups{10_000, 9000, 10_000, 9000}, lookups{10_000, 1000, 10_000, 1000}
	cluster.run(1)
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Memory = ptr.To(resource.MustParse("80Mi")) })
	cost := cluster.converge().Status.LastUpdate
	if cost == nil || cost.FinishedAt == nil || cost.Items != 0 || cost.ItemsBefore != itemsPerShard || cost.ExtraMisses != nil {
		t.Fatalf("cost %+v", cost)
	}
	cluster.clock.Step(29*time.Minute + 45*time.Second)
	cluster.recorded()
	cost = cluster.run(2).LastUpdate
	if cost.ExtraMisses == nil || *cost.ExtraMisses != 8000 || cost.HitRatioRecoveredAt != nil {
		t.Errorf("30 minutes later: %+v", cost)
	}
	cluster.wantEvent(cluster.recorded(), "the update caused 8,000 additional misses; the hit ratio had not recovered 30m after the update")
}

func TestMissesAreNotMeasuredWithoutEnoughLookups(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 1, version: 1.6.38}")
	cluster.before, cluster.after = lookups{recentGets: v1alpha1.DefaultHitRatioMinRequests - 1, recentHits: 900}, lookups{10_000, 9999, 10_000, 9999}
	cluster.run(1)
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Version = "1.6.45" })
	cluster.converge()
	if cost := cluster.run(2).LastUpdate; cost.FinishedAt == nil || cost.ExtraMisses != nil {
		t.Errorf("cost %+v", cost)
	}
	// Agents of release 1.0.0 don't count since the start.
	cluster.after = lookups{recentGets: 10_000, recentHits: 9999}
	cluster.before = cluster.after
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Version = "1.6.39" })
	cluster.converge()
	if cost := cluster.run(2).LastUpdate; cost.FinishedAt == nil || cost.ExtraMisses != nil {
		t.Errorf("without the lookups since the start: cost %+v", cost)
	}
	cluster.before, cluster.after = lookups{}, lookups{}
	cluster.run(1)
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Version = "1.6.40" })
	cluster.converge()
	if pods := observation.HitRatioPods(cluster.observe("cache")); len(pods) != 0 {
		t.Errorf("%d pods are queried", len(pods))
	}
}

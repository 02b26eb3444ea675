package shard

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Before the update, half of 2,000 lookups found their key.
func TestMissesAreComparedWithTheHitRatioBefore(t *testing.T) {
	for name, c := range map[string]struct {
		agent            agentwire.Status
		misses           float64
		recovered, known bool
	}{
		"as before":                   {agentwire.Status{Gets: 4000, Hits: 2000, RecentGets: 2000, RecentHits: 1000}, 0, true, true},
		"better than before":          {agentwire.Status{Gets: 4000, Hits: 3000, RecentGets: 2000, RecentHits: 1500}, 0, true, true},
		"it has just recovered":       {agentwire.Status{Gets: 4000, Hits: 1500, RecentGets: 2000, RecentHits: 900}, 500, true, true},
		"it has not quite recovered":  {agentwire.Status{Gets: 4000, Hits: 1500, RecentGets: 2000, RecentHits: 899}, 500, false, true},
		"too few lookups to say":      {agentwire.Status{Gets: 4000, Hits: 1500, RecentGets: 999, RecentHits: 999}, 500, false, true},
		"just enough lookups to say":  {agentwire.Status{Gets: 4000, Hits: 1500, RecentGets: 1000, RecentHits: 450}, 500, true, true},
		"all lookups are recent":      {agentwire.Status{Gets: 2000, Hits: 900, RecentGets: 2000, RecentHits: 900}, 100, true, true},
		"a client reset the counters": {agentwire.Status{Gets: 10, Hits: 5, RecentGets: 2000, RecentHits: 900}, 0, false, false},
		"no key was looked up":        {agentwire.Status{}, 0, false, true},
	} {
		s := State{Agent: &c.agent, Observation: Observation{Record: &UpdateRecord{Gets: 2000, Hits: 1000}}}
		if misses, recovered, known := s.ExtraMisses(); misses != c.misses || recovered != c.recovered || known != c.known {
			t.Errorf("%s: %v misses, recovered %t, known %t", name, misses, recovered, known)
		}
	}
}

func TestHitRatioIsMeasuredForAWhileAfterAnUpdate(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	finished := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	for name, c := range map[string]struct {
		cost *v1beta1.UpdateCost
		want bool
	}{
		"no update":       {nil, false},
		"not finished":    {&v1beta1.UpdateCost{}, false},
		"just finished":   {&v1beta1.UpdateCost{CompletionTime: finished(0)}, true},
		"almost too late": {&v1beta1.UpdateCost{CompletionTime: finished(HitRatioTimeout - 1)}, true},
		"too late":        {&v1beta1.UpdateCost{CompletionTime: finished(HitRatioTimeout)}, false},
		"measured":        {&v1beta1.UpdateCost{CompletionTime: finished(0), ExtraMisses: new(int64)}, false},
	} {
		if got := MeasuresHitRatio(c.cost, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestShardHadAHitRatioWithEnoughLookups(t *testing.T) {
	revision := podRevision(t)
	enough := UpdateRecord{Revision: revision.Hash(), Method: rollout.Restart, Gets: v1beta1.DefaultHitRatioMinRequests}
	for name, c := range map[string]struct {
		change func(f *fixture, r *UpdateRecord)
		want   bool
	}{
		"just enough":      {func(*fixture, *UpdateRecord) {}, true},
		"too few":          {func(_ *fixture, r *UpdateRecord) { r.Gets-- }, false},
		"not disturbed":    {func(_ *fixture, r *UpdateRecord) { r.Method = rollout.Live }, false},
		"another revision": {func(_ *fixture, r *UpdateRecord) { r.Revision = "former" }, false},
		"not ready":        {func(f *fixture, _ *UpdateRecord) { shardtest.Starting(f.pods[0]) }, false},
	} {
		f, r := newFixture(revision, revision, revision), enough
		c.change(f, &r)
		record(f.pods[0], r)
		s := f.evaluate()
		if got := s.HadHitRatio(revision.Hash()); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if s := newFixture(revision, revision, revision).evaluate(); s.HadHitRatio("") {
		t.Error("a shard without an update had one")
	}
}

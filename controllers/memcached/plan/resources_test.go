package plan_test

import (
	"slices"
	"testing"

	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
)

func TestOnlyObjectsThatChangedAreWritten(t *testing.T) {
	obs := plantest.Observation(1, "valid", [2]string{"absent", "absent"}, [2]string{"absent", "absent"}, [2]string{"none", "none"})
	obs.UpToDate = observation.UpToDate{}
	build, shards := resources.NewBuilder(obs.Memcached, plantest.Options), []resources.Shard{{Revision: shardtest.Revision(t)}}
	for _, want := range build.Desired(shards) {
		o := resources.NewObject(want.Key.Kind)
		o.SetUID("o")
		o.SetResourceVersion("7")
		obs.Objects[want.Key], obs.UpToDate[want.Key] = observation.Object{APIObject: o, Owner: observation.Ours}, observation.NewVersion(obs.Memcached, want, o)
	}
	writes := func() []plan.Apply {
		p := plan.PlanResources(obs, build, shards, true)
		if len(p.UpToDate)+len(p.Actions.Apply) != len(obs.UpToDate) {
			t.Errorf("%d objects are up to date, and %d are written", len(p.UpToDate), len(p.Actions.Apply))
		}
		return p.Actions.Apply
	}
	if got := writes(); len(got) > 0 {
		t.Errorf("all objects are up to date, and these are written: %v", got)
	}
	for key, have := range obs.Objects {
		if delete(obs.Objects, key); len(writes()) != 1 || writes()[0].Key != key || writes()[0].UID != "" {
			t.Errorf("%s doesn't exist, and these are written: %v", key, writes())
		}
		changed := resources.NewObject(key.Kind)
		changed.SetUID("o")
		changed.SetResourceVersion("8")
		obs.Objects[key] = observation.Object{APIObject: changed, Owner: observation.Ours}
		if got := writes(); len(got) != 1 || got[0].Key != key || got[0].UID != "o" {
			t.Errorf("%s has changed, and these are written: %v", key, got)
		}
		obs.Objects[key] = have
	}
}

// Without room on another node, an eviction is the only way.
func TestBudgetRefusesEvictionsWhileShardsCanMoveFirst(t *testing.T) {
	for _, c := range []struct {
		handover  v1beta1.HandoverMode
		drain     v1beta1.NodeDrainMode
		canMove   bool
		evictable int
	}{
		{v1beta1.HandoverStrict, v1beta1.NodeDrainRequired, true, 0},
		{v1beta1.HandoverStrict, v1beta1.NodeDrainRequired, false, 1},
		{v1beta1.HandoverStrict, v1beta1.NodeDrainEarly, true, 1},
		{v1beta1.HandoverStrict, v1beta1.NodeDrainDisabled, true, 1},
		{v1beta1.HandoverDisabled, v1beta1.NodeDrainRequired, true, 1},
	} {
		obs := plantest.Observation(1, "valid", [2]string{"absent", "absent"}, [2]string{"absent", "absent"}, [2]string{"none", "none"})
		obs.Memcached.Spec.UpdateStrategy.Handover = v1beta1.HandoverSpec{Mode: c.handover, NodeDrain: v1beta1.NodeDrain{Mode: c.drain}}
		key := resources.Key{Kind: resources.KindPodDisruptionBudget, Name: obs.Memcached.Name}
		budgets := func(canMove bool) (evictable []int) {
			p := plan.PlanResources(obs, resources.NewBuilder(obs.Memcached, plantest.Options), []resources.Shard{{Revision: shardtest.Revision(t)}}, canMove)
			for _, a := range p.Actions.Apply {
				if a.Key == key {
					evictable = append(evictable, a.Apply.(*policyv1ac.PodDisruptionBudgetApplyConfiguration).Spec.MaxUnavailable.IntValue())
				}
			}
			return evictable
		}
		if got := budgets(c.canMove); !slices.Equal(got, []int{c.evictable}) {
			t.Errorf("%+v: %d shards may be evicted", c, got)
		}
	}
}

package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
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
		surges    bool
		evictable int
	}{
		{v1beta1.HandoverStrict, v1beta1.NodeDrainRequired, true, false, 0},
		{v1beta1.HandoverStrict, v1beta1.NodeDrainRequired, false, false, 1},
		{v1beta1.HandoverStrict, v1beta1.NodeDrainEarly, true, false, 1},
		{v1beta1.HandoverStrict, v1beta1.NodeDrainDisabled, true, false, 1},
		{v1beta1.HandoverDisabled, v1beta1.NodeDrainRequired, true, false, 1},
		{v1beta1.HandoverStrict, v1beta1.NodeDrainDisabled, true, true, 2}, // the second pod is one of two that are expected
	} {
		obs := plantest.Observation(1, "valid", [2]string{"absent", "absent"}, [2]string{"absent", "absent"}, [2]string{"none", "none"})
		obs.Memcached.Spec.UpdateStrategy.Handover = v1beta1.HandoverSpec{Mode: c.handover, NodeDrain: v1beta1.NodeDrain{Mode: c.drain}}
		key := resources.Key{Kind: resources.KindPodDisruptionBudget, Name: obs.Memcached.Name}
		budgets := func(canMove bool) (evictable []int) {
			p := plan.PlanResources(obs, resources.NewBuilder(obs.Memcached, plantest.Options), []resources.Shard{{Revision: shardtest.Revision(t), Surge: c.surges}}, canMove)
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

func TestEvictionsDoNotWaitForMovesWhileNothingElseChanges(t *testing.T) {
	key := resources.Key{Kind: resources.KindPodDisruptionBudget, Name: "cache"}
	isDeleted := func(obs *observation.Observation) { obs.Memcached.DeletionTimestamp = &metav1.Time{Time: obs.Now} }
	for name, c := range map[string]struct {
		change func(*observation.Observation)
		want   []string
	}{
		"it is paused": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Paused, obs.Memcached.Spec.Config.Threads = true, ptr.To[int32](2)
		}, []string{"update PodDisruptionBudget cache"}},
		"its spec is rejected": {func(obs *observation.Observation) { obs.Memcached.Spec.Version = "1.5.0" }, []string{"update PodDisruptionBudget cache"}},
		"it is being deleted":  {isDeleted, []string{"update PodDisruptionBudget cache"}},
		"it is being deleted without its objects": {func(obs *observation.Observation) {
			isDeleted(obs)
			plantest.AddObject(obs, key, "orphaned")
		}, nil},
		"shards can move": {func(*observation.Observation) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 2)
			obs.Memcached.Spec.UpdateStrategy.Handover.NodeDrain.Mode = v1beta1.NodeDrainRequired
			budget := obs.Objects[key]
			budget.SetResourceVersion("7")
			obs.UpToDate[key] = observation.NewVersion(obs.Memcached, resources.Desired{Key: key}, budget)
			c.change(obs)
			a := plantest.Plan(obs).Actions
			if diff := cmp.Diff(c.want, describe(a)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, apply := range a.Apply {
				if got := apply.Apply.(*policyv1ac.PodDisruptionBudgetApplyConfiguration).Spec.MaxUnavailable.IntValue(); got != 1 {
					t.Errorf("%d shards may be evicted", got)
				}
				if isLast := obs.Memcached.DeletionTimestamp != nil; isLast && apply.Version != "7" {
					t.Errorf("it is written over version %q", apply.Version)
				}
			}
		})
	}
}

func TestShardCanMoveUnlessSomethingBlocksItForLonger(t *testing.T) {
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", UID: "12345678"}}
	handsOver, stays, adopted := shard.State{}, shard.State{}, shard.State{}
	handsOver.Active, stays.Active = &corev1.Pod{}, &corev1.Pod{}
	shardtest.MountKey(handsOver.Active, resources.HandoverSecretName(m))
	handsOver.Active.Annotations = map[string]string{annotations.Handover: string(v1beta1.HandoverStrict)}
	adopted.Active = handsOver.Active.DeepCopy()
	adopted.Active.Spec.Volumes = nil
	shardtest.MountKey(adopted.Active, "cache-handover-87654321")
	for name, c := range map[string]struct {
		decision rollout.Decision
		shards   []shard.State
		want     bool
	}{
		"nothing blocks it":                 {rollout.Decision{}, []shard.State{handsOver}, true},
		"another shard moves":               {rollout.Decision{Gate: rollout.GateShardInTransition}, []shard.State{handsOver}, true},
		"a change waits for its window":     {rollout.Decision{Gate: rollout.GateOutsideMaintenanceWindow}, []shard.State{handsOver}, false},
		"a change needs another Secret":     {rollout.Decision{Gate: rollout.GateSecretInvalid}, []shard.State{handsOver}, false},
		"no node accepts the second pod":    {rollout.Decision{Step: rollout.StepAwait, NeedsIntervention: true}, []shard.State{handsOver}, false},
		"a pod can't hand over":             {rollout.Decision{}, []shard.State{handsOver, stays}, false},
		"a pod has other keys":              {rollout.Decision{}, []shard.State{handsOver, adopted}, false},
		"a shard has no pod for the moment": {rollout.Decision{Gate: rollout.GateShardUnavailable}, []shard.State{handsOver, {}}, true},
	} {
		if got := plan.CanMove(m, c.decision, c.shards); got != c.want {
			t.Errorf("%s: it can move: %t", name, got)
		}
	}
}

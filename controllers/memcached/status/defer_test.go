package status

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// startingFixture is a Memcached with three shards that have no pod in its status, and that
// have got one since.
type startingFixture struct {
	obs     *plan.Observation
	plan    plan.Plan
	applied plan.Result
	next    v1alpha1.MemcachedStatus
}

func newStartingFixture(now time.Time, ages ...time.Duration) *startingFixture {
	m := &v1alpha1.Memcached{}
	m.Status = v1alpha1.MemcachedStatus{ObservedGeneration: 1, Phase: v1alpha1.PhaseProgressing, Size: 3, Ready: "0/3", Servers: []string{"a", "b", "c"},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonShardsStarting, Message: "waiting for cache-0, cache-1, cache-2"},
			{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonShardsNotReady, Message: "0 of 3 shards are ready; not ready: cache-0, cache-1, cache-2"},
			{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonShardsStarting, Message: "waiting for cache-0, cache-1, cache-2"},
			{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAsExpected, Message: "no problems detected"},
		}}
	f := &startingFixture{obs: &plan.Observation{Memcached: m, Now: now, Objects: map[resources.Key]plan.Object{}, Pods: map[string][]*corev1.Pod{}}}
	for ordinal, age := range ages {
		name := resources.ShardName("cache", ordinal)
		m.Status.Shards = append(m.Status.Shards, v1alpha1.ShardStatus{Name: name, Message: messageNoPod})
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		f.obs.Objects[resources.Key{Kind: resources.KindReplicaSet, Name: name}] = plan.Object{APIObject: set, Owner: plan.Ours}
		f.obs.Pods[name] = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: name + "-x", CreationTimestamp: metav1.NewTime(now.Add(-age))}}}
	}
	f.next = *m.Status.DeepCopy()
	for i := range f.next.Shards {
		shard := &f.next.Shards[i]
		shard.PodName, shard.NodeName, shard.Message = shard.Name+"-x", "node1", messageStarting
		f.next.Nodes = append(f.next.Nodes, shard.PodName)
	}
	return f
}

// becomesReady makes one shard ready.
func (f *startingFixture) becomesReady(i int) {
	shard := &f.next.Shards[i]
	shard.Ready, shard.Message, shard.Current, shard.Version = true, "", true, "1.6.45"
	shard.Start, shard.ContainerID, shard.StartedAt = v1alpha1.StartCold, "1", &metav1.Time{Time: f.obs.Now}
	shard.Revision = "revision"
	f.next.ReadySize, f.next.Ready = 1, "1/3"
	f.next.UpdatedSize = 1
	f.next.Conditions[0].Message, f.next.Conditions[1].Message, f.next.Conditions[2].Message = "waiting for the others", "1 of 3 shards are ready", "waiting for the others"
}

// hasStarted records a previous start of a shard that isn't ready any more.
func (f *startingFixture) hasStarted(i int) {
	for _, s := range []*v1alpha1.MemcachedStatus{&f.obs.Memcached.Status, &f.next} {
		s.Shards[i].Start, s.Shards[i].ContainerID = v1alpha1.StartWarm, "0"
		s.Shards[i].Revision = "revision"
	}
}

func TestMinorUpdatesOfStartingShardsAreBatched(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 10, 0, time.UTC)
	ready := func(f *startingFixture, shard string, ago time.Duration) {
		f.obs.Pods[shard][0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
	}
	for name, c := range map[string]struct {
		change func(f *startingFixture)
		wait   time.Duration
	}{
		"each has a pod":                          {func(*startingFixture) {}, 7 * time.Second},
		"one is ready":                            {func(f *startingFixture) { f.becomesReady(1) }, 7 * time.Second},
		"one became ready a second ago":           {func(f *startingFixture) { f.becomesReady(0); ready(f, "cache-0", time.Second) }, 8 * time.Second},
		"one that was ready before has a new pod": {func(f *startingFixture) { f.hasStarted(1) }, 7 * time.Second},
		"one changed almost ten seconds ago": {func(f *startingFixture) {
			f.obs.Now = now.Add(8 * time.Second)
			ready(f, "cache-0", -7*time.Second)
			ready(f, "cache-2", -8*time.Second)
		}, 0},
		"a pod is one second in the future": {func(f *startingFixture) { f.obs.Now = now.Add(-4 * time.Second) }, 7 * time.Second},
		"a pod is an hour in the future":    {func(f *startingFixture) { f.obs.Now = now.Add(-time.Hour) }, 0},

		"no change":     {func(f *startingFixture) { f.next = f.obs.Memcached.Status }, 0},
		"no status yet": {func(f *startingFixture) { f.obs.Memcached.Status = v1alpha1.MemcachedStatus{} }, 0},
		"all are ready": {func(f *startingFixture) {
			f.becomesReady(0)
			f.next.Conditions[1].Status, f.next.Conditions[1].Reason = metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady
		}, 0},
		"one is not ready any more":      {func(f *startingFixture) { f.obs.Memcached.Status.Shards[0].Ready = true }, 0},
		"one started again":              {func(f *startingFixture) { f.hasStarted(0); f.becomesReady(0) }, 0},
		"one has a problem":              {func(f *startingFixture) { f.next.Shards[0].Message = "no node accepts the pod" }, 0},
		"Degraded becomes True":          {func(f *startingFixture) { f.next.Conditions[3].Status = metav1.ConditionTrue }, 0},
		"Degraded has another message":   {func(f *startingFixture) { f.next.Conditions[3].Message = "shard cache-1: image" }, 0},
		"Progressing has another reason": {func(f *startingFixture) { f.next.Conditions[2].Reason = v1alpha1.ReasonScalingIn }, 0},
		"Ready has another reason":       {func(f *startingFixture) { f.next.Conditions[0].Reason = v1alpha1.ReasonScalingIn }, 0},
		"Ready becomes True":             {func(f *startingFixture) { f.next.Conditions[0].Status = metav1.ConditionTrue }, 0},
		"another phase":                  {func(f *startingFixture) { f.next.Phase = v1alpha1.PhasePaused }, 0},
		"the spec changed":               {func(f *startingFixture) { f.next.ObservedGeneration = 2 }, 0},
		"the size changed":               {func(f *startingFixture) { f.next.Size = 2; f.next.Shards = f.next.Shards[:2] }, 0},
		"another list of servers":        {func(f *startingFixture) { f.next.Servers = f.next.Servers[:2] }, 0},
		"an update starts":               {func(f *startingFixture) { f.next.Update = &v1alpha1.UpdateStatus{} }, 0},
		"an update is planned":           {func(f *startingFixture) { f.plan.Decision = rollout.Decision{Shard: "cache-0"} }, 0},
		"a bootstrap is running": {func(f *startingFixture) {
			b := &v1alpha1.BootstrapStatus{Phase: v1alpha1.TransferRunning}
			f.obs.Memcached.Status.Bootstrap, f.next.Bootstrap = b, b
		}, 0},
		"a shard was lost":               {func(f *startingFixture) { f.plan.Refills.Lost = []plan.Refill{{}} }, 0},
		"an object was written":          {func(f *startingFixture) { f.applied.Applied = map[resources.Key]bool{{}: true} }, 0},
		"a write is retried":             {func(f *startingFixture) { f.applied.Failures = []error{errors.New("busy")} }, 0},
		"a write was rejected":           {func(f *startingFixture) { f.applied.Rejections = []error{errors.New("invalid")} }, 0},
		"the Memcached is being deleted": {func(f *startingFixture) { f.obs.Memcached.DeletionTimestamp = &metav1.Time{Time: now} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newStartingFixture(now, 3*time.Second, 2*time.Second, time.Second)
			c.change(f)
			if wait := Defer(f.obs, f.plan, f.applied, f.next); wait != c.wait {
				t.Errorf("wait %s, want %s", wait, c.wait)
			}
		})
	}
}

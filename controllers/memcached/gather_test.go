package memcached

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// comingWorld is a Memcached whose three shards come up: its status tells that they
// have no pod yet, and each has got one since.
type comingWorld struct {
	seen    *observed
	plan    plan
	applied applied
	next    v1alpha1.MemcachedStatus
}

func newComingWorld(now time.Time, ages ...time.Duration) *comingWorld {
	m := &v1alpha1.Memcached{}
	m.Status = v1alpha1.MemcachedStatus{ObservedGeneration: 1, Phase: v1alpha1.PhaseProgressing, Size: 3, Ready: "0/3", Servers: []string{"a", "b", "c"},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonShardsNotReady, Message: "0 of 3 shards serve; not cache-0, cache-1, cache-2"},
			{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonShardsStarting, Message: "waiting for cache-0, cache-1, cache-2"},
			{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAsExpected, Message: "nothing needs a person"},
		}}
	w := &comingWorld{seen: &observed{memcached: m, now: now, objects: map[manifests.Key]object{}, pods: map[string][]*corev1.Pod{}}}
	for ordinal, age := range ages {
		name := manifests.ShardName("cache", ordinal)
		m.Status.Shards = append(m.Status.Shards, v1alpha1.ShardStatus{Name: name, Message: messageNoPod})
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		w.seen.objects[manifests.Key{Kind: manifests.KindReplicaSet, Name: name}] = object{set, ours}
		w.seen.pods[name] = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: name + "-x", CreationTimestamp: metav1.NewTime(now.Add(-age))}}}
	}
	w.next = *m.Status.DeepCopy()
	for i := range w.next.Shards {
		shard := &w.next.Shards[i]
		shard.Pod, shard.Node, shard.Message = shard.Name+"-x", "node1", messageStarting
		w.next.Nodes = append(w.next.Nodes, shard.Pod)
	}
	return w
}

// serves has one shard serve.
func (w *comingWorld) serves(i int) {
	shard := &w.next.Shards[i]
	shard.Ready, shard.Message, shard.Current, shard.Version = true, "", true, "1.6.45"
	shard.Start, shard.ContainerID, shard.StartedAt = v1alpha1.StartCold, "containerd://1", &metav1.Time{Time: w.seen.now}
	w.next.Revisions = map[string]string{shard.Name: "revision"}
	w.next.ReadySize, w.next.Ready = 1, "1/3"
	w.next.Conditions[0].Message, w.next.Conditions[1].Message = "1 of 3 shards serve", "waiting for the others"
}

// told has the status tell that a shard started once and serves no more.
func (w *comingWorld) told(i int) {
	for _, s := range []*v1alpha1.MemcachedStatus{&w.seen.memcached.Status, &w.next} {
		s.Shards[i].Start, s.Shards[i].ContainerID = v1alpha1.StartWarm, "containerd://0"
		s.Revisions = map[string]string{s.Shards[i].Name: "revision"}
	}
}

func TestSmallNewsOfShardsThatComeUpAreToldTogether(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 10, 0, time.UTC)
	ready := func(w *comingWorld, shard string, ago time.Duration) {
		w.seen.pods[shard][0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
	}
	for name, c := range map[string]struct {
		change func(w *comingWorld)
		wait   time.Duration
	}{
		"each has a pod":                       {func(*comingWorld) {}, 7 * time.Second},
		"one serves":                           {func(w *comingWorld) { w.serves(1) }, 7 * time.Second},
		"one became ready a second ago":        {func(w *comingWorld) { w.serves(0); ready(w, "cache-0", time.Second) }, 8 * time.Second},
		"one that served before has a new pod": {func(w *comingWorld) { w.told(1) }, 7 * time.Second},
		"one's news came about ten seconds ago": {func(w *comingWorld) {
			w.seen.now = now.Add(8 * time.Second)
			ready(w, "cache-0", -7*time.Second)
			ready(w, "cache-2", -8*time.Second)
		}, 0},
		"a pod of the future, by a second": {func(w *comingWorld) { w.seen.now = now.Add(-4 * time.Second) }, 7 * time.Second},
		"a pod of the future, by an hour":  {func(w *comingWorld) { w.seen.now = now.Add(-time.Hour) }, 0},

		"nothing is new":       {func(w *comingWorld) { w.next = w.seen.memcached.Status }, 0},
		"nothing was told yet": {func(w *comingWorld) { w.seen.memcached.Status = v1alpha1.MemcachedStatus{} }, 0},
		"all serve": {func(w *comingWorld) {
			w.serves(0)
			w.next.Conditions[0].Status, w.next.Conditions[0].Reason = metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady
		}, 0},
		"one serves no more":                     {func(w *comingWorld) { w.seen.memcached.Status.Shards[0].Ready = true }, 0},
		"one started again":                      {func(w *comingWorld) { w.told(0); w.serves(0) }, 0},
		"something is the matter with one":       {func(w *comingWorld) { w.next.Shards[0].Message = "no node takes the pod" }, 0},
		"a person has to look":                   {func(w *comingWorld) { w.next.Conditions[2].Status = metav1.ConditionTrue }, 0},
		"a person has to look at something else": {func(w *comingWorld) { w.next.Conditions[2].Message = "shard cache-1: image" }, 0},
		"something else goes on":                 {func(w *comingWorld) { w.next.Conditions[1].Reason = v1alpha1.ReasonScalingIn }, 0},
		"the phase is another":                   {func(w *comingWorld) { w.next.Phase = v1alpha1.PhasePaused }, 0},
		"the spec changed":                       {func(w *comingWorld) { w.next.ObservedGeneration = 2 }, 0},
		"the size changed":                       {func(w *comingWorld) { w.next.Size = 2; w.next.Shards = w.next.Shards[:2] }, 0},
		"a server is told":                       {func(w *comingWorld) { w.next.Servers = w.next.Servers[:2] }, 0},
		"an update begins":                       {func(w *comingWorld) { w.next.Update = &v1alpha1.UpdateStatus{} }, 0},
		"an update is decided on":                {func(w *comingWorld) { w.plan.decision = rollout.Decision{Shard: "cache-0"} }, 0},
		"they are being filled": {func(w *comingWorld) {
			b := &v1alpha1.BootstrapStatus{Phase: v1alpha1.RunRunning}
			w.seen.memcached.Status.Bootstrap, w.next.Bootstrap = b, b
		}, 0},
		"a shard was lost":               {func(w *comingWorld) { w.plan.rewarms = []rewarm{{}} }, 0},
		"an object was written just now": {func(w *comingWorld) { w.applied.made = map[manifests.Key]bool{{}: true} }, 0},
		"a write is tried again":         {func(w *comingWorld) { w.applied.failures = []error{errors.New("busy")} }, 0},
		"a write was refused":            {func(w *comingWorld) { w.applied.refusals = []error{errors.New("invalid")} }, 0},
		"it is being deleted":            {func(w *comingWorld) { w.seen.memcached.DeletionTimestamp = &metav1.Time{Time: now} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newComingWorld(now, 3*time.Second, 2*time.Second, time.Second)
			c.change(w)
			if wait := gather(w.seen, w.plan, w.applied, w.next); wait != c.wait {
				t.Errorf("it waits %s, want %s", wait, c.wait)
			}
		})
	}
}

package memcached

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// The tests try every combination of these states: a Memcached of size 0 to 2, and two shards,
// each with a ReplicaSet, a Service and a pod.
var (
	objectStates = []string{"absent", "ours", "terminating", "orphaned", "predecessors", "foreign"}
	podStates    = []string{"none", "starting", "ready", "ready and terminating"}
	specStates   = []string{"valid", "paused", "rejected", "being deleted"}
)

const testUID = types.UID("ours")

var testOptions = resources.Options{AgentImage: "agent", DefaultImage: "docker.io/library/memcached:1.6.45"}

// newObservation returns an observation of these states.
func newObservation(size int32, spec string, sets, services [2]string, pods [2]string) *observation {
	m := &v1alpha1.Memcached{Spec: v1alpha1.MemcachedSpec{
		Size: &size, Memory: ptr.To(resource.MustParse("64Mi")), MaxItemSize: ptr.To(resource.MustParse("1Mi")),
		MaxConnections: ptr.To[int32](1024), Threads: ptr.To[int32](4),
	}}
	m.Name, m.Namespace, m.UID, m.Generation = "cache", "default", testUID, 7
	switch spec {
	case "paused":
		m.Spec.Paused = true
	case "rejected":
		m.Spec.Version = "1.5.0"
	case "being deleted":
		m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	obs := &observation{memcached: m, objects: map[resources.Key]object{}, pods: map[string][]*corev1.Pod{}, agents: map[string]agentwire.Status{}}
	for ordinal := range 2 {
		name := resources.ShardName("cache", ordinal)
		addObject(obs, resources.Key{Kind: resources.KindReplicaSet, Name: name}, sets[ordinal])
		addObject(obs, resources.Key{Kind: resources.KindService, Name: name}, services[ordinal])
		set, ok := obs.objects[resources.Key{Kind: resources.KindReplicaSet, Name: name}]
		if pods[ordinal] == "none" || !ok || set.owner != ours && set.owner != orphaned {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-x", UID: "pod"}}
		if pods[ordinal] != "starting" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if pods[ordinal] == "ready and terminating" {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		obs.pods[name] = []*corev1.Pod{pod}
	}
	return obs
}

// addObject adds an object of one of objectStates.
func addObject(obs *observation, key resources.Key, state string) {
	if state == "absent" {
		return
	}
	o := newObject(key.Kind)
	o.SetName(key.Name)
	o.SetNamespace("default")
	o.SetUID(types.UID(state + " " + key.String()))
	controlledBy := func(kind, name string, uid types.UID) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}})
	}
	switch state {
	case "ours":
		controlledBy("Memcached", "cache", testUID)
	case "terminating":
		controlledBy("Memcached", "cache", testUID)
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	case "orphaned":
		o.SetLabels(resources.Labels("cache"))
	case "predecessors":
		controlledBy("Memcached", "cache", "another")
	case "foreign":
		controlledBy("Website", "shop", "another")
	}
	obs.objects[key] = object{o, ownershipOf(obs.memcached, o)}
}

// planFor returns the plan for an observation.
func planFor(obs *observation) plan {
	obs.image, obs.imageError = resources.ResolveImage(obs.memcached.Spec.Image, obs.memcached.Spec.Version, testOptions.DefaultImage)
	obs.readShards()
	return makePlan(obs, testOptions)
}

// everyObservation calls try with 3 sizes × 4 specs × 6⁴ objects × 4² pods, without the pods
// of shards that have no ReplicaSet of the Memcached.
func everyObservation(try func(name string, make func() *observation)) {
	for size := range int32(3) {
		for _, spec := range specStates {
			for _, set0 := range objectStates {
				for _, set1 := range objectStates {
					for _, service0 := range objectStates {
						for _, service1 := range objectStates {
							for _, pod0 := range podsOf(set0) {
								for _, pod1 := range podsOf(set1) {
									name := fmt.Sprintf("size %d, %s; ReplicaSets %s, %s; Services %s, %s; pods %s, %s", size, spec, set0, set1, service0, service1, pod0, pod1)
									try(name, func() *observation {
										return newObservation(size, spec, [2]string{set0, set1}, [2]string{service0, service1}, [2]string{pod0, pod1})
									})
								}
							}
						}
					}
				}
			}
		}
	}
}

func podsOf(set string) []string {
	if set == "ours" || set == "orphaned" || set == "terminating" {
		return podStates
	}
	return podStates[:1]
}

func TestInvariantsHoldForEveryObservation(t *testing.T) {
	t.Parallel()
	count := 0
	everyObservation(func(name string, make func() *observation) {
		count++
		if t.Failed() {
			return // the first failure is enough
		}
		obs := make()
		p := planFor(obs)
		if spec := make().memcached.Spec; !equality.Semantic.DeepEqual(spec, obs.memcached.Spec) {
			t.Errorf("%s: the spec was changed:\n%s", name, cmp.Diff(spec, obs.memcached.Spec))
		}
		checkWrites(t, name, obs, p)
		checkStatus(t, name, obs, p)
	})
	t.Logf("%d observations", count)
}

// checkWrites checks that the plan writes only own objects and free names, deletes only own
// objects beyond the size in descending order, and does nothing where the spec prevents it.
func checkWrites(t *testing.T, name string, obs *observation, p plan) {
	t.Helper()
	m := obs.memcached
	for _, o := range p.actions.Apply {
		have, exists := obs.objects[o.Key]
		if exists && !have.isShards() || exists && o.uid != have.GetUID() || !exists && o.uid != "" {
			t.Errorf("%s: %s is written over uid %q", name, o.Key, o.uid)
		}
	}
	last := int(^uint(0) >> 1)
	for _, o := range p.actions.Delete {
		if _, isPod := o.(*corev1.Pod); isPod {
			t.Errorf("%s: pod %s is deleted, in which memcached may run", name, o.GetName())
			continue
		}
		ordinal, ok := resources.Ordinal(m.Name, o.GetName())
		if !ok || !metav1.IsControlledBy(o, m) || ordinal < int(*m.Spec.Size) {
			t.Errorf("%s: %s is deleted", name, o.GetUID())
		}
		if ordinal > last {
			t.Errorf("%s: %s is deleted after a lower ordinal", name, o.GetName())
		}
		last = ordinal
	}
	blocked := m.Spec.Paused || m.DeletionTimestamp != nil || p.rejected != nil
	if blocked && len(p.actions.Apply)+len(p.actions.Delete) > 0 {
		t.Errorf("%s: %d writes and %d deletes, although the spec prevents them", name, len(p.actions.Apply), len(p.actions.Delete))
	}
	if want := m.Spec.Version == "1.5.0"; want != (p.rejected != nil) {
		t.Errorf("%s: rejected: %+v", name, p.rejected)
	}
}

// checkStatus checks that all conditions are present and of this generation, that Available
// means that each shard has a ready pod and a Service, that Degraded reports what requires
// manual intervention, and that the status doesn't change by itself.
func checkStatus(t *testing.T, name string, obs *observation, p plan) {
	t.Helper()
	m := obs.memcached
	now := time.Unix(1_000_000, 0)
	s := makeStatus(obs, p, result{}, now)
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded} {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil || c.ObservedGeneration != m.Generation || c.Reason == "" || c.Message == "" {
			t.Errorf("%s: %s is %+v", name, kind, c)
			return
		}
	}
	ready := 0
	for ordinal := range int(*m.Spec.Size) {
		name := resources.ShardName("cache", ordinal)
		service, ok := obs.objects[resources.Key{Kind: resources.KindService, Name: name}]
		routes := ok && service.isShards() && service.GetDeletionTimestamp() == nil
		if routes && slices.ContainsFunc(obs.pods[name], shard.IsReady) {
			ready++
		}
	}
	if available := meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionAvailable); available != (ready == int(*m.Spec.Size) && ready > 0) {
		t.Errorf("%s: Available is %t with %d of %d shards ready", name, available, ready, *m.Spec.Size)
	}
	for _, server := range s.Servers {
		service, ok := obs.objects[resources.Key{Kind: resources.KindService, Name: server[:len("cache-0")]}]
		if !ok || service.owner != ours {
			t.Errorf("%s: %s is among the servers", name, server)
		}
	}
	if degraded := meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionDegraded); degraded != (p.rejected != nil || len(p.resources.conflicts) > 0) {
		t.Errorf("%s: Degraded is %t, rejected %v, conflicts %v", name, degraded, p.rejected, p.resources.conflicts)
	}
	checkSummary(t, name, m, s)
	m.Status = s
	if again := makeStatus(obs, p, result{}, now.Add(time.Hour)); !equality.Semantic.DeepEqual(s, again) {
		t.Errorf("%s: the next status differs:\n%s", name, cmp.Diff(s, again))
	}
	if events := memcachedEvents(m.Status, s, false); len(events)+len(shardEvents(m.Status, s, obs.agents)) > 0 {
		t.Errorf("%s: events without a change: %v", name, events)
	}
}

// checkSummary checks that Ready and the phase follow from the other conditions.
func checkSummary(t *testing.T, name string, m *v1alpha1.Memcached, s v1alpha1.MemcachedStatus) {
	t.Helper()
	isTrue := func(kind string) bool { return meta.IsStatusConditionTrue(s.Conditions, kind) }
	available, progressing, degraded := isTrue(v1alpha1.ConditionAvailable), isTrue(v1alpha1.ConditionProgressing), isTrue(v1alpha1.ConditionDegraded)
	if ready := isTrue(v1alpha1.ConditionReady); ready != ((available || *m.Spec.Size == 0) && !progressing && !degraded) {
		t.Errorf("%s: Ready is %t, the conditions are %+v", name, ready, s.Conditions)
	}
	want := v1alpha1.PhaseRunning
	switch {
	case m.DeletionTimestamp != nil:
		want = v1alpha1.PhaseDeleting
	case degraded && available:
		want = v1alpha1.PhaseBlocked
	case degraded:
		want = v1alpha1.PhaseDegraded
	case m.Spec.Paused:
		want = v1alpha1.PhasePaused
	case progressing:
		want = v1alpha1.PhaseProgressing
	}
	if s.Phase != want {
		t.Errorf("%s: phase %s, want %s", name, s.Phase, want)
	}
}

func TestPreflightPodsAreDeletedWhenTheRolloutIsDone(t *testing.T) {
	for name, c := range map[string]struct {
		phase     corev1.PodPhase
		age       time.Duration
		done      bool
		deletes   int
		requeueIn time.Duration
	}{
		"the rollout continues":       {corev1.PodSucceeded, time.Hour, false, 0, 0},
		"the rollout is done":         {corev1.PodSucceeded, time.Minute, true, 1, 0},
		"a failed check will repeat":  {corev1.PodFailed, time.Minute, false, 0, 4 * time.Minute},
		"a failed check is repeated":  {corev1.PodFailed, 5 * time.Minute, false, 1, 0},
		"a failed check is forgotten": {corev1.PodFailed, time.Minute, true, 1, 0},
	} {
		obs := newObservation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"ready", "none"})
		obs.now = time.Unix(10_000, 0)
		obs.image, obs.imageError = resources.ResolveImage(obs.memcached.Spec.Image, obs.memcached.Spec.Version, testOptions.DefaultImage)
		obs.readShards()
		obs.preflightPods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(obs.now.Add(-c.age)),
			Annotations: map[string]string{annotations.Revision: obs.updateRevision.Hash()}}, Status: corev1.PodStatus{Phase: c.phase}}}
		if a := planPreflightCleanup(obs, c.done); len(a.Delete) != c.deletes || a.RequeueAfter != c.requeueIn {
			t.Errorf("%s: %d deletes, requeue after %s; want %d, %s", name, len(a.Delete), a.RequeueAfter, c.deletes, c.requeueIn)
		}
	}
}

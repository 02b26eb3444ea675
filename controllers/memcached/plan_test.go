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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// The tests try every combination of these states: a Memcached of size 0 to 2, and two shards,
// each with a ReplicaSet, a Service and a pod.
var (
	objectStates = []string{"absent", "ours", "terminating", "orphaned", "predecessors", "foreign"}
	podStates    = []string{"none", "starting", "ready", "ready and terminating"}
	specStates   = []string{"valid", "paused", "rejected", "being deleted"}
)

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
	if events := makeEvents(m.Status, s, obs, p, result{}); len(events) > 0 {
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

package plan_test

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

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/status"
	"github.com/memcached-operator/memcached-operator/internal/exhaustive"
)

// The tests try the combinations of these states: a Memcached of size 0 to 2, and two shards,
// each with a ReplicaSet, a Service and a pod.
var (
	objectStates = []string{"absent", "ours", "terminating", "orphaned", "predecessors", "foreign"}
	podStates    = []string{"none", "starting", "ready", "ready and terminating"}
	specStates   = []string{"valid", "paused", "rejected", "being deleted"}
)

// everyObservation calls try with 3 sizes × 4 specs × 6⁴ objects × 4² pods, without the pods
// of shards that have no ReplicaSet of the Memcached.
func everyObservation(try func(name string, make func() *observation.Observation)) {
	for size := range int32(3) {
		for _, spec := range specStates {
			for _, set0 := range objectStates {
				for _, set1 := range objectStates {
					for _, service0 := range objectStates {
						for _, service1 := range objectStates {
							for _, pod0 := range podsOf(set0) {
								for _, pod1 := range podsOf(set1) {
									name := fmt.Sprintf("size %d, %s; ReplicaSets %s, %s; Services %s, %s; pods %s, %s", size, spec, set0, set1, service0, service1, pod0, pod1)
									try(name, func() *observation.Observation {
										return plantest.Observation(size, spec, [2]string{set0, set1}, [2]string{service0, service1}, [2]string{pod0, pod1})
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
	count, step := 0, exhaustive.OneIn(11)
	everyObservation(func(name string, make func() *observation.Observation) {
		if count++; count%step != 0 || t.Failed() { // the first failure is enough
			return
		}
		obs := make()
		p := plantest.Plan(obs)
		spec := make().Memcached.Spec
		if spec.Paused = obs.Memcached.Spec.Paused; !equality.Semantic.DeepEqual(spec, obs.Memcached.Spec) {
			t.Errorf("%s: the spec was changed:\n%s", name, cmp.Diff(spec, obs.Memcached.Spec))
		}
		checkWrites(t, name, obs, p)
		checkStatus(t, name, obs, p)
	})
	t.Logf("one in %d of %d observations", step, count)
}

// checkWrites checks that the plan writes and deletes only objects of the Memcached and free names, deletes only
// objects beyond the size in descending order, and does nothing where the spec prevents it.
func checkWrites(t *testing.T, name string, obs *observation.Observation, p plan.Plan) {
	t.Helper()
	m := obs.Memcached
	for _, o := range p.Actions.Apply {
		have, exists := obs.Objects[o.Key]
		if exists && !have.IsManaged() || exists && o.UID != have.GetUID() || !exists && o.UID != "" {
			t.Errorf("%s: %s is written over uid %q", name, o.Key, o.UID)
		}
	}
	last := int(^uint(0) >> 1)
	for _, o := range slices.Concat(p.Actions.Delete, p.Actions.ScaleIn) {
		if _, isPod := o.(*corev1.Pod); isPod {
			t.Errorf("%s: pod %s is deleted, in which memcached may run", name, o.GetName())
			continue
		}
		ordinal, ok := resources.Ordinal(m.Name, o.GetName())
		if !ok || !obs.Objects[resources.KeyOf(o)].IsManaged() || ordinal < int(*m.Spec.Size) {
			t.Errorf("%s: %s is deleted", name, o.GetUID())
		}
		if ordinal > last {
			t.Errorf("%s: %s is deleted after a lower ordinal", name, o.GetName())
		}
		last = ordinal
	}
	blocked := m.Spec.Paused || m.DeletionTimestamp != nil
	if blocked && len(p.Actions.Apply)+len(p.Actions.Delete)+len(p.Actions.ScaleIn) > 0 {
		t.Errorf("%s: %d writes and %d deletes, although the spec prevents them", name, len(p.Actions.Apply), len(p.Actions.Delete)+len(p.Actions.ScaleIn))
	}
	if want := m.Spec.Version == "1.5.0"; want != (obs.Rejected != nil) {
		t.Errorf("%s: rejected: %+v", name, obs.Rejected)
	}
}

// checkStatus checks that all conditions are present and of this generation, that Available
// means that each shard has a ready pod and a Service, that Degraded and Stalled report
// what requires manual intervention, and Reconciling what doesn't, and that the status doesn't change by itself.
func checkStatus(t *testing.T, name string, obs *observation.Observation, p plan.Plan) {
	t.Helper()
	m := obs.Memcached
	now := time.Unix(1_000_000, 0)
	s := status.Make(obs, p, plan.Result{}, now)
	holds := map[string]bool{}
	for _, kind := range []string{v1beta1.ConditionReady, v1beta1.ConditionReconciling, v1beta1.ConditionStalled, v1beta1.ConditionAvailable, v1beta1.ConditionProgressing, v1beta1.ConditionDegraded} {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil || c.ObservedGeneration != m.Generation || c.Reason == "" || kind != v1beta1.ConditionReconciling && kind != v1beta1.ConditionStalled && c.Message == "" {
			t.Errorf("%s: %s is %+v", name, kind, c)
			return
		}
		holds[kind] = c.Status == metav1.ConditionTrue
	}
	waits := obs.Paused && m.DeletionTimestamp == nil
	if stalled := holds[v1beta1.ConditionDegraded]; holds[v1beta1.ConditionStalled] != stalled || holds[v1beta1.ConditionReconciling] != (!stalled && !waits && !holds[v1beta1.ConditionReady]) {
		t.Errorf("%s: paused %t, and True are %v", name, waits, holds)
	}
	ready := 0
	for ordinal := range int(*m.Spec.Size) {
		name := resources.ShardName("cache", ordinal)
		service, ok := obs.Objects[resources.Key{Kind: resources.KindService, Name: name}]
		routes := ok && service.IsManaged() && service.GetDeletionTimestamp() == nil
		if routes && slices.ContainsFunc(obs.Pods[name], shard.IsReady) {
			ready++
		}
	}
	if available := meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionAvailable); available != (ready == int(*m.Spec.Size) && ready > 0) {
		t.Errorf("%s: Available is %t with %d of %d shards ready", name, available, ready, *m.Spec.Size)
	}
	for _, server := range s.Servers {
		service, ok := obs.Objects[resources.Key{Kind: resources.KindService, Name: server[:len("cache-0")]}]
		if !ok || service.Owner != observation.Ours {
			t.Errorf("%s: %s is among the servers", name, server)
		}
	}
	if degraded := meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionDegraded); degraded != (obs.Rejected != nil || len(p.Resources.Conflicts) > 0) {
		t.Errorf("%s: Degraded is %t, rejected %v, conflicts %v", name, degraded, obs.Rejected, p.Resources.Conflicts)
	}
	checkSummary(t, name, m, s)
	if m.Status = s; m.Spec.Paused || m.DeletionTimestamp != nil { // its size follows from the former list of servers
		s = status.Make(obs, p, plan.Result{}, now)
		m.Status = s
	}
	if again := status.Make(obs, p, plan.Result{}, now.Add(time.Hour)); !equality.Semantic.DeepEqual(s, again) {
		t.Errorf("%s: the next status differs:\n%s", name, cmp.Diff(s, again))
	}
	if events := status.Events(m.Status, s, obs, p, plan.Result{}); len(events) > 0 {
		t.Errorf("%s: events without a change: %v", name, events)
	}
}

// checkSummary checks that Ready and the phase follow from the other conditions.
func checkSummary(t *testing.T, name string, m *v1beta1.Memcached, s v1beta1.MemcachedStatus) {
	t.Helper()
	isTrue := func(kind string) bool { return meta.IsStatusConditionTrue(s.Conditions, kind) }
	available, progressing, degraded := isTrue(v1beta1.ConditionAvailable), isTrue(v1beta1.ConditionProgressing), isTrue(v1beta1.ConditionDegraded)
	if ready := isTrue(v1beta1.ConditionReady); ready != ((available || *m.Spec.Size == 0) && !progressing && !degraded) {
		t.Errorf("%s: Ready is %t, the conditions are %+v", name, ready, s.Conditions)
	}
	want := v1beta1.PhaseRunning
	switch {
	case m.DeletionTimestamp != nil:
		want = v1beta1.PhaseDeleting
	case degraded && available:
		want = v1beta1.PhaseBlocked
	case degraded:
		want = v1beta1.PhaseDegraded
	case m.Spec.Paused:
		want = v1beta1.PhasePaused
	case progressing:
		want = v1beta1.PhaseProgressing
	}
	if s.Phase != want {
		t.Errorf("%s: phase %s, want %s", name, s.Phase, want)
	}
}

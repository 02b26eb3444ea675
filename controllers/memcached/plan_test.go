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
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// A small world, every state of which is tried: a Memcached of size 0 to 2, two
// shards that may exist, each with a ReplicaSet and a Service in one of these
// states and a pod in one of those, and each way in which the spec may hold the
// operator back.
var (
	objectStates = []string{"absent", "ours", "going", "orphaned", "predecessors", "foreign"}
	podStates    = []string{"none", "starting", "ready", "ready and going"}
	specStates   = []string{"good", "paused", "refused", "being deleted"}
)

const smallUID = types.UID("ours")

var smallOptions = manifests.Options{AgentImage: "agent", DefaultImage: "docker.io/library/memcached:1.6.45"}

// smallWorld makes one such state.
func smallWorld(size int32, spec string, sets, services [2]string, pods [2]string) *observed {
	m := &v1alpha1.Memcached{Spec: v1alpha1.MemcachedSpec{
		Size: &size, Memory: ptr.To(resource.MustParse("64Mi")), MaxItemSize: ptr.To(resource.MustParse("1Mi")),
		Connections: ptr.To[int32](1024), Threads: ptr.To[int32](4),
	}}
	m.Name, m.Namespace, m.UID, m.Generation = "cache", "default", smallUID, 7
	switch spec {
	case "paused":
		m.Spec.Paused = true
	case "refused":
		m.Spec.Version = "1.5.0"
	case "being deleted":
		m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	seen := &observed{memcached: m, objects: map[manifests.Key]object{}, pods: map[string][]*corev1.Pod{}, agents: map[string]agentapi.Status{}}
	for ordinal := range 2 {
		name := manifests.ShardName("cache", ordinal)
		addSmall(seen, manifests.Key{Kind: manifests.KindReplicaSet, Name: name}, sets[ordinal])
		addSmall(seen, manifests.Key{Kind: manifests.KindService, Name: name}, services[ordinal])
		set, ok := seen.objects[manifests.Key{Kind: manifests.KindReplicaSet, Name: name}]
		if pods[ordinal] == "none" || !ok || set.owner != ours && set.owner != orphaned {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-x", UID: "pod"}}
		if pods[ordinal] != "starting" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if pods[ordinal] == "ready and going" {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		seen.pods[name] = []*corev1.Pod{pod}
	}
	return seen
}

// addSmall adds an object in one of objectStates.
func addSmall(seen *observed, key manifests.Key, state string) {
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
		controlledBy("Memcached", "cache", smallUID)
	case "going":
		controlledBy("Memcached", "cache", smallUID)
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	case "orphaned":
		o.SetLabels(manifests.Labels("cache"))
	case "predecessors":
		controlledBy("Memcached", "cache", "another")
	case "foreign":
		controlledBy("Website", "shop", "another")
	}
	seen.objects[key] = object{o, ownershipOf(seen.memcached, o)}
}

// planOf returns what is planned for a small world.
func planOf(seen *observed) plan {
	seen.readShards(smallOptions.DefaultImage)
	return makePlan(seen, smallOptions)
}

// everySmallWorld calls try with each state: 3 sizes × 4 specs × 6⁴ objects × 4²
// pods, of which the pods of shards without a ReplicaSet of ours are left out.
func everySmallWorld(try func(name string, make func() *observed)) {
	for size := range int32(3) {
		for _, spec := range specStates {
			for _, set0 := range objectStates {
				for _, set1 := range objectStates {
					for _, service0 := range objectStates {
						for _, service1 := range objectStates {
							for _, pod0 := range podsOf(set0) {
								for _, pod1 := range podsOf(set1) {
									name := fmt.Sprintf("size %d, %s; ReplicaSets %s, %s; Services %s, %s; pods %s, %s", size, spec, set0, set1, service0, service1, pod0, pod1)
									try(name, func() *observed {
										return smallWorld(size, spec, [2]string{set0, set1}, [2]string{service0, service1}, [2]string{pod0, pod1})
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
	if set == "ours" || set == "orphaned" || set == "going" {
		return podStates
	}
	return podStates[:1]
}

// TestInEverySmallWorld holds what must be so whatever is seen.
func TestInEverySmallWorld(t *testing.T) {
	worlds := 0
	everySmallWorld(func(name string, make func() *observed) {
		worlds++
		if t.Failed() {
			return // the first world that fails is the one to look at
		}
		seen := make()
		p := planOf(seen)
		if spec := make().memcached.Spec; !equality.Semantic.DeepEqual(spec, seen.memcached.Spec) {
			t.Errorf("%s: the spec was changed:\n%s", name, cmp.Diff(spec, seen.memcached.Spec))
		}
		checkWrites(t, name, seen, p)
		checkStatus(t, name, seen, p)
	})
	t.Logf("%d worlds", worlds)
}

// checkWrites: only what is ours or free is written, only what is ours is ended,
// no shard that is asked for is ended, the highest ordinal goes first, and nothing
// at all is done where the spec holds the operator back.
func checkWrites(t *testing.T, name string, seen *observed, p plan) {
	t.Helper()
	m := seen.memcached
	for _, o := range p.applies {
		have, exists := seen.objects[o.Key]
		if exists && have.owner != ours && have.owner != orphaned || exists && p.uids[o.Key] != have.GetUID() || !exists && p.uids[o.Key] != "" {
			t.Errorf("%s: %s is written over uid %q", name, o.Key, p.uids[o.Key])
		}
	}
	last := int(^uint(0) >> 1)
	for _, o := range p.deletes {
		if _, isPod := o.(*corev1.Pod); isPod {
			t.Errorf("%s: pod %s is ended, in which memcached may run", name, o.GetName())
			continue
		}
		ordinal, ok := manifests.Ordinal(m.Name, o.GetName())
		if !ok || !metav1.IsControlledBy(o, m) || ordinal < int(*m.Spec.Size) {
			t.Errorf("%s: %s is ended", name, o.GetUID())
		}
		if ordinal > last {
			t.Errorf("%s: %s is ended after a lower one", name, o.GetName())
		}
		last = ordinal
	}
	held := m.Spec.Paused || m.DeletionTimestamp != nil || p.refused != nil
	if held && len(p.applies)+len(p.deletes) > 0 {
		t.Errorf("%s: %d writes and %d deletes although it is held back", name, len(p.applies), len(p.deletes))
	}
	if wantRefused := m.Spec.Version == "1.5.0"; wantRefused != (p.refused != nil) {
		t.Errorf("%s: refused: %+v", name, p.refused)
	}
}

// checkStatus: all conditions are there and of this generation, Available means
// that each shard has a pod that serves, what a person must do is told, and the
// same is told each time.
func checkStatus(t *testing.T, name string, seen *observed, p plan) {
	t.Helper()
	m := seen.memcached
	now := time.Unix(1_000_000, 0)
	s := makeStatus(seen, p, applied{}, now)
	for _, kind := range []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded} {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil || c.ObservedGeneration != m.Generation || c.Reason == "" || c.Message == "" {
			t.Errorf("%s: %s is %+v", name, kind, c)
			return
		}
	}
	serving := 0
	for ordinal := range int(*m.Spec.Size) {
		name := manifests.ShardName("cache", ordinal)
		service, ok := seen.objects[manifests.Key{Kind: manifests.KindService, Name: name}]
		leads := ok && service.owner != foreign && service.owner != predecessors && service.GetDeletionTimestamp() == nil
		if leads && slices.ContainsFunc(seen.pods[name], isReady) {
			serving++
		}
	}
	if available := meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionAvailable); available != (serving == int(*m.Spec.Size) && serving > 0) {
		t.Errorf("%s: Available is %t with %d of %d shards served", name, available, serving, *m.Spec.Size)
	}
	for _, server := range s.Servers {
		service, ok := seen.objects[manifests.Key{Kind: manifests.KindService, Name: server[:len("cache-0")]}]
		if !ok || service.owner != ours {
			t.Errorf("%s: %s is told to clients", name, server)
		}
	}
	if degraded := meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionDegraded); degraded != (p.refused != nil || len(p.conflicts) > 0) {
		t.Errorf("%s: Degraded is %t, refused %v, conflicts %v", name, degraded, p.refused, p.conflicts)
	}
	m.Status = s
	if again := makeStatus(seen, p, applied{}, now.Add(time.Hour)); !equality.Semantic.DeepEqual(s, again) {
		t.Errorf("%s: told again, it differs:\n%s", name, cmp.Diff(s, again))
	}
	if events := eventsOf(m, s); len(events)+len(shardEventsOf(m.Status.Shards, s.Shards)) > 0 {
		t.Errorf("%s: events without a change: %v", name, events)
	}
}

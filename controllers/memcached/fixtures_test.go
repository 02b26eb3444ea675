package memcached

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
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
	o := resources.NewObject(key.Kind)
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

// shardFixture is a Memcached of size 2, of which shard 0 exists, for tests to change before
// they plan a step.
type shardFixture struct {
	*observation
	set *appsv1.ReplicaSet
	pod *corev1.Pod
}

// newShardFixture returns a shard with a ready pod, named "first".
func newShardFixture(template, pod, update resources.PodRevision) *shardFixture {
	m := &v1alpha1.Memcached{}
	m.Name, m.Spec.Size = "cache", ptr.To[int32](2)
	f := &shardFixture{set: shardtest.ReplicaSet("cache-0", template), pod: shardtest.Pod("first", pod)}
	f.observation = &observation{memcached: m, now: time.Unix(1000, 0), updateRevision: update,
		pods: map[string][]*corev1.Pod{"cache-0": {f.pod}}, agents: map[string]agentwire.Status{}}
	return f
}

// observeShard returns the observation of the shard.
func (f *shardFixture) observeShard() shard.Observation {
	observer := shard.Observer{Status: &f.memcached.Status, Update: f.updateRevision}
	return observer.Observe(0, f.set, f.pods[f.set.Name])
}

// plan returns a plan with a decision for the shard.
func (f *shardFixture) plan(d rollout.Decision) plan {
	f.shards = []shard.Observation{f.observeShard()}
	return plan{decision: d, shards: shard.EvaluateAll(f.shards, shard.Inputs{
		Memcached: f.memcached, Update: f.updateRevision, Agents: f.agents, Now: f.now, Resizing: resources.ResizeAll,
	})}
}

// record sets the record of the shard's last update.
func (f *shardFixture) record(r shard.UpdateRecord) {
	shardtest.Annotate(f.pod, annotations.Update, shard.EncodeRecord(r))
}

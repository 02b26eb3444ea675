// Package plantest builds observations and plans for tests.
package plantest

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// UID of the Memcached of Observation.
const UID = types.UID("ours")

// Options of Plan.
var Options = resources.Options{AgentImage: "agent", DefaultImage: "docker.io/library/memcached:1.6.45"}

// Observation returns an observation of a Memcached and two shards, each with a ReplicaSet, a Service and
// a pod. The spec is "valid", "paused", "rejected" or "being deleted", a set and a service a state of
// AddObject, and a pod is "none", "starting", "ready" or "ready and terminating".
func Observation(size int32, spec string, sets, services [2]string, pods [2]string) *observation.Observation {
	m := &v1beta1.Memcached{Spec: v1beta1.MemcachedSpec{
		Size: &size, Memory: ptr.To(resource.MustParse("64Mi")), Config: v1beta1.MemcachedConfig{MaxItemSize: ptr.To(resource.MustParse("1Mi")),
			MaxConnections: ptr.To[int32](1024), Threads: ptr.To[int32](4)},
	}}
	m.Name, m.Namespace, m.UID, m.Generation = "cache", "default", UID, 7
	switch spec {
	case "paused":
		m.Spec.Paused = true
	case "rejected":
		m.Spec.Version = "1.5.0"
	case "being deleted":
		m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	obs := &observation.Observation{Memcached: m, Objects: map[resources.Key]observation.Object{}, Pods: map[string][]*corev1.Pod{}, Agents: map[string]agentwire.Status{}}
	for ordinal := range 2 {
		name := resources.ShardName("cache", ordinal)
		AddObject(obs, resources.Key{Kind: resources.KindReplicaSet, Name: name}, sets[ordinal])
		AddObject(obs, resources.Key{Kind: resources.KindService, Name: name}, services[ordinal])
		set, ok := obs.Objects[resources.Key{Kind: resources.KindReplicaSet, Name: name}]
		if pods[ordinal] == "none" || !ok || set.Owner != observation.Ours && set.Owner != observation.Orphaned {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-x", UID: "pod"}}
		if pods[ordinal] != "starting" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if pods[ordinal] == "ready and terminating" {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		obs.Pods[name] = []*corev1.Pod{pod}
	}
	return obs
}

// AddObject adds an object in a state: "absent", "ours", "terminating", "orphaned", "predecessors" or
// "foreign".
func AddObject(obs *observation.Observation, key resources.Key, state string) {
	if state == "absent" {
		return
	}
	o := resources.NewObject(key.Kind)
	o.SetName(key.Name)
	o.SetNamespace("default")
	o.SetUID(types.UID(state + " " + key.String()))
	controlledBy := func(kind, name string, uid types.UID) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}})
	}
	switch state {
	case "ours":
		controlledBy("Memcached", "cache", UID)
	case "terminating":
		controlledBy("Memcached", "cache", UID)
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	case "orphaned":
		o.SetLabels(resources.Labels("cache"))
	case "predecessors":
		controlledBy("Memcached", "cache", "another")
	case "foreign":
		controlledBy("Website", "shop", "another")
	}
	obs.Objects[key] = observation.Object{APIObject: o, Owner: observation.OwnershipOf(obs.Memcached, o)}
}

// Plan returns the plan for an observation.
func Plan(obs *observation.Observation) plan.Plan {
	Read(obs)
	return plan.Make(obs, Options)
}

// Shard is a Memcached of size 2, of which shard 0 exists, for tests to change before
// they plan a step.
type Shard struct {
	*observation.Observation
	Set *appsv1.ReplicaSet
	Pod *corev1.Pod
}

// NewShard returns a shard with a ready pod, named "first".
func NewShard(template, pod, update resources.PodRevision) *Shard {
	m := &v1beta1.Memcached{}
	m.Name, m.Spec.Size = "cache", ptr.To[int32](2)
	f := &Shard{Set: shardtest.ReplicaSet("cache-0", template), Pod: shardtest.Pod("first", pod)}
	f.Observation = &observation.Observation{Memcached: m, Now: time.Unix(1000, 0), UpdateRevision: update,
		Pods: map[string][]*corev1.Pod{"cache-0": {f.Pod}}, Agents: map[string]agentwire.Status{}}
	return f
}

// ObserveShard returns the observation of the shard.
func (f *Shard) ObserveShard() shard.Observation {
	observer := shard.Observer{Status: &f.Memcached.Status, Update: f.UpdateRevision}
	return observer.Observe(0, f.Set, f.Pods[f.Set.Name])
}

// Plan returns a plan with a decision for the shard.
func (f *Shard) Plan(d rollout.Decision) plan.Plan {
	f.Shards = []shard.Observation{f.ObserveShard()}
	return plan.Plan{Decision: d, Shards: shard.EvaluateAll(f.Shards, shard.Inputs{
		Memcached: f.Memcached, Update: f.UpdateRevision, Agents: f.Agents, Now: f.Now, Resizing: resources.ResizeAll,
	})}
}

// Record sets the record of the shard's last update.
func (f *Shard) Record(r shard.UpdateRecord) {
	shardtest.Annotate(f.Pod, annotations.Update, shard.EncodeRecord(r))
}

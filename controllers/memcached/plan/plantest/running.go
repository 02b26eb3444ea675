package plantest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Now is when an observation of Running is created.
var Now = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)

// Running returns an observation of the Memcached "cache" in steady state, for tests to change: each shard has a ready pod,
// such as "cache-0-x", whose start the status describes, and all objects are up to date. The plan for it has no actions.
func Running(t testing.TB, size int32, edits ...shardtest.Edit) *observation.Observation {
	t.Helper()
	m := &v1beta1.Memcached{}
	m.Spec = shardtest.Revision(t).Spec
	m.Spec.Pod.Image = ""
	m.Name, m.Namespace, m.UID, m.Generation = "cache", "default", UID, 7
	m.CreationTimestamp = metav1.NewTime(Now.Add(-7 * 24 * time.Hour))
	m.Spec.Size = &size
	for _, edit := range edits {
		edit(&m.Spec)
	}
	obs := &observation.Observation{Memcached: m, Now: Now, Objects: map[resources.Key]observation.Object{}, Pods: map[string][]*corev1.Pod{},
		Agents: map[string]agentwire.Status{}, Restores: map[string]observation.Object{}, Answers: map[string]agentwire.Status{},
		Owned: metav1.ObjectMeta{Namespace: "default", Labels: resources.Labels("cache")}, Unreachable: map[string]bool{}, Memory: observation.Memory{Secrets: map[types.UID]agentwire.Secrets{}, UpToDate: observation.UpToDate{}}}
	Read(obs)
	desired := make([]resources.Shard, size)
	for ordinal := range desired {
		desired[ordinal] = resources.Shard{Revision: obs.UpdateRevision, Annotations: map[string]string{}}
		name := resources.ShardName("cache", ordinal)
		obs.Pods[name] = []*corev1.Pod{Pod(obs, name, "x")}
		m.Status.Shards = append(m.Status.Shards, v1beta1.ShardStatus{Name: name, PodName: name + "-x", Ready: true, UpToDate: true, StartResult: v1beta1.StartCold,
			ContainerID: shardtest.RunningContainer, Revision: obs.UpdateRevision.Hash(), StartTime: ptr.To(v1beta1.Time(Now.Add(-time.Hour)))})
	}
	for _, want := range resources.NewBuilder(m, Options).Desired(desired) {
		AddObject(obs, want.Key, "ours")
		have := obs.Objects[want.Key]
		if set := obs.ReplicaSet(want.Key.Name); want.Shard != nil {
			set.Spec.Template.Annotations = resources.PodAnnotations(obs.UpdateRevision)
		}
		if service, ok := have.APIObject.(*corev1.Service); ok {
			service.Spec.ClusterIPs = []string{"10.96.0.1"}
		}
		obs.UpToDate[want.Key] = observation.NewVersion(m, want, have)
	}
	m.Status.Image, m.Status.Size, m.Status.ReadyShards, m.Status.UpdatedShards = obs.Image.Reference, size, size, size
	Read(obs)
	return obs
}

// Pod returns another ready pod of a shard, with the update revision.
func Pod(obs *observation.Observation, shard, suffix string) *corev1.Pod {
	pod := shardtest.Pod(shard+"-"+suffix, obs.UpdateRevision)
	pod.Namespace, pod.Status.PodIP, pod.Spec.NodeName = obs.Memcached.Namespace, "10.0.0.1", "node1"
	pod.Annotations[annotations.Handover] = string(v1beta1.HandoverStrict)
	pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	return pod
}

// ActivePod returns the only pod of a shard.
func ActivePod(obs *observation.Observation, shard string) *corev1.Pod { return obs.Pods[shard][0] }

// Answer lets the agent of a shard's pod report a start. StartWarm and StartCold are of another container.
func Answer(obs *observation.Observation, shard string, result agentwire.StartResult) {
	pod := ActivePod(obs, shard)
	pod.Status.ContainerStatuses[0].ContainerID = "containerd://another"
	obs.Agents[pod.Name] = agentwire.Status{Phase: agentwire.PhaseServing, PodUID: string(pod.UID), Version: obs.Image.Version, Arguments: obs.UpdateRevision.Arguments,
		Start: agentwire.Start{Result: result, At: Now.Add(-time.Minute)}}
}

// Read sets what follows from the other fields of an observation, as the observer does. It pauses the Memcached itself if its spec is
// rejected, until the next Read.
func Read(obs *observation.Observation) {
	spec := &obs.Memcached.Spec
	if obs.Rejected != nil {
		spec.Paused = obs.Paused
	}
	obs.Paused = spec.Paused
	obs.Image, obs.ImageError = resources.ResolveImage(spec.Pod.Image, spec.Version, Options.DefaultImage)
	obs.ReadShards()
	if obs.Rejected = plan.SpecProblem(obs, Options); obs.Rejected != nil {
		spec.Paused = true
		obs.ReadShards()
	}
}

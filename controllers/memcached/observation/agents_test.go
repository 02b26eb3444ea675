package observation_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Querying an agent costs the shard a little and the reconcile a round trip.
func TestAgentOfShardInSteadyStateIsNotQueried(t *testing.T) {
	revision := shardtest.Revision(t)
	mountTLS := func(f *plantest.Shard) {
		f.Memcached.Spec.TLS = v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}
		shardtest.MountTLS(f.Pod, "cache-tls")
	}
	purges := func(f *plantest.Shard, phase v1beta1.TransferPhase) {
		f.Pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
		f.Memcached.Status.Purge = &v1beta1.PurgeStatus{Phase: phase}
	}
	for name, c := range map[string]struct {
		change func(f *plantest.Shard)
		want   bool
	}{
		"steady state":                  {func(*plantest.Shard) {}, false},
		"the start is not recorded":     {func(f *plantest.Shard) { f.Memcached.Status.Shards = nil }, true},
		"another container":             {func(f *plantest.Shard) { f.Pod.Status.ContainerStatuses[0].ContainerID = "containerd://next" }, true},
		"a restart is requested":        {func(f *plantest.Shard) { f.Pod.Annotations[v1beta1.AnnotationRestart] = "now" }, true},
		"another revision was recorded": {func(f *plantest.Shard) { f.Memcached.Status.Shards[0].Revision = "before" }, true},
		"a stop is announced":           {func(f *plantest.Shard) { f.Pod.Annotations[annotations.Stop] = "token" }, true},
		"the shard is updated next":     {func(f *plantest.Shard) { f.UpdateRevision = shardtest.Revision(t, shardtest.Version("1.6.38")) }, true},
		"the pod is not ready":          {func(f *plantest.Shard) { f.Memcached.Status.Shards = nil; shardtest.Starting(f.Pod) }, false},
		"a certificate takes a restart": {func(f *plantest.Shard) {
			f.Secrets = map[types.UID]agentwire.Secrets{f.Pod.UID: {Certificate: agentwire.Certificate{Offered: "0123456789abcdef", RestartRequired: "its key is of another type"}}}
		}, true},
		"its report of Secrets is due": {mountTLS, true},
		"items are purged":             {func(f *plantest.Shard) { purges(f, v1beta1.TransferRunning) }, true},
		"items were purged":            {func(f *plantest.Shard) { purges(f, v1beta1.TransferComplete) }, false},
		"a request to get items is withdrawn": {func(f *plantest.Shard) {
			f.Pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
			f.Pod.Annotations[annotations.Scaling] = agentwire.Scaling{Written: 1}.String()
		}, true},
		"its report of Secrets is recent": {func(f *plantest.Shard) {
			mountTLS(f)
			f.Secrets = map[types.UID]agentwire.Secrets{f.Pod.UID: {ReadAt: f.Now}}
		}, false},
		"the image can't be resolved": {func(f *plantest.Shard) {
			f.ImageError, f.Memcached.Spec, f.Memcached.Status.Image = errors.New("not an image"), revision.Spec, revision.Image.Reference
			f.UpdateRevision = resources.PodRevision{}
		}, false},
		"the pod has no address": {func(f *plantest.Shard) { f.Memcached.Status.Shards = nil; f.Pod.Status.PodIP = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := plantest.NewShard(revision, revision, revision)
			f.Pod.Status.PodIP = "10.0.0.1"
			f.Memcached.Status.Shards = []v1beta1.ShardStatus{{Name: "cache-0", StartResult: v1beta1.StartCold,
				ContainerID: shardtest.RunningContainer, Revision: revision.Hash()}}
			c.change(f)
			f.Shards = []shard.Observation{f.ObserveShard()}
			if got := len(observation.AgentsToQuery(f.Observation)) > 0; got != c.want {
				t.Errorf("queried: %v", got)
			}
		})
	}
}

// Also if the record is on the ReplicaSet, because the shard was replaced.
func TestHitRatioIsQueriedFromTheShardThatWasUpdatedLast(t *testing.T) {
	old, update := shardtest.Revision(t, shardtest.Memory("64Mi")), shardtest.Revision(t, shardtest.Memory("128Mi"))
	for _, onSet := range []bool{false, true} {
		f := plantest.NewShard(update, update, update)
		record := shard.EncodeRecord(shard.UpdateRecord{Revision: update.Hash(), At: f.Now, Method: rollout.Replace})
		if onSet {
			shardtest.Annotate(f.Set, annotations.Update, record)
		} else {
			shardtest.Annotate(f.Pod, annotations.Update, record)
		}
		f.Pod.Status.PodIP = "10.0.0.1"
		m := f.Memcached
		m.Spec.UpdateStrategy.HitRatioGate = v1beta1.HitRatioGate{Mode: v1beta1.HitRatioGateStop}
		for name, revision := range map[string]string{"cache-0": update.Hash(), "cache-1": old.Hash()} {
			m.Status.Shards = append(m.Status.Shards, v1beta1.ShardStatus{Name: name, StartResult: v1beta1.StartCold,
				ContainerID: shardtest.RunningContainer, Revision: revision})
		}
		waiting := plantest.NewShard(old, old, update)
		waiting.Pod.Name, waiting.Pod.Status.PodIP, waiting.Set.Name = "waiting", "10.0.0.2", "cache-1"
		waiting.Pods["cache-1"] = waiting.Pods["cache-0"]
		f.Shards = []shard.Observation{f.ObserveShard(), waiting.ObserveShard()}
		var names []string
		for _, pod := range observation.AgentsToQuery(f.Observation) {
			names = append(names, pod.Name)
		}
		if diff := cmp.Diff([]string{"first", "waiting"}, names); diff != "" {
			t.Errorf("record on the ReplicaSet: %v (-want +got):\n%s", onSet, diff)
		}
	}
}

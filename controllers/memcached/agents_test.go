package memcached

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Querying an agent costs the shard a little and the reconcile a round trip.
func TestAgentOfShardInSteadyStateIsNotQueried(t *testing.T) {
	revision := shardtest.Revision(t)
	for name, c := range map[string]struct {
		change func(f *shardFixture)
		want   bool
	}{
		"steady state":                  {func(*shardFixture) {}, false},
		"the start is not recorded":     {func(f *shardFixture) { f.memcached.Status.Shards = nil }, true},
		"another container":             {func(f *shardFixture) { f.pod.Status.ContainerStatuses[0].ContainerID = "containerd://next" }, true},
		"a restart is requested":        {func(f *shardFixture) { f.pod.Annotations[v1alpha1.AnnotationRestart] = "now" }, true},
		"another revision was recorded": {func(f *shardFixture) { f.memcached.Status.Shards[0].Revision = "before" }, true},
		"a stop is announced":           {func(f *shardFixture) { f.pod.Annotations[annotations.Stop] = "token" }, true},
		"the shard is updated next":     {func(f *shardFixture) { f.updateRevision = shardtest.Revision(t, shardtest.Version("1.6.38")) }, true},
		"the pod is not ready":          {func(f *shardFixture) { f.memcached.Status.Shards = nil; shardtest.Starting(f.pod) }, false},
		"the pod has no address":        {func(f *shardFixture) { f.memcached.Status.Shards = nil; f.pod.Status.PodIP = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newShardFixture(revision, revision, revision)
			f.pod.Status.PodIP = "10.0.0.1"
			f.memcached.Status.Shards = []v1alpha1.ShardStatus{{Name: "cache-0", Start: v1alpha1.StartCold,
				ContainerID: shardtest.RunningContainer, Revision: revision.Hash()}}
			c.change(f)
			f.shards = []shard.Observation{f.observeShard()}
			if got := len(agentsToQuery(f.observation)) > 0; got != c.want {
				t.Errorf("queried: %v", got)
			}
		})
	}
}

// Also if the record is on the ReplicaSet, because the shard was replaced.
func TestHitRatioIsQueriedFromTheShardThatWasUpdatedLast(t *testing.T) {
	old, update := shardtest.Revision(t, shardtest.Memory("64Mi")), shardtest.Revision(t, shardtest.Memory("128Mi"))
	for _, onSet := range []bool{false, true} {
		f := newShardFixture(update, update, update)
		record := shard.EncodeRecord(shard.UpdateRecord{Revision: update.Hash(), At: f.now, Method: rollout.Replace})
		if onSet {
			shardtest.Annotate(f.set, annotations.Update, record)
		} else {
			shardtest.Annotate(f.pod, annotations.Update, record)
		}
		f.pod.Status.PodIP = "10.0.0.1"
		m := f.memcached
		m.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{HitRatioGate: &v1alpha1.HitRatioGate{}}
		for name, revision := range map[string]string{"cache-0": update.Hash(), "cache-1": old.Hash()} {
			m.Status.Shards = append(m.Status.Shards, v1alpha1.ShardStatus{Name: name, Start: v1alpha1.StartCold,
				ContainerID: shardtest.RunningContainer, Revision: revision})
		}
		waiting := newShardFixture(old, old, update)
		waiting.pod.Name, waiting.pod.Status.PodIP, waiting.set.Name = "waiting", "10.0.0.2", "cache-1"
		waiting.pods["cache-1"] = waiting.pods["cache-0"]
		f.shards = []shard.Observation{f.observeShard(), waiting.observeShard()}
		var names []string
		for _, pod := range agentsToQuery(f.observation) {
			names = append(names, pod.Name)
		}
		if diff := cmp.Diff([]string{"first", "waiting"}, names); diff != "" {
			t.Errorf("record on the ReplicaSet: %v (-want +got):\n%s", onSet, diff)
		}
	}
}

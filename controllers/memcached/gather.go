package memcached

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// A shard comes up in small steps: it has a pod, a node, a container that runs, and
// then it serves. Each told by itself, the shards of a new Memcached are a dozen
// writes of its status, and those of a thousand keep the API server from making
// pods. So small news wait a while for those that follow. What makes the Memcached
// Available, or anything else that a person or a program acts on, is told at once,
// and all that waits with it.
//
// The status is the operator's memory too. Nothing is small that another reconcile
// decides by: a shard's agent is asked again until its start is told, and the first
// start of a shard follows no other that it could be compared with.

// gathers is how long small news wait at most, from when they came about: the shards
// of one Memcached come to serve within that on nodes that have the image.
const gathers = 10 * time.Second

// gather returns how long it may wait that a status is written; 0 is not at all.
func gather(seen *observed, p plan, a applied, next v1alpha1.MemcachedStatus) time.Duration {
	was := seen.memcached.Status
	coming := comingUp(was.Shards, next.Shards)
	switch {
	case len(coming) == 0 || !saysTheSame(was, next, coming):
		return 0
	case seen.memcached.DeletionTimestamp != nil || isBootstrapping(next.Bootstrap) || !p.decision.Done():
		return 0
	case len(a.made) > 0 || len(a.failures) > 0 || len(a.refusals) > 0 || len(p.rewarms) > 0:
		return 0
	}
	wait := gathers
	for name := range coming {
		// A clock that is not the API server's may be behind it.
		wait = min(wait, gathers-seen.now.Sub(lastStep(seen, name)).Abs())
	}
	return max(wait, 0)
}

// comingUp returns, by name, what was told of those shards of which there are small
// news: they did not serve, nothing is the matter with them, and no start was told
// that the next one follows.
func comingUp(was, next []v1alpha1.ShardStatus) map[string]v1alpha1.ShardStatus {
	coming := map[string]v1alpha1.ShardStatus{}
	for _, shard := range next {
		last, known := shardNamed(was, shard.Name)
		isCalm := shard.Message == "" || shard.Message == messageNoPod || shard.Message == messageStarting
		isFirst := last.Start == "" || last.ContainerID == shard.ContainerID && last.Restart == shard.Restart && last.StartedAt.Equal(shard.StartedAt)
		if known && !last.Ready && isCalm && isFirst && !equality.Semantic.DeepEqual(last, shard) {
			coming[shard.Name] = last
		}
	}
	return coming
}

// saysTheSame says whether two statuses are the same but for small news: shards that
// come up, how many of them serve, and sentences about that.
func saysTheSame(was, next v1alpha1.MemcachedStatus, coming map[string]v1alpha1.ShardStatus) bool {
	next = *next.DeepCopy()
	for i, shard := range next.Shards {
		if last, ok := coming[shard.Name]; ok {
			next.Shards[i] = last
			delete(next.Revisions, shard.Name)
		}
	}
	revisions := maps.Clone(was.Revisions)
	maps.DeleteFunc(revisions, func(name, _ string) bool { _, ok := coming[name]; return ok })
	was.Revisions = revisions
	next.Nodes, next.ReadySize, next.Ready = was.Nodes, was.ReadySize, was.Ready
	for _, kind := range []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing} {
		before, after := meta.FindStatusCondition(was.Conditions, kind), meta.FindStatusCondition(next.Conditions, kind)
		if before != nil && after != nil {
			after.Message = before.Message
		}
	}
	return equality.Semantic.DeepEqual(was, next)
}

// lastStep returns when the pod of a shard last came a step further or, without one,
// when its ReplicaSet was made.
func lastStep(seen *observed, shard string) time.Time {
	var last time.Time
	if set, ok := seen.objects[manifests.Key{Kind: manifests.KindReplicaSet, Name: shard}]; ok {
		last = set.GetCreationTimestamp().Time
	}
	for _, pod := range seen.pods[shard] {
		last = latest(last, pod.CreationTimestamp.Time)
		for _, c := range pod.Status.Conditions {
			last = latest(last, c.LastTransitionTime.Time)
		}
	}
	return last
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

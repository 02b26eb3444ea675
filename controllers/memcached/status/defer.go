package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// A shard starts in small steps: it has a pod, a node, a running container, and then it is
// ready. Reported one by one, the shards of a new Memcached cause a dozen status writes, and
// those of a thousand keep the API server from creating pods. So minor updates are batched:
// a new Memcached of three shards costs 2.00 status writes instead of 4.45 (ADR 8). What makes the Memcached Available, or anything else that users or programs react
// to, is written immediately, together with what was batched.
//
// The status is also the operator's record. No update is minor that another reconcile
// decides by: a shard's agent is queried until its start is recorded, and the first start of
// a shard has no previous one to compare with.

// Debounce is how long minor updates wait at most: the shards of one Memcached become
// ready within that on nodes that have the image.
const Debounce = 10 * time.Second

// Messages of a shard that is starting.
const (
	messageNoPod    = "no pod yet"
	messageStarting = "starting"
)

// Defer returns how long to wait before the status is written; 0 is not at all.
func Defer(obs *plan.Observation, p plan.Plan, res plan.Result, next v1alpha1.MemcachedStatus) time.Duration {
	was := obs.Memcached.Status
	starting := startingShards(&was, next.Shards)
	switch {
	case len(starting) == 0 || !equalExceptStarting(was, next, starting):
		return 0
	case obs.Memcached.DeletionTimestamp != nil || next.Bootstrap.IsRunning() || !p.Decision.Done():
		return 0
	case len(res.Applied) > 0 || len(res.Failures) > 0 || len(res.Rejections) > 0 || len(p.Refills.Lost) > 0:
		return 0
	}
	wait := Debounce
	for name := range starting {
		// The operator's clock may be behind the API server's.
		elapsed := obs.Now.Sub(shard.LastTransition(obs.ReplicaSet(name), obs.Pods[name])).Abs()
		wait = min(wait, Debounce-elapsed)
	}
	return max(wait, 0)
}

// startingShards returns, by name, the previous status of the shards with minor updates: they
// weren't ready, have no problem, and have no previous start.
func startingShards(was *v1alpha1.MemcachedStatus, next []v1alpha1.ShardStatus) map[string]v1alpha1.ShardStatus {
	starting := map[string]v1alpha1.ShardStatus{}
	for _, s := range next {
		last, known := shard.StatusOf(was, s.Name)
		isHealthy := s.Message == "" || s.Message == messageNoPod || s.Message == messageStarting
		isFirst := last.Start == "" || last.ContainerID == s.ContainerID && last.Restart == s.Restart && last.StartedAt.Equal(s.StartedAt)
		if known && !last.Ready && isHealthy && isFirst && !equality.Semantic.DeepEqual(last, s) {
			starting[s.Name] = last
		}
	}
	return starting
}

// equalExceptStarting reports whether two statuses differ only in shards that are starting,
// how many shards are ready, and messages about that.
func equalExceptStarting(was, next v1alpha1.MemcachedStatus, starting map[string]v1alpha1.ShardStatus) bool {
	next = *next.DeepCopy()
	for i, s := range next.Shards {
		if last, ok := starting[s.Name]; ok {
			next.Shards[i] = last
		}
	}
	next.Nodes, next.ReadySize, next.UpdatedSize, next.Ready = was.Nodes, was.ReadySize, was.UpdatedSize, was.Ready
	for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing} {
		before, after := meta.FindStatusCondition(was.Conditions, name), meta.FindStatusCondition(next.Conditions, name)
		if before != nil && after != nil {
			after.Message = before.Message
		}
	}
	return equality.Semantic.DeepEqual(was, next)
}

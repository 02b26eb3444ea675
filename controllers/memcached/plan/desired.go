package plan

import (
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/podresult"
)

// desiredShards returns the desired ReplicaSets of all shards after the decision, by ordinal. New pods
// serve the list of auto discovery, and those of new shards get their keys first.
func desiredShards(obs *observation.Observation, shards []shard.State, d rollout.Decision, list string, scaling Scaling) []resources.Shard {
	desired := make([]resources.Shard, resources.SizesOf(obs.Memcached).Exist)
	for ordinal := range desired {
		desired[ordinal].Revision = obs.UpdateRevision
		if len(shards) > 0 && shards[0].Ordinal == 0 { // an update reaches shard 0 first
			desired[ordinal].Revision = shards[0].Template
		}
	}
	for i := range shards {
		desired[shards[i].Ordinal] = desiredShard(obs, &shards[i], d)
	}
	for ordinal := range desired {
		desired[ordinal].Discovery = list
		if s := scaling.Status; s != nil && ordinal >= int(s.From) { // others are annotated while they serve
			desired[ordinal].Scaling = scaling.requests[ordinal]
		}
	}
	return desired
}

func desiredShard(obs *observation.Observation, s *shard.State, d rollout.Decision) resources.Shard {
	want := resources.Shard{Revision: s.Template, Annotations: map[string]string{}, Surge: s.Surges || awaitsCount(s)}
	if text, ok := s.Set.Annotations[annotations.Update]; ok {
		want.Annotations[annotations.Update] = text
	}
	if s.Rollout.Failed != "" {
		want.Annotations[annotations.Failed] = s.Set.Annotations[annotations.Failed]
	}
	if at, _ := s.RetryCreation(obs.Now); at != "" {
		want.Annotations[annotations.CreationRetried] = at
	}
	if d.Shard != s.Name {
		return want
	}
	switch {
	case d.Step == rollout.StepPromoteTemplate:
		want.Revision, want.Surge = s.PodRevision, false
		if s.MoveStarted { // the pod stays
			delete(want.Annotations, annotations.Update)
		}
	case d.Step == rollout.StepRecordFailure:
		want.Annotations[annotations.Failed] = shard.EncodeRecord(s.NewFailureRecord(d.Message))
	case d.Step == rollout.StepSurge, d.Step == rollout.StepRecreate && !d.RollingBack:
		// The next pod is created from the update revision. When that is wanted first, it is
		// recorded: the record of an update in place is obsolete then.
		want.Revision, want.Surge = obs.UpdateRevision, want.Surge || d.Step == rollout.StepSurge
		if s.StartsReplacement() {
			record := s.NewUpdateRecord(obs.UpdateRevision, rollout.Replace, obs.Now)
			record.Rewritten = s.Rewritten
			record.KeepsItems = d.Step == rollout.StepSurge && d.Change.KeepsItems
			if s.MoveRequested {
				record.MovedPod = s.Active.Name
			}
			want.Annotations[annotations.Update] = shard.EncodeRecord(record)
		}
	}
	want.Surge = want.Surge && !s.HasSurplus
	if s.MoveRequested && (want.Surge || s.MoveStarted && d.Step != rollout.StepPromoteTemplate) {
		want.AvoidNode = s.Active.Spec.NodeName
	}
	return want
}

// awaitsCount reports whether a ReplicaSet has two pods, and its controller counts one of them that has terminated since. A controller whose
// watch of pods is late must not want one pod yet: it would delete another one, with the items that it has taken over.
func awaitsCount(s *shard.State) bool {
	live := 0
	for _, pod := range s.Pods {
		if pod.DeletionTimestamp == nil && !podresult.IsFinished(pod) {
			live++
		}
	}
	return ptr.Deref(s.Set.Spec.Replicas, 1) > 1 && int(s.Set.Status.Replicas) > live
}

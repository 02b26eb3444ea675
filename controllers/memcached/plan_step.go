package memcached

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// planStep returns the writes of a decision, except those to the shard's ReplicaSet: see
// desiredShard.
func planStep(obs *observation, shards []shard.State, d rollout.Decision, checks preflight.Result) Actions {
	a := Actions{RequeueAfter: d.RequeueAfter}
	if d.Step == rollout.StepPreflight {
		for _, pod := range checks.Create {
			a.Apply = append(a.Apply, apply{Object: pod})
		}
		return a
	}
	s := shard.Named(shards, d.Shard)
	if s == nil {
		return a
	}
	to := obs.updateRevision
	if d.RollingBack {
		to = s.Template
	}
	switch d.Step {
	case rollout.StepResize:
		a.Patch = append(a.Patch, resize(s.Active, to))
	case rollout.StepAnnounceStop:
		if token := s.StopToken(to, obs.now); token != s.Active.Annotations[annotations.Stop] {
			a.Patch = append(a.Patch, annotate(s.Active, annotations.Stop, token))
		}
	case rollout.StepRevert:
		if s.Rollout.StopAnnounced {
			a.Patch = append(a.Patch, annotate(s.Active, annotations.Stop, nil))
		} else {
			a.Patch = append(a.Patch, resize(s.Active, s.PodRevision))
		}
	case rollout.StepUpdateInPlace:
		record := s.NewUpdateRecord(to, d.Change.Method, obs.now)
		if s.RestartToken != "" {
			record.Restart, record.Attempt = s.RestartToken, shard.RetryToken(obs.memcached)
		}
		a.Patch = append(a.Patch, updateInPlace(s, to, record))
	case rollout.StepDrain:
		if !s.Draining {
			a.Patch = append(a.Patch, annotate(s.Active, corev1.PodDeletionCost, shard.DrainedPodDeletionCost))
		}
	case rollout.StepHandOver:
		a.Delete = append(a.Delete, s.Active)
	case rollout.StepRecreate:
		if s.Rollout.Template == to.Hash() && s.Active != nil {
			a.Delete = append(a.Delete, s.Active)
		}
	}
	return a
}

// planRepeats writes updates again that kubelets may have missed, to pods that the plan doesn't change anyway.
func planRepeats(now time.Time, shards []shard.State, patched []podPatch) (a Actions) {
	for i := range shards {
		s := &shards[i]
		record, retryIn := s.Repeat(now)
		a.RequeueAfter = soonest(a.RequeueAfter, retryIn)
		if record != nil && !slices.ContainsFunc(patched, func(other podPatch) bool { return other.pod.UID == s.Active.UID }) {
			a.Patch = append(a.Patch, annotate(s.Active, annotations.Update, shard.EncodeRecord(record)))
		}
	}
	return a
}

// desiredShards returns the desired ReplicaSets of all shards after the decision, by ordinal. New pods
// delay their readiness until holdUntil and serve the list of auto discovery.
func desiredShards(obs *observation, shards []shard.State, d rollout.Decision, holdUntil, list string) []resources.Shard {
	desired := make([]resources.Shard, *obs.memcached.Spec.Size)
	for ordinal := range desired {
		desired[ordinal].Revision = obs.updateRevision
		if len(shards) > 0 && shards[0].Ordinal == 0 { // an update reaches shard 0 first
			desired[ordinal].Revision = shards[0].Template
		}
	}
	for i := range shards {
		desired[shards[i].Ordinal] = desiredShard(obs, &shards[i], d)
	}
	for ordinal := range desired {
		desired[ordinal].HoldUntil, desired[ordinal].Discovery = holdUntil, list
	}
	return desired
}

func desiredShard(obs *observation, s *shard.State, d rollout.Decision) resources.Shard {
	update := obs.updateRevision.Hash()
	want := resources.Shard{Revision: s.Template, Annotations: map[string]string{}, Surge: s.Surges}
	if text, ok := s.Set.Annotations[annotations.Update]; ok {
		want.Annotations[annotations.Update] = text
	}
	if s.Rollout.Failed != "" {
		want.Annotations[annotations.Failed] = s.Set.Annotations[annotations.Failed]
	}
	if d.Shard != s.Name {
		return want
	}
	switch {
	case d.Step == rollout.StepPromoteTemplate:
		want.Revision, want.Surge = s.PodRevision, false
		if s.Moving { // the pod stays
			delete(want.Annotations, annotations.Update)
		}
	case d.Step == rollout.StepRecordFailure:
		want.Annotations[annotations.Failed] = shard.EncodeRecord(shard.FailureRecord{Revision: update, Attempt: shard.RetryToken(obs.memcached), Restart: s.LostByRestart, Message: d.Message})
	case d.Step == rollout.StepSurge, d.Step == rollout.StepRecreate && !d.RollingBack:
		// The next pod is created from the update revision. When that is wanted first, it is
		// recorded: the record of an update in place is obsolete then.
		want.Revision, want.Surge = obs.updateRevision, want.Surge || d.Step == rollout.StepSurge
		if s.Active != nil && (s.Rollout.Template != update || !s.ReplacementStarted(update) || s.Rollout.Moves && !s.Moving) {
			record := s.NewUpdateRecord(obs.updateRevision, rollout.Replace, obs.now)
			record.KeepsItems = d.Step == rollout.StepSurge && d.Change.KeepsItems
			if s.Moves {
				record.Moves = s.Active.Name
			}
			want.Annotations[annotations.Update] = shard.EncodeRecord(record)
		}
	}
	if s.Moves && (want.Surge || s.Moving && d.Step != rollout.StepPromoteTemplate) {
		want.AvoidNode = s.Active.Spec.NodeName
	}
	return want
}

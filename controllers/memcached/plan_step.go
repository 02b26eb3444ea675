package memcached

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// rolloutInput returns what the rollout decides by.
func rolloutInput(obs *observation, shards []shard.State) rollout.Input {
	m := obs.memcached
	in := rollout.Input{Target: obs.updateRevision.Hash(), Paused: m.Spec.Paused, AllowItemLoss: shard.AllowsItemLoss(m), SinceUpdate: -1}
	for _, s := range shards {
		in.Shards = append(in.Shards, s.Rollout)
	}
	for ordinal := range int(*m.Spec.Size) {
		if name := resources.ShardName(m.Name, ordinal); shard.Named(shards, name) == nil {
			in.MissingShard = name
			break
		}
	}
	last := shard.LastUpdated(shards)
	if last != nil {
		in.SinceUpdate = max(obs.now.Sub(last.Record.At), 0)
	}
	strategy := m.Spec.UpdateStrategy
	if strategy == nil {
		return in
	}
	in.MinInterval = v1alpha1.Seconds(strategy.MinIntervalSeconds, 0)
	var err error
	if in.WindowOpensIn, err = windowOpensIn(strategy.MaintenanceWindows, obs.now); err != nil {
		in.Invalid = err.Error()
	}
	in.Recovery = hitRatioRecovery(strategy.HitRatioGate, last, in.Target, obs.now)
	return in
}

// hitRatioRecovery returns how the hit ratio of the shard that was updated last has
// recovered. It is nil when the gate doesn't apply: it isn't configured, the shard had too
// few requests before the update, or the update was long ago and to another revision, so that
// clients may request other keys by now.
func hitRatioRecovery(gate *v1alpha1.HitRatioGate, last *shard.State, target string, now time.Time) *rollout.Recovery {
	if gate == nil || last == nil || last.Record.Gets < int64(ptr.Deref(gate.MinRequests, 1000)) {
		return nil
	}
	r := &rollout.Recovery{
		Shard: last.Name, Before: float64(last.Record.Hits) / float64(last.Record.Gets),
		Share: float64(ptr.Deref(gate.Percent, 90)) / 100, MinRequests: int64(ptr.Deref(gate.MinRequests, 1000)),
		Waited: now.Sub(last.Record.At), Timeout: v1alpha1.Seconds(gate.TimeoutSeconds, 600),
		Continue: gate.OnTimeout == v1alpha1.TimeoutContinue,
	}
	if last.Record.Revision != target && r.Waited >= r.Timeout {
		return nil
	}
	if last.Agent != nil && last.Agent.RecentGets > 0 {
		r.Requests, r.Now = last.Agent.RecentGets, float64(last.Agent.RecentHits)/float64(last.Agent.RecentGets)
	}
	return r
}

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
		a.Patch = append(a.Patch, updateInPlace(s, to, s.NewUpdateRecord(to, d.Change.Method, obs.now)))
	case rollout.StepDrain:
		if !s.Draining {
			a.Patch = append(a.Patch, annotate(s.Active, corev1.PodDeletionCost, shard.DrainedPodDeletionCost))
		}
	case rollout.StepRecreate:
		if s.Rollout.Template == to.Hash() && s.Active != nil {
			a.Delete = append(a.Delete, s.Active)
		}
	}
	return a
}

// desiredShards returns the desired ReplicaSets of all shards after the decision.
func desiredShards(obs *observation, p plan) []resources.Shard {
	shards := make([]resources.Shard, *obs.memcached.Spec.Size)
	for ordinal := range shards {
		shards[ordinal] = desiredShard(obs, p, ordinal)
		shards[ordinal].HoldUntil = p.bootstrap.holdUntil
	}
	return shards
}

func desiredShard(obs *observation, p plan, ordinal int) resources.Shard {
	s := shard.Named(p.shards, resources.ShardName(obs.memcached.Name, ordinal))
	if s == nil {
		// A new shard is like shard 0, which an update reaches first.
		if first := shard.Named(p.shards, resources.ShardName(obs.memcached.Name, 0)); first != nil {
			return resources.Shard{Revision: first.Template}
		}
		return resources.Shard{Revision: obs.updateRevision}
	}
	update := obs.updateRevision.Hash()
	want := resources.Shard{Revision: s.Template, Annotations: map[string]string{}, Surge: s.NeedsSurge(update)}
	if text, ok := s.Set.Annotations[annotations.Update]; ok {
		want.Annotations[annotations.Update] = text
	}
	if s.Rollout.Failed != "" {
		want.Annotations[annotations.Failed] = s.Set.Annotations[annotations.Failed]
	}
	if p.decision.Shard != s.Name {
		return want
	}
	switch p.decision.Step {
	case rollout.StepPromoteTemplate:
		want.Revision, want.Surge = s.PodRevision, false
	case rollout.StepRecordFailure:
		want.Annotations[annotations.Failed] = shard.EncodeRecord(shard.FailureRecord{
			Revision: update, Attempt: shard.RetryToken(obs.memcached), Message: p.decision.Message})
	case rollout.StepSurge:
		return withReplacement(want, s, obs, true)
	case rollout.StepRecreate:
		if !p.decision.RollingBack {
			return withReplacement(want, s, obs, want.Surge)
		}
	}
	return want
}

// withReplacement has the shard's next pod created from the update revision, and records
// when that was first wanted: the record of an update in place is obsolete then.
func withReplacement(want resources.Shard, s *shard.State, obs *observation, surge bool) resources.Shard {
	want.Revision, want.Surge = obs.updateRevision, surge
	update := obs.updateRevision.Hash()
	if s.Active != nil && (s.Rollout.Template != update || !s.ReplacementStarted(update)) {
		want.Annotations[annotations.Update] = shard.EncodeRecord(s.NewUpdateRecord(obs.updateRevision, rollout.Replace, obs.now))
	}
	return want
}

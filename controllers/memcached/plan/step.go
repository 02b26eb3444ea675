package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// planStep returns the writes of a decision, except those to the shard's ReplicaSet: see
// desiredShard.
func planStep(obs *observation.Observation, shards []shard.State, d rollout.Decision, checks preflight.Result) Actions {
	a := Actions{RequeueAfter: d.RequeueAfter}
	if d.Step == rollout.StepPreflight {
		for _, pod := range checks.Create {
			a.Apply = append(a.Apply, Apply{Object: pod})
		}
		return a
	}
	s := shard.Named(shards, d.Shard)
	if s == nil {
		return a
	}
	to := obs.UpdateRevision
	if d.RollingBack {
		to = s.Template
	}
	switch d.Step {
	case rollout.StepResize:
		a.Patch = append(a.Patch, resize(s.Active, to))
	case rollout.StepAnnounceStop:
		if token := s.StopToken(to, obs.Now); token != s.Active.Annotations[annotations.Stop] {
			a.Patch = append(a.Patch, Annotate(s.Active, annotations.Stop, token))
		}
	case rollout.StepRevert:
		if s.Rollout.StopAnnounced {
			a.Patch = append(a.Patch, Annotate(s.Active, annotations.Stop, nil))
		} else {
			a.Patch = append(a.Patch, resize(s.Active, s.PodRevision))
		}
	case rollout.StepUpdateInPlace:
		record := s.NewUpdateRecord(to, d.Change.Method, obs.Now)
		if s.Target.Restart != "" {
			record.Restart, record.Attempt = s.Target.Restart, s.Attempt
		}
		text := shard.EncodeRecord(record)
		a.Patch = append(a.Patch, updateInPlace(s, to, record.Restart, text))
	case rollout.StepDrain:
		if !s.Draining {
			a.Patch = append(a.Patch, Annotate(s.Active, corev1.PodDeletionCost, shard.DrainedPodDeletionCost))
		}
	case rollout.StepHandOver:
		a.Delete = append(a.Delete, s.Active)
	case rollout.StepRecreate:
		if s.Template.Hash() == to.Hash() && s.Active != nil {
			a.Delete = append(a.Delete, s.Active)
		}
	}
	return a
}

// planRepeats writes updates again that kubelets may have missed, and plans when to repeat the creation of pods.
func planRepeats(now time.Time, shards []shard.State) (a Actions) {
	for i := range shards {
		s := &shards[i]
		record, retryIn := s.Repeat(now)
		_, createIn := s.RetryCreation(now)
		a.RequeueAfter = Soonest(a.RequeueAfter, retryIn, createIn)
		if record != nil {
			a.Patch = append(a.Patch, Annotate(s.Active, annotations.Update, shard.EncodeRecord(record)))
		}
	}
	return a
}

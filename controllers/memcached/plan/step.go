package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
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
		a.Patch = append(a.Patch, patchInPlace(s, to, d.Change.Method, obs.Now))
	case rollout.StepDrain:
		switch {
		case s.Rollout.HandsOver && s.Set.Status.Replicas > 1: // it has counted both: see awaitsCount
			a.Delete = append(a.Delete, s.Active)
		case !s.Rollout.HandsOver && !s.Draining:
			a.Patch = append(a.Patch, Annotate(s.Active, corev1.PodDeletionCost, shard.DrainedPodDeletionCost))
		}
	case rollout.StepHandOver:
		a.Patch = append(a.Patch, Annotate(s.Next, annotations.Receive, agentwire.Request{PodUID: string(s.Active.UID)}.String()))
	case rollout.StepRecreate:
		if s.Template.Hash() == to.Hash() && s.Active != nil {
			a.Delete = append(a.Delete, s.Active)
		}
	}
	return a
}

// patchInPlace changes the active pod in place to a revision, and records what it was.
func patchInPlace(s *shard.State, to resources.PodRevision, method rollout.Method, now time.Time) PodPatch {
	record := s.NewUpdateRecord(to, method, now)
	if s.Target.Restart != "" {
		record.Restart, record.Attempt = s.Target.Restart, s.Attempt
	}
	if image := resources.ImageOf(s.Active); image != s.PodRevision.Image.Reference {
		record.Image = image
	}
	return updateInPlace(s, to, record.Restart, shard.EncodeRecord(record))
}

// Rehearsal is a patch that the API server first makes as a dry run: the pod has to get the image that was checked.
type Rehearsal struct {
	PodPatch
	Image string
}

// planRehearsal returns what to rehearse before the writes of a step that leads to another image in place, or nil. New pods, such as
// the one that checks the image, pass other admission than a patch does.
func planRehearsal(obs *observation.Observation, shards []shard.State, d rollout.Decision, step Actions, checks preflight.Result) *Rehearsal {
	s, to := shard.Named(shards, d.Shard), obs.UpdateRevision
	if len(step.Patch) == 0 || d.RollingBack || d.Change.Method != rollout.Recreate || s.PodRevision.Image.Reference == to.Image.Reference {
		return nil
	}
	return &Rehearsal{patchInPlace(s, to, d.Change.Method, obs.Now), checks.Images[s.Name]}
}

// planGracePeriods announces to the pods that replace others how long those have, if a deletion gives them less time than their own
// grace period: neither the kubelet nor the API server lets a pod know.
func planGracePeriods(shards []shard.State) (a Actions) {
	for i := range shards {
		from, to := shards[i].Hurried()
		if from == nil {
			continue
		}
		request := agentwire.Request{PodUID: string(from.UID), GraceSeconds: *from.DeletionGracePeriodSeconds}.String()
		if to.Annotations[annotations.Receive] != request {
			a.Patch = append(a.Patch, Annotate(to, annotations.Receive, request))
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

package memcached

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// makePlan decides what to do about an observation. A planner takes the results of those before
// it as arguments.
func makePlan(obs *observation, options resources.Options) plan {
	m := obs.memcached
	shards := shard.EvaluateAll(obs.shards, shard.Inputs{
		Memcached: m, Update: obs.updateRevision, Agents: obs.agents, Receiving: obs.receiving, Secrets: obs.secrets, Now: obs.now, Resizing: options.Resizing,
	})
	problem := specProblem(obs, options.Restrictions)
	p := plan{
		finalBackup: planFinalBackup(obs),
		bootstrap:   planBootstrap(obs, shards, problem == nil),
		refill:      planRefill(obs, shards),
		resources:   resourcesPlan{cached: obs.cached},
	}
	all := []Actions{p.finalBackup.actions, p.bootstrap.actions, p.refill.actions, {RequeueAfter: obs.follow.recheck}}
	if problem == nil && m.DeletionTimestamp == nil {
		build := resources.NewBuilder(m, options)
		p.preflight = preflight.Evaluate(build, obs.preflightPods, shards, obs.updateRevision, shard.RetryToken(m))
		shards = p.preflight.Annotate(shards)
		p.decision, p.invalid = planRollout(obs, shards)
		if !m.Spec.Paused {
			step := planStep(obs, shards, p.decision, p.preflight)
			repeats := planRepeats(obs.now, shards, step.Patch)
			p.discovery = planDiscovery(obs, shards, append(step.Patch, repeats.Patch...))
			p.binding = planBinding(obs, build)
			desired := desiredShards(obs, shards, p.decision, p.bootstrap.holdUntil, p.discovery.list)
			p.resources = planResources(obs, build, desired, p.bootstrap.delaysShards)
			all = append(all, p.resources.actions, step, repeats, p.discovery.actions, p.binding.actions, planDeletions(obs, p.discovery.delay), planPreflightCleanup(obs, p.decision.Done()))
		}
	}
	p.shards, p.rejected = shards, cmp.Or(p.resources.rejected, p.preflight.Rejected, problem)
	p.actions = merge(append(all, planAgentRetry(obs, p.bootstrap.status), planHitRatio(obs), planSecrets(obs))...).batch(obs.failed)
	return p
}

// specProblem returns why the spec can't be applied, or nil.
func specProblem(obs *observation, restrictions resources.Restrictions) *shard.Problem {
	unsupported := resources.UnsupportedVersion(obs.image.Version, obs.memcached.Spec.TLS, obs.memcached.Spec.Auth)
	notAllowed, tls := restrictions.Violation(&obs.memcached.Spec), resources.TLSProblem(&obs.memcached.Spec)
	switch {
	case obs.imageError != nil:
		return &shard.Problem{Reason: v1alpha1.ReasonImageInvalid, Message: obs.imageError.Error() + "; correct spec.image, nothing changes until then"}
	case unsupported != "":
		return &shard.Problem{Reason: v1alpha1.ReasonVersionUnsupported, Message: unsupported + "; nothing changes until then"}
	case tls != "":
		return &shard.Problem{Reason: v1alpha1.ReasonTLSNotPossible, Message: tls + "; nothing changes until then"}
	case notAllowed != "":
		return &shard.Problem{Reason: v1alpha1.ReasonNotAllowed, Message: notAllowed + "; nothing changes until then"}
	case len(obs.updateRevision.String()) > resources.MaxRevision:
		return &shard.Problem{Reason: v1alpha1.ReasonPodConfigurationTooLarge, Message: fmt.Sprintf(
			"the pod configuration has %d bytes as JSON, more than %d; shorten spec.podMetadata or spec.scheduling, nothing changes until then",
			len(obs.updateRevision.String()), resources.MaxRevision)}
	}
	return nil
}

// planPreflightCleanup deletes preflight pods that aren't needed any more.
func planPreflightCleanup(obs *observation, done bool) Actions {
	obsolete, retryIn := preflight.Obsolete(obs.preflightPods, done, obs.updateRevision.Hash(), obs.now)
	a := Actions{RequeueAfter: retryIn}
	for _, pod := range obsolete {
		a.Delete = append(a.Delete, pod)
	}
	return a
}

// beginsReplacement reports whether a plan creates the pod that replaces a shard's.
func (p plan) beginsReplacement() bool {
	s := shard.Named(p.shards, p.decision.Shard)
	return p.decision.Step == rollout.StepSurge && s != nil && s.Rollout.Pod.Revision == s.Rollout.Template
}

// isDisruptive reports whether a plan restarts or deletes something that serves.
func (p plan) isDisruptive() bool {
	switch p.decision.Step {
	case rollout.StepUpdateInPlace, rollout.StepSurge, rollout.StepDrain, rollout.StepHandOver, rollout.StepRecreate:
		return true
	}
	return slices.ContainsFunc(p.actions.Delete, func(o resources.APIObject) bool {
		kind := keyOf(o).Kind
		return kind == resources.KindReplicaSet || kind == resources.KindService
	})
}

// plan is what a reconcile does, and what keeps it from doing more.
type plan struct {
	// shards are the shards that exist.
	shards []shard.State
	// rejected is why the spec can't be applied at all, and invalid why no change of it
	// reaches a shard; nil when it can.
	rejected, invalid *shard.Problem
	preflight         preflight.Result
	// decision is the next step of the rollout.
	decision    rollout.Decision
	bootstrap   bootstrapPlan
	refill      refillPlan
	finalBackup finalBackupPlan
	discovery   discoveryPlan
	binding     bindingPlan
	resources   resourcesPlan
	actions     Actions
}

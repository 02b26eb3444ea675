package memcached

import (
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// agentRetryMin and agentRetryMax bound the time after which an agent that did not
	// answer is queried again. The longer a shard has been silent, the later.
	agentRetryMin = time.Second
	agentRetryMax = 30 * time.Second
	// conflictRecheck is when to look up a name again that another owner uses: the cache
	// doesn't contain foreign objects, so no watch announces that the name is free.
	conflictRecheck = 30 * time.Second
	// staleRequeue is when to reconcile again after an object has changed since it was read.
	staleRequeue = 100 * time.Millisecond
)

// makePlan decides what to do about an observation.
func makePlan(obs *observation, options resources.Options) plan {
	p := plan{
		shards: shard.EvaluateAll(obs.shards, shard.Inputs{
			Memcached: obs.memcached, Update: obs.updateRevision, Agents: obs.agents, Now: obs.now, CanResize: options.CanResize,
		}),
		rejected:    specProblem(obs),
		finalBackup: planFinalBackup(obs),
		resources:   resourcesPlan{cached: obs.cached},
	}
	p.bootstrap = planBootstrap(obs, p.shards, p.rejected == nil)
	refills, refillActions := planRefill(obs, p.shards)
	p.refills = refills
	p.actions = merge(p.finalBackup.actions, p.bootstrap.actions, refillActions)
	if p.rejected == nil && obs.memcached.DeletionTimestamp == nil {
		p = planSpec(obs, p, options)
	}
	p.actions = merge(p.actions, planAgentRetry(obs, p.bootstrap.status), Actions{RequeueAfter: p.resources.recheck()})
	return p
}

// specProblem returns why the spec can't be applied, or nil.
func specProblem(obs *observation) *shard.Problem {
	unsupported := resources.UnsupportedVersion(obs.image.Version)
	switch {
	case obs.imageError != nil:
		return &shard.Problem{Reason: v1alpha1.ReasonImageInvalid, Message: obs.imageError.Error() + "; correct spec.image, nothing changes until then"}
	case unsupported != "":
		return &shard.Problem{Reason: v1alpha1.ReasonVersionUnsupported, Message: unsupported + "; nothing changes until then"}
	}
	return nil
}

// planSpec adds to a plan how the spec is applied: the next step of the rollout and, unless
// the Memcached is paused, the objects to write.
func planSpec(obs *observation, p plan, options resources.Options) plan {
	p.preflight = preflight.Evaluate(obs.memcached, obs.preflightPods, p.shards, obs.updateRevision, options)
	p.rejected = p.preflight.Rejected
	p.shards = p.preflight.Annotate(p.shards)
	in := rolloutInput(obs, p.shards)
	if in.Invalid != "" {
		p.invalid = &shard.Problem{Reason: v1alpha1.ReasonUpdateStrategyInvalid, Message: in.Invalid}
	}
	p.decision = rollout.Next(in)
	if obs.memcached.Spec.Paused {
		return p
	}
	p.resources = planResources(obs, desiredShards(obs, p), p.bootstrap, options)
	if p.resources.rejected != nil {
		p.rejected = p.resources.rejected
	}
	p.actions = merge(p.actions, p.resources.actions,
		planStep(obs, p.shards, p.decision, p.preflight),
		planScaleIn(obs),
		planPreflightCleanup(obs, p.decision.Done()))
	return p
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

// planAgentRetry queries agents again that did not answer.
func planAgentRetry(obs *observation, bootstrap *v1alpha1.BootstrapStatus) Actions {
	var a Actions
	for name, pods := range obs.pods {
		active := pods[0]
		_, answered := obs.agents[active.Name]
		serves := shard.IsReady(active) || isBootstrapping(bootstrap) && shard.IsRunning(active)
		if !serves || answered || shard.StartRecorded(&obs.memcached.Status, name, active) {
			continue
		}
		wait := agentRetryMin
		if obs.unreachable[active.Name] {
			silence := obs.now.Sub(shard.LastTransition(obs.replicaSet(name), pods))
			wait = min(max(silence/4, agentRetryMin), agentRetryMax)
		}
		a.RequeueAfter = soonest(a.RequeueAfter, wait)
	}
	return a
}

// isDisruptive reports whether a plan restarts or deletes something that serves.
func isDisruptive(p plan) bool {
	switch p.decision.Step {
	case rollout.StepUpdateInPlace, rollout.StepSurge, rollout.StepDrain, rollout.StepRecreate:
		return true
	}
	return slices.ContainsFunc(p.actions.Delete, func(o client.Object) bool {
		kind := keyOf(o).Kind
		return kind == resources.KindReplicaSet || kind == resources.KindService
	})
}

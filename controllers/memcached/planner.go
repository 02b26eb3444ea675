package memcached

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// makePlan decides what to do about an observation.
func makePlan(obs *observation, options resources.Options) plan {
	m := obs.memcached
	p := plan{
		shards: shard.EvaluateAll(obs.shards, shard.Inputs{
			Memcached: m, Update: obs.updateRevision, Agents: obs.agents, Receiving: obs.receiving, Secrets: obs.secrets, Now: obs.now, Resizing: options.Resizing,
		}),
		rejected:  specProblem(obs, options.Restrictions),
		resources: resourcesPlan{cached: obs.cached},
	}
	p.finalBackup = planFinalBackup(obs)
	p.bootstrap = planBootstrap(obs, p.shards, p.rejected == nil)
	p.refill = planRefill(obs, p.shards)
	all := []Actions{p.finalBackup.actions, p.bootstrap.actions, p.refill.actions, {RequeueAfter: obs.follow.recheck}}

	if p.rejected == nil && m.DeletionTimestamp == nil {
		build, attempt := resources.NewBuilder(m, options), shard.RetryToken(m)
		p.preflight = preflight.Evaluate(build, obs.preflightPods, p.shards, obs.updateRevision, attempt)
		p.rejected, p.shards = p.preflight.Rejected, p.preflight.Annotate(p.shards)
		in := rolloutInput(obs, p.shards)
		if in.Invalid != "" {
			p.invalid = &shard.Problem{Reason: v1alpha1.ReasonUpdateStrategyInvalid, Message: in.Invalid}
		}
		p.decision = rollout.Next(in)
		if !m.Spec.Paused {
			step := planStep(obs, p.shards, p.decision, p.preflight)
			repeats := planRepeats(obs.now, p.shards, step.Patch)
			p.discovery = planDiscovery(obs, p.shards, append(step.Patch, repeats.Patch...))
			p.binding = planBinding(obs, build)
			desired := desiredShards(obs, p, attempt)
			p.resources = planResources(obs, build, desired, p.bootstrap.delaysShards)
			p.rejected = cmp.Or(p.resources.rejected, p.rejected)
			all = append(all, p.resources.actions, step, repeats, p.discovery.actions, p.binding.actions, planDeletions(obs, p.discovery.delay), planPreflightCleanup(obs, p.decision.Done()))
		}
	}
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

// planAgentRetry queries agents again that did not answer, or did not report the start yet.
func planAgentRetry(obs *observation, bootstrap *v1alpha1.BootstrapStatus) Actions {
	var a Actions
	for _, s := range obs.shards {
		if s.Active == nil {
			continue
		}
		if pod := s.Receiver(); pod != nil {
			a.RequeueAfter = soonest(a.RequeueAfter, handoverPoll(obs, pod))
		}
		_, answered := obs.agents[s.Active.Name]
		starting := !s.StartRecorded && (s.IsReady || s.IsRunning && isBootstrapping(bootstrap))
		if obs.unreachable[s.Active.Name] || starting && !answered {
			a.RequeueAfter = soonest(a.RequeueAfter, max(s.AgentRetry(obs.now), agentRetryMin))
		}
	}
	return a
}

// handoverPoll returns when to query a pod again that receives the items of another one: soon until
// it is ready for them, as the operator deletes the other one then.
func handoverPoll(obs *observation, pod *corev1.Pod) time.Duration {
	if p := obs.receiving[pod.Name].Handover; p != nil && p.Pass > 0 {
		return handoverRecheck
	}
	return agentRetryMin
}

// beginsReplacement reports whether a plan creates the pod that replaces a shard's.
func beginsReplacement(p plan) bool {
	s := shard.Named(p.shards, p.decision.Shard)
	return p.decision.Step == rollout.StepSurge && s != nil && s.Rollout.Pod.Revision == s.Rollout.Template
}

// isDisruptive reports whether a plan restarts or deletes something that serves.
func isDisruptive(p plan) bool {
	switch p.decision.Step {
	case rollout.StepUpdateInPlace, rollout.StepSurge, rollout.StepDrain, rollout.StepHandOver, rollout.StepRecreate:
		return true
	}
	return slices.ContainsFunc(p.actions.Delete, func(o client.Object) bool {
		kind := keyOf(o).Kind
		return kind == resources.KindReplicaSet || kind == resources.KindService
	})
}

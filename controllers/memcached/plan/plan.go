package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// Plan is what a reconcile does, and what keeps it from doing more.
type Plan struct {
	// Shards are the shards that exist.
	Shards []shard.State
	// Invalid is why no change of the spec reaches a shard; nil when it can.
	Invalid   *shard.Problem
	Preflight preflight.Result
	// Decision is the next step of the rollout.
	Decision rollout.Decision
	// Rehearsal is what has to succeed as a dry run before the writes; nil is nothing.
	Rehearsal   *Rehearsal
	Bootstrap   Bootstrap
	Refills     Refills
	FinalBackup FinalBackup
	Discovery   Discovery
	Scaling     Scaling
	Binding     Binding
	// Servers are the addresses of the shards by ordinal, also of those that don't exist yet.
	Servers   []string
	Resources Resources
	Actions   Actions
	// Memory for the next reconcile.
	Memory observation.Memory
}

// Make decides what to do about an observation. A planner takes the results of those before
// it as arguments.
func Make(obs *observation.Observation, options resources.Options) Plan {
	m := obs.Memcached
	shards := shard.EvaluateAll(obs.Shards, shard.Inputs{
		Memcached: m, Update: obs.UpdateRevision, Agents: obs.Agents, Answers: obs.Answers, Secrets: obs.Secrets, Admitted: obs.Admitted, Now: obs.Now, Resizing: options.Resizing,
	})
	p := Plan{
		FinalBackup: planFinalBackup(obs),
		Bootstrap:   planBootstrap(obs, shards),
		Refills:     planRefill(obs, shards),
		Scaling:     planScaling(obs, shards, options),
		Resources:   Resources{UpToDate: obs.UpToDate},
	}
	all := []Actions{p.FinalBackup.Actions, p.Bootstrap.Actions, p.Refills.Actions, {RequeueAfter: Soonest(obs.DefaultImageHold.RecheckAfter, stuckIn(obs))}}
	build := resources.NewBuilder(m, options)
	if m.DeletionTimestamp != nil {
		all = append(all, planDeleted(obs, build, shards))
	} else {
		p.Preflight = preflight.Evaluate(build, obs.PreflightPods, shards, obs.UpdateRevision)
		p.Decision, p.Invalid = planRollout(obs, shards, p.Preflight)
		if obs.Rejected != nil && p.Decision.Step == rollout.StepNone { // the spec's problem is why
			p.Decision = rollout.Decision{}
		}
		step, repeats := planStep(obs, shards, p.Decision, p.Preflight), planRepeats(obs.Now, shards)
		p.Rehearsal = planRehearsal(obs, shards, p.Decision, step, p.Preflight)
		if obs.RehearsalFailed {
			step.Patch = nil
		}
		p.Discovery = planDiscovery(obs, shards, options)
		desired := desiredShards(obs, shards, p.Decision, p.Discovery.list, p.Scaling)
		if m.Spec.Paused {
			all = append(all, step, planPaused(obs, build, shards, desired))
		} else {
			p.Resources, p.Binding = planResources(obs, build, desired, canMove(m, p.Decision, shards)), planBinding(obs, build)
			all = append(all, p.Resources.Actions, step, repeats, p.Discovery.Actions, p.Scaling.Actions, p.Binding.Actions, planDeletions(obs, p.Discovery.Delay), planPreflightCleanup(obs, p.Decision.Done()))
		}
	}
	p.Servers = options.Servers(m)
	p.Shards = shards
	p.Actions = merge(append(all, planGracePeriods(shards), planSecretReports(obs), planAgentRetry(obs))...)
	p.Memory = obs.Memory
	p.Memory.UpToDate = p.Resources.UpToDate
	return p
}

// stuckIn returns when the first pod that is being deleted has been so for too long; 0 is never.
func stuckIn(obs *observation.Observation) (soonest time.Duration) {
	for _, pods := range obs.Pods {
		for _, pod := range pods {
			_, in := shard.StuckProblem(pod, obs.Now)
			soonest = Soonest(soonest, in)
		}
	}
	return soonest
}

// SpecProblem returns why the spec can't be applied, or nil.
func SpecProblem(obs *observation.Observation, options resources.Options) *shard.Problem {
	unsupported := cmp.Or(resources.UnsupportedVersion(obs.Image.Version, obs.Memcached.Spec.TLS, obs.Memcached.Spec.Auth),
		shard.UnsupportedVersion(obs.Shards, obs.Image.Reference, &obs.Memcached.Spec))
	unstated := shard.ProtectionNotStated(obs.Shards, &obs.Memcached.Spec)
	notAllowed, arguments := options.Violation(obs.Memcached), resources.ExtraArgsProblem(obs.Memcached.Spec.Config.ExtraArgs)
	access := cmp.Or(resources.AccessProblem(obs.Memcached), ipFamilyProblem(obs))
	switch {
	case resources.IsReduced(obs.Memcached):
		return &shard.Problem{Reason: v1beta1.ReasonPodConfigurationTooLarge, Message: fmt.Sprintf(
			"the spec has more than %d bytes as JSON; shorten its lists, labels and annotations, nothing changes until then", resources.MaxSpec)}
	case unstated != "":
		return &shard.Problem{Reason: v1beta1.ReasonProtectionNotStated, Message: unstated + "; nothing changes until then"}
	case obs.ImageError != nil:
		return &shard.Problem{Reason: v1beta1.ReasonImageInvalid, Message: obs.ImageError.Error() + "; correct spec.pod.image, nothing changes until then"}
	case unsupported != "":
		return &shard.Problem{Reason: v1beta1.ReasonVersionUnsupported, Message: unsupported + "; nothing changes until then"}
	case arguments != "":
		return &shard.Problem{Reason: v1beta1.ReasonExtraArgsInvalid, Message: arguments + "; nothing changes until then"}
	case notAllowed != "":
		return &shard.Problem{Reason: v1beta1.ReasonNotAllowed, Message: notAllowed + "; nothing changes until then"}
	case access != "":
		return &shard.Problem{Reason: v1beta1.ReasonApplyRejected, Message: access + "; nothing changes until then"}
	case len(obs.UpdateRevision.String()) > resources.MaxRevision:
		return &shard.Problem{Reason: v1beta1.ReasonPodConfigurationTooLarge, Message: fmt.Sprintf(
			"the pod configuration has %d bytes as JSON, more than %d; shorten spec.pod.metadata, affinity or topologySpreadConstraints, nothing changes until then",
			len(obs.UpdateRevision.String()), resources.MaxRevision)}
	}
	return nil
}

// ipFamilyProblem returns why one of the Services can't get the IP families of the spec, or nothing.
func ipFamilyProblem(obs *observation.Observation) (problem string) {
	for _, key := range resources.Keys(obs.Memcached) {
		have := obs.Objects[key]
		if service, ok := have.APIObject.(*corev1.Service); ok && have.IsManaged() && service.DeletionTimestamp == nil {
			problem = cmp.Or(problem, resources.IPFamilyProblem(obs.Memcached, service))
		}
	}
	return problem
}

// BeginsReplacement reports whether a plan creates the pod that replaces a shard's.
func (p Plan) BeginsReplacement() bool {
	s := shard.Named(p.Shards, p.Decision.Shard)
	return p.Decision.Step == rollout.StepSurge && s != nil && s.Rollout.Pod.Revision == s.Rollout.Template
}

// IsDisruptive reports whether a plan restarts or deletes something that serves, or changes which items move.
func (p Plan) IsDisruptive() bool {
	switch p.Decision.Step {
	case rollout.StepUpdateInPlace, rollout.StepSurge, rollout.StepDrain, rollout.StepHandOver, rollout.StepRecreate:
		return true
	}
	return len(p.Actions.ScaleIn)+len(p.Scaling.Actions.Patch) > 0 || slices.ContainsFunc(p.Actions.Delete, func(o resources.APIObject) bool {
		return resources.KeyOf(o).Kind == resources.KindService
	})
}

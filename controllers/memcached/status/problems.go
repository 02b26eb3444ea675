package status

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// firstProblem returns the first problem that requires manual intervention, in a fixed
// order: of its deletion, of the spec, of objects, of shards by ordinal.
func firstProblem(obs *observation.Observation, p plan.Plan, res plan.Result, s v1beta1.MemcachedStatus) *shard.Problem {
	switch {
	case p.FinalBackup.Problem != nil:
		return p.FinalBackup.Problem
	case obs.Rejected != nil:
		return obs.Rejected
	case p.Invalid != nil:
		return p.Invalid
	case len(p.Resources.Conflicts) > 0:
		return &shard.Problem{Reason: v1beta1.ReasonNameConflict, Message: resources.JoinKeys(p.Resources.Conflicts) +
			" already exists and isn't managed by this Memcached; delete it, or create the Memcached with another name"}
	case len(res.Rejections) > 0:
		return &shard.Problem{Reason: v1beta1.ReasonApplyRejected, Message: rejection(res)}
	}
	for _, status := range s.Shards {
		for _, pod := range obs.Pods[status.Name] {
			if problem := shard.PodProblem(pod); problem != nil && !status.Ready {
				return &shard.Problem{Reason: problem.Reason, Message: fmt.Sprintf("shard %s: %s", status.Name, problem.Message)}
			}
		}
		for _, pod := range obs.Pods[status.Name] {
			if problem, _ := shard.StuckProblem(pod, obs.Now); problem != nil {
				return &shard.Problem{Reason: problem.Reason, Message: fmt.Sprintf("shard %s: %s", status.Name, problem.Message)}
			}
		}
		if problem := missingPod(shard.Named(p.Shards, status.Name)); problem != nil {
			return &shard.Problem{Reason: problem.Reason, Message: fmt.Sprintf("shard %s: %s", status.Name, problem.Message)}
		}
	}
	if problem := shard.AgentProblem(s.Shards, obs.Now); problem != nil {
		return problem
	}
	if problem := secretProblem(obs); problem != nil {
		return problem
	}
	if p.Decision.NeedsIntervention {
		return blockedProblem(obs.Memcached, p)
	}
	if problem := lastVerdict(obs, p.Decision); problem != nil {
		return problem
	}
	if problem := memoryProblem(p); problem != nil {
		return problem
	}
	for _, status := range s.Shards {
		isRecorded := status.Revision == obs.UpdateRevision.Hash() // before, the version is that of the former pod
		if status.Ready && status.UpToDate && isRecorded && status.Version != "" && obs.Image.Version != "" && status.Version != obs.Image.Version {
			return &shard.Problem{Reason: v1beta1.ReasonVersionMismatch, Message: fmt.Sprintf(
				"shard %s: image %s contains memcached %s, but its tag says %s; use an image whose tag matches its version",
				status.Name, obs.Image.Reference, status.Version, obs.Image.Version)}
		}
	}
	return budgetProblem(obs)
}

// budgetProblem returns which other PodDisruptionBudget selects the pods of a shard, or nil.
func budgetProblem(obs *observation.Observation) *shard.Problem {
	var first *shard.Problem
	name := ""
	for i := range obs.Budgets {
		budget := &obs.Budgets[i]
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || budget.Name == obs.Memcached.Name || first != nil && budget.Name > name {
			continue
		}
		selected := slices.IndexFunc(obs.Shards, func(s shard.Observation) bool { return selector.Matches(labels.Set(s.Set.Spec.Template.Labels)) })
		if selected < 0 {
			continue
		}
		name, first = budget.Name, &shard.Problem{Reason: v1beta1.ReasonDisruptionBudgetConflict, Message: fmt.Sprintf(
			"PodDisruptionBudget %s selects the pods of shard %s, too, so they can't be evicted; delete it, exclude them from its selector, "+
				"or, if it belongs to a Helm release with the name of the Memcached, create the Memcached with another name", budget.Name, obs.Shards[selected].Name)}
	}
	return first
}

// missingPod returns why a shard has no pod, or none that stays; nil when it has. That it lacks a second pod for an update
// endangers nothing, and the update says so.
func missingPod(s *shard.State) *shard.Problem {
	if s == nil || s.Next != nil || s.Active != nil && s.Active.DeletionTimestamp == nil {
		return nil
	}
	return shard.CreationProblem(s.Set)
}

// memoryProblem returns which shard's pod was given less memory than memcached needs, or nil. While the operator changes that itself, the
// limit of a pod needn't fit.
func memoryProblem(p plan.Plan) *shard.Problem {
	for i := range p.Shards {
		s := &p.Shards[i]
		if s.Active == nil || s.Name == p.Decision.Shard {
			continue
		}
		if limit, needs, tooSmall := s.MemoryLimitTooSmall(); tooSmall {
			return &shard.Problem{Reason: v1beta1.ReasonMemoryLimitTooSmall, Message: fmt.Sprintf(
				"shard %s: the memory limit of pod %s is %s, and memcached needs %s; exclude the pods from what has lowered it, and replace this one: kubectl annotate pod %[2]s -n %[5]s %[6]s=1",
				s.Name, s.Active.Name, limit.String(), needs.String(), s.Active.Namespace, v1beta1.AnnotationMove)}
		}
	}
	return nil
}

// secretProblem returns what requires manual intervention for a shard's Secrets, or nil.
func secretProblem(obs *observation.Observation) *shard.Problem {
	spec, name := &obs.Memcached.Spec, obs.Memcached.Name
	certificate, users := v1beta1.TLSSecretName(name, spec.TLS), v1beta1.AuthSecretName(name, spec.Auth)
	for i := range obs.Shards {
		s := &obs.Shards[i]
		if s.Active == nil {
			continue
		}
		var problem *shard.Problem
		secrets := obs.Secrets[s.Active.UID]
		if spec.TLS.IsEnabled() && resources.MountsTLS(s.Active, certificate) {
			problem = shard.CertificateProblem(secrets.Certificate, certificate, obs.Now)
		}
		if problem == nil && spec.Auth.IsRequired() && resources.MountsUsers(s.Active, users) && secrets.Users.Error != "" {
			problem = &shard.Problem{Reason: v1beta1.ReasonSecretInvalid, Message: fmt.Sprintf("%s; correct Secret %s", secrets.Users.Error, users)}
		}
		if problem != nil {
			problem.Message = fmt.Sprintf("shard %s: %s", s.Name, problem.Message)
			return problem
		}
	}
	return nil
}

// lastVerdict returns what the last check of an image has found while it is repeated, which can take minutes; nil if there is none. It holds
// until there is another result.
func lastVerdict(obs *observation.Observation, d rollout.Decision) *shard.Problem {
	m := obs.Memcached
	last, u := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionDegraded), m.Status.Update
	if d.Gate != rollout.GateImageNotVerified || u == nil || u.Gate != v1beta1.Gate(d.Gate) || u.Revision != obs.UpdateRevision.Hash() ||
		last == nil || last.Status != metav1.ConditionTrue || !strings.HasPrefix(last.Message, preflight.Verdict) {
		return nil
	}
	return &shard.Problem{Reason: last.Reason, Message: last.Message}
}

// blockedProblem returns why an update that requires manual intervention doesn't continue,
// and what to do.
func blockedProblem(m *v1beta1.Memcached, p plan.Plan) *shard.Problem {
	d := p.Decision
	switch d.Gate {
	case rollout.GateUpdatePathNotAllowed:
		return &shard.Problem{Reason: v1beta1.ReasonUpdatePathNotAllowed, Message: d.Message}
	case rollout.GateImageNotVerified:
		reason := v1beta1.ReasonImageUnusable
		if p.Preflight.Problem != nil {
			reason = p.Preflight.Problem.Reason
		}
		cure := "fix the image"
		if reason == v1beta1.ReasonUnschedulable {
			cure = "make room on the node"
		}
		running := shard.Named(p.Shards, d.Shard).Template.Image // those before it are updated already
		return &shard.Problem{Reason: reason, Message: d.Message + "; " + cure + ", or revert to " + running.Reference}
	case "":
		reason := v1beta1.ReasonUnschedulable
		if problem := shard.Named(p.Shards, d.Shard).NextProblem(); problem != nil {
			reason = problem.Reason
		}
		return &shard.Problem{Reason: reason, Message: fmt.Sprintf(
			"shard %s can't be replaced because the new pod isn't running: %s; the old pod keeps serving; free capacity or revert the spec", d.Shard, d.Message)}
	case rollout.GateHitRatioNotRecovered:
		return &shard.Problem{Reason: v1beta1.ReasonHitRatioNotRecovered, Message: d.Message + "; the other shards wait until it does, or until you change spec.updateStrategy.hitRatioGate"}
	default:
		effect := "was rolled back"
		if d.Change.Method == rollout.None { // its new pod serves
			effect = "lost its items"
		}
		return &shard.Problem{Reason: v1beta1.ReasonUpdateFailed, Message: fmt.Sprintf(
			"update failed on shard %s, which %s; no other shard was changed: %s; revert the spec, or retry: kubectl annotate memcached %s -n %s %s=\"$(date +%%s)\" --overwrite",
			d.Shard, effect, d.Message, m.Name, m.Namespace, v1beta1.AnnotationRetry)}
	}
}

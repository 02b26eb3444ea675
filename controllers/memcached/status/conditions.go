package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/condition"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// conditions returns Available, Progressing and Degraded.
func conditions(obs *observation.Observation, p plan.Plan, res plan.Result, s v1beta1.MemcachedStatus, problem *shard.Problem) (available, progressing, degraded metav1.Condition) {
	size := resources.SizesOf(obs.Memcached).Listed
	unready := unreadyShards(obs, s)
	degraded = condition.New(v1beta1.ConditionDegraded, false, v1beta1.ReasonAsExpected, "no problems detected")
	if problem != nil {
		degraded = condition.New(v1beta1.ConditionDegraded, true, problem.Reason, problem.Message)
	}
	return availableCondition(s, int32(size), unready), progressingCondition(obs, p, res, s, unready), degraded //nolint:gosec // at most 128 by the CRD
}

func availableCondition(s v1beta1.MemcachedStatus, size int32, unready []string) metav1.Condition {
	message := fmt.Sprintf("%d of %d shards are ready", s.ReadyShards, size)
	switch {
	case size == 0:
		return condition.New(v1beta1.ConditionAvailable, false, v1beta1.ReasonNoShards, "spec.size is 0")
	case s.ReadyShards == size:
		return condition.New(v1beta1.ConditionAvailable, true, v1beta1.ReasonAllShardsReady, message)
	case len(unready) > 0:
		message += "; not ready: " + strings.Join(unready, ", ")
	}
	return condition.New(v1beta1.ConditionAvailable, false, v1beta1.ReasonShardsNotReady, message)
}

// progressingCondition returns Progressing by the first case that applies.
func progressingCondition(obs *observation.Observation, p plan.Plan, res plan.Result, s v1beta1.MemcachedStatus, unready []string) metav1.Condition {
	m, size := obs.Memcached, resources.Size(obs.Memcached)
	progressing := func(holds bool, reason, message string) metav1.Condition {
		return condition.New(v1beta1.ConditionProgressing, holds, reason, message)
	}
	switch {
	case obs.Paused && m.DeletionTimestamp == nil:
		return progressing(false, v1beta1.ReasonPaused, "nothing changes until spec.paused is false")
	case obs.Rejected != nil && m.DeletionTimestamp == nil:
		return progressing(false, v1beta1.ReasonSpecRejected, "nothing changes until the spec is valid")
	case p.FinalBackup.Actions.Finalizer.Backup != nil && len(res.Rejections) > 0: // the plan reads it, too
		return progressing(true, v1beta1.ReasonApplyRejected, rejection(res))
	case len(res.Failures) > 0:
		return progressing(true, v1beta1.ReasonRetrying, res.Failures[0].Error()+"; retrying")
	case m.DeletionTimestamp != nil && p.FinalBackup.Message != "":
		return progressing(true, v1beta1.ReasonBackingUp, p.FinalBackup.Message)
	case m.DeletionTimestamp != nil:
		return progressing(true, v1beta1.ReasonDeleting, "deleting the shards")
	case len(p.Resources.Leftovers) > 0:
		return progressing(true, v1beta1.ReasonWaitingForGarbageCollection, "waiting for the deletion of "+resources.JoinKeys(p.Resources.Leftovers))
	case s.Bootstrap.IsRunning():
		return progressing(true, v1beta1.ReasonBootstrapping, s.Bootstrap.Message)
	case s.Scaling != nil:
		reason := v1beta1.ReasonScalingOut
		if p.Scaling.WaitsForUser {
			reason = v1beta1.ReasonWaitingForClients
		} else if s.Scaling.From > s.Scaling.To {
			reason = v1beta1.ReasonScalingIn
		}
		return progressing(!p.Scaling.WaitsForUser, reason, scalingMessage(s.Scaling))
	case s.Size < size:
		return progressing(true, v1beta1.ReasonScalingOut, fmt.Sprintf("from %d to %d shards", s.Size, size))
	case s.Size > size && p.Discovery.Delay > 0:
		return progressing(true, v1beta1.ReasonScalingIn, fmt.Sprintf("from %d to %d shards at %s, after clients have read the new list",
			s.Size, size, s.Discovery.LastChangeTime.Add(plan.ScaleInDelay).UTC().Format(time.RFC3339)))
	case s.Size > size:
		return progressing(true, v1beta1.ReasonScalingIn, fmt.Sprintf("from %d to %d shards", s.Size, size))
	case s.Update != nil:
		return progressing(!isWaiting(p.Decision), progressReason(p.Decision), s.Update.Message)
	case len(unready) > 0:
		return progressing(true, v1beta1.ReasonShardsStarting, "waiting for "+strings.Join(unready, ", "))
	case resources.IsScaleInForbidden(m):
		return progressing(false, v1beta1.ReasonScaleInForbidden, s.LimitedSize.Message)
	case obs.DefaultImageHold.Message != "":
		return progressing(false, v1beta1.ReasonKeepingImage, obs.DefaultImageHold.Message)
	default:
		return progressing(false, v1beta1.ReasonUpToDate, "all shards are up to date")
	}
}

// rejection describes the first write that the API server rejected.
func rejection(res plan.Result) string { return "the API server rejected " + res.Rejections[0].Error() }

// scalingMessage describes how far a change of the number of shards is.
func scalingMessage(s *v1beta1.ScalingStatus) string {
	message := fmt.Sprintf("from %d to %d shards: %s", s.From, s.To, s.Step)
	if s.Message != "" {
		message += "; " + s.Message
	}
	return text.Truncate(message, v1beta1.MaxMessage)
}

// health returns what tools wait for, with the reason and the message of the condition that decides it. A problem that
// requires manual intervention stalls the Memcached. A Memcached of size 0 is ready when its shards are deleted. While an
// update waits at a gate, Progressing is False and the Memcached isn't ready, but the gate opens by itself unless
// spec.paused is true. Nor is it ready while another size waits for that.
func health(m *v1beta1.Memcached, s v1beta1.MemcachedStatus, available, progressing, degraded metav1.Condition) (h condition.Health, reason, message string) {
	h = condition.Reconciling
	if m.Spec.Paused && m.DeletionTimestamp == nil {
		h = condition.Waiting
	}
	switch {
	case degraded.Status == metav1.ConditionTrue:
		return condition.Stalled, degraded.Reason, degraded.Message
	case s.Bootstrap.IsRunning():
		return h, v1beta1.ReasonBootstrapping, s.Bootstrap.Message
	case progressing.Status == metav1.ConditionTrue, s.Update != nil, s.Scaling != nil, int(resources.Size(m)) != resources.SizesOf(m).Listed:
		return h, progressing.Reason, progressing.Message
	case available.Status == metav1.ConditionTrue || available.Reason == v1beta1.ReasonNoShards:
		h = condition.Ready
	}
	return h, available.Reason, available.Message
}

// phase summarizes the conditions in one word.
func phase(m *v1beta1.Memcached, available, progressing, degraded metav1.Condition) v1beta1.Phase {
	switch {
	case m.DeletionTimestamp != nil:
		return v1beta1.PhaseDeleting
	case degraded.Status == metav1.ConditionTrue && available.Status == metav1.ConditionTrue:
		return v1beta1.PhaseBlocked
	case degraded.Status == metav1.ConditionTrue:
		return v1beta1.PhaseDegraded
	case m.Spec.Paused:
		return v1beta1.PhasePaused
	case progressing.Status == metav1.ConditionTrue:
		return v1beta1.PhaseProgressing
	default:
		return v1beta1.PhaseRunning
	}
}

// unreadyShards returns the names of the shards that clients know and that aren't ready, or don't exist.
func unreadyShards(obs *observation.Observation, s v1beta1.MemcachedStatus) []string {
	return slices.DeleteFunc(slices.Clone(obs.Listed()), func(name string) bool {
		status, _ := shard.StatusOf(&s, name)
		return status.Ready
	})
}

// progressReason returns the reason of Progressing during an update.
func progressReason(d rollout.Decision) string {
	return cmp.Or(string(d.Gate), v1beta1.ReasonUpdatingShard)
}

// isWaiting reports whether an update doesn't continue soon, or not without manual
// intervention.
func isWaiting(d rollout.Decision) bool {
	return d.NeedsIntervention || d.Gate == rollout.GateOutsideMaintenanceWindow || d.Gate == rollout.GateUpdateStrategyInvalid || d.Gate == rollout.GatePaused
}

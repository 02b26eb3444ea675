package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// conditions returns Available, Progressing and Degraded.
func conditions(obs *observation.Observation, p plan.Plan, res plan.Result, s v1beta1.MemcachedStatus, problem *shard.Problem) (available, progressing, degraded metav1.Condition) {
	unready := unreadyShards(s, int(*obs.Memcached.Spec.Size))
	degraded = metav1.Condition{Type: v1beta1.ConditionDegraded, Status: metav1.ConditionFalse,
		Reason: v1beta1.ReasonAsExpected, Message: "no problems detected"}
	if problem != nil {
		degraded.Status, degraded.Reason, degraded.Message = metav1.ConditionTrue, problem.Reason, problem.Message
	}
	return availableCondition(s, *obs.Memcached.Spec.Size, unready), progressingCondition(obs, p, res, s, unready), degraded
}

func availableCondition(s v1beta1.MemcachedStatus, size int32, unready []string) metav1.Condition {
	c := metav1.Condition{Type: v1beta1.ConditionAvailable, Status: metav1.ConditionFalse}
	c.Message = fmt.Sprintf("%d of %d shards are ready", s.ReadyShards, size)
	switch {
	case size == 0:
		c.Reason, c.Message = v1beta1.ReasonNoShards, "spec.size is 0"
	case s.ReadyShards == size:
		c.Status, c.Reason = metav1.ConditionTrue, v1beta1.ReasonAllShardsReady
	default:
		c.Reason = v1beta1.ReasonShardsNotReady
		if len(unready) > 0 {
			c.Message += "; not ready: " + strings.Join(unready, ", ")
		}
	}
	return c
}

// progressingCondition returns Progressing by the first case that applies.
func progressingCondition(obs *observation.Observation, p plan.Plan, res plan.Result, s v1beta1.MemcachedStatus, unready []string) metav1.Condition {
	m, size := obs.Memcached, *obs.Memcached.Spec.Size
	progressing := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1beta1.ConditionProgressing, Status: status, Reason: reason, Message: message}
	}
	switch {
	case m.Spec.Paused && m.DeletionTimestamp == nil:
		return progressing(metav1.ConditionFalse, v1beta1.ReasonPaused, "nothing changes until spec.paused is false")
	case len(res.Failures) > 0:
		return progressing(metav1.ConditionTrue, v1beta1.ReasonRetrying, res.Failures[0].Error()+"; retrying")
	case m.DeletionTimestamp != nil && p.FinalBackup.Message != "":
		return progressing(metav1.ConditionTrue, v1beta1.ReasonBackingUp, p.FinalBackup.Message)
	case m.DeletionTimestamp != nil:
		return progressing(metav1.ConditionTrue, v1beta1.ReasonDeleting, "deleting the shards")
	case len(p.Resources.Leftovers) > 0:
		return progressing(metav1.ConditionTrue, v1beta1.ReasonWaitingForGarbageCollection,
			fmt.Sprintf("waiting for garbage collection of %s of a deleted Memcached with the same name", resources.JoinKeys(p.Resources.Leftovers)))
	case s.Bootstrap.IsRunning():
		return progressing(metav1.ConditionTrue, v1beta1.ReasonBootstrapping, s.Bootstrap.Message)
	case s.Size < size && p.Rejected == nil:
		return progressing(metav1.ConditionTrue, v1beta1.ReasonScalingOut, fmt.Sprintf("from %d to %d shards", s.Size, size))
	case s.Size > size && p.Rejected == nil && p.Discovery.Delay > 0:
		return progressing(metav1.ConditionTrue, v1beta1.ReasonScalingIn, fmt.Sprintf("from %d to %d shards at %s, after clients have read the new list",
			s.Size, size, s.Discovery.LastChangeTime.Add(plan.ScaleInDelay).UTC().Format(time.RFC3339)))
	case s.Size > size && p.Rejected == nil:
		return progressing(metav1.ConditionTrue, v1beta1.ReasonScalingIn, fmt.Sprintf("from %d to %d shards", s.Size, size))
	case s.Update != nil && isWaiting(p.Decision):
		return progressing(metav1.ConditionFalse, progressReason(p.Decision), s.Update.Message)
	case s.Update != nil:
		return progressing(metav1.ConditionTrue, progressReason(p.Decision), s.Update.Message)
	case len(unready) > 0:
		return progressing(metav1.ConditionTrue, v1beta1.ReasonShardsStarting, "waiting for "+strings.Join(unready, ", "))
	case obs.DefaultImageHold.Message != "":
		return progressing(metav1.ConditionFalse, v1beta1.ReasonKeepingImage, obs.DefaultImageHold.Message)
	default:
		return progressing(metav1.ConditionFalse, v1beta1.ReasonUpToDate, "all shards are up to date")
	}
}

// readyCondition returns Ready, with the reason and message of the condition that decides it.
// A Memcached of size 0 is ready when its shards are deleted. While an update waits at a gate, or
// a Memcached is paused before it is filled, Progressing is False and the Memcached isn't ready either.
func readyCondition(available, progressing, degraded metav1.Condition, s v1beta1.MemcachedStatus) metav1.Condition {
	decides, status := available, available.Status
	switch {
	case degraded.Status == metav1.ConditionTrue:
		decides, status = degraded, metav1.ConditionFalse
	case s.Bootstrap.IsRunning():
		decides, status = metav1.Condition{Reason: v1beta1.ReasonBootstrapping, Message: s.Bootstrap.Message}, metav1.ConditionFalse
	case progressing.Status == metav1.ConditionTrue || s.Update != nil:
		decides, status = progressing, metav1.ConditionFalse
	case available.Reason == v1beta1.ReasonNoShards:
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: v1beta1.ConditionReady, Status: status, Reason: decides.Reason, Message: decides.Message}
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

// unreadyShards returns the names of the desired shards that aren't ready.
func unreadyShards(s v1beta1.MemcachedStatus, size int) []string {
	var names []string
	for _, status := range s.Shards[:min(size, len(s.Shards))] {
		if !status.Ready {
			names = append(names, status.Name)
		}
	}
	return names
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

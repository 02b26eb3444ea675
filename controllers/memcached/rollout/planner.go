package rollout

import (
	"cmp"
	"time"
)

const (
	// agentPoll is the delay before the agent of a shard is queried again for something that it
	// reports within a second.
	agentPoll = 200 * time.Millisecond
	// progressPoll is the delay before slower progress is checked again.
	progressPoll = 5 * time.Second
)

// Next returns the next step, or the gate that blocks it.
func Next(in Input) Decision {
	s := selectShard(in)
	if s == nil {
		return revertStale(in, Decision{})
	}
	return revertStale(in, decide(in, *s))
}

// revertStale replaces a decision while a shard still has something that was started for a spec
// that has changed since. An announced stop that will not happen has to go first: the agent would
// take the pod's termination for a restart of its container, and would not serve until the
// replacement does. That disturbs nothing that is paused.
func revertStale(in Input, d Decision) Decision {
	for _, s := range in.Shards {
		stops := s.Name == d.Shard && (d.Step == StepAnnounceStop || d.Step == StepUpdateInPlace && d.Change.Method >= Recreate)
		if s.StopAnnounced && !stops {
			return Decision{Shard: s.Name, Step: StepRevert, Message: "the announced restart is no longer needed"}
		}
		if s.ResourcesDrifted && !in.Paused {
			return Decision{Shard: s.Name, Step: StepRevert, Message: "the pod has the resources of an earlier spec"}
		}
	}
	return d
}

// selectShard returns the shard to act on: one whose update has started before one whose update
// hasn't, then the lower ordinal; nil when all are up to date.
func selectShard(in Input) *Shard {
	var unfinished, waiting, absent *Shard
	for i := range in.Shards {
		s := &in.Shards[i]
		switch {
		case s.Pod.State == Absent: // its ReplicaSet creates a pod from the template
			if s.Template != s.Target && absent == nil {
				absent = s
			}
		case s.Pod.Revision != s.Template:
			return s
		case isUnfinished(in, *s):
			unfinished = cmp.Or(unfinished, s)
		case s.Template != s.Target && waiting == nil:
			waiting = s
		}
	}
	return cmp.Or(unfinished, waiting, absent)
}

// isUnfinished reports whether a shard has the target, and its update isn't over: the former pod may still serve, or
// memcached has started without the items that it should have kept, in a new pod or with another certificate.
func isUnfinished(in Input, s Shard) bool {
	isReplaced := s.ToTarget.ReplacementAnnounced && (s.Pod.State == Starting || s.Pod.State == Receiving || s.Pod.State == Serving && s.Pod.Outcome == Pending)
	lostItems := s.Pod.State == Serving && s.Pod.Outcome == Cold && !in.AllowItemLoss
	return s.Failed == "" && s.Template == s.Target && s.Pod.Revision == s.Target && (isReplaced || lostItems)
}

func decide(in Input, s Shard) Decision {
	switch {
	case in.Paused && !mustDrain(s):
		return blockedBy(s, GatePaused, "nothing is changed until spec.paused is false")
	case in.Invalid != "" && !mustDrain(s):
		return blockedBy(s, GateUpdateStrategyInvalid, in.Invalid)
	case s.Pod.State == Absent:
		return blockedBy(s, GateShardUnavailable, "shard "+s.Name+" has no pod yet")
	case s.Pod.Revision == s.Template:
		return begin(in, s)
	case s.Pod.InPlace && !(s.Template == s.Target && s.Next != nil && !s.Pod.Terminating): // a second pod comes from an operator that read an older pod
		return continueInPlaceUpdate(in, s)
	case s.Template == s.Target:
		return continueReplacement(in, s)
	default:
		return abandonReplacement(s)
	}
}

// mustDrain reports whether an update of a shard has led to two pods that clients reach, which have different items, or of which the
// first one has handed over its items. It has to go, whatever else must not be changed.
func mustDrain(s Shard) bool {
	return s.Pod.Revision != s.Template && s.Next != nil && s.Next.State == Serving && !s.Pod.Terminating && (s.Pod.State == Serving || s.HandsOver)
}

// begin starts the update of a shard, unless a gate blocks it.
func begin(in Input, s Shard) Decision {
	if d, blocked := updateFailed(in); blocked {
		return d
	}
	if d, ok := ungated(in); ok {
		return d
	}
	if isUnfinished(in, s) {
		if s.Pod.Outcome == Cold {
			return withMessage(toTarget(s, StepRecordFailure), s.Pod.Reason)
		}
		return toTarget(s, StepAwait)
	}
	for _, g := range gates {
		if d, blocked := g(in, s); blocked {
			return d
		}
	}
	if s.ToTarget.Method == Replace {
		return toTarget(s, StepSurge)
	}
	return inPlaceSequence(s, false)
}

// ungated returns a step that passes most gates: the repair of a shard that doesn't run anyway,
// which comes first, or an update that disturbs no shard.
func ungated(in Input) (Decision, bool) {
	outdated := func(s Shard, state State) bool {
		return s.Pod.State == state && !s.Pod.Terminating && s.Pod.Revision == s.Template && s.Template != s.Target
	}
	for _, s := range in.Shards {
		if outdated(s, Broken) {
			if d, blocked := imageUnverified(in, s); blocked {
				return d, true // the shard may recover by itself in the meantime
			}
			return toTarget(s, StepRecreate), true
		}
	}
	for _, s := range in.Shards {
		// while the outcome is pending, the previous update is still being applied
		if outdated(s, Serving) && s.Pod.Outcome != Pending && s.ToTarget.Method <= Live {
			return inPlaceSequence(s, false), true
		}
	}
	return Decision{}, false
}

// continueReplacement moves a shard to its second pod.
func continueReplacement(in Input, s Shard) Decision {
	switch {
	case s.Failed != "":
		return rollBack(s, StepPromoteTemplate) // the ReplicaSet deletes the second pod
	case s.Next == nil && s.Pod.Terminating:
		return toTarget(s, StepAwait) // the ReplicaSet creates the replacement
	case s.Next == nil && s.Pod.State == Broken:
		return toTarget(s, StepRecreate)
	case s.Next == nil && (s.ToTarget.Method != Replace || !s.ToTarget.ReplacementAnnounced):
		return toTarget(s, StepPromoteTemplate) // the pod recovered: its items must not be lost unannounced
	case s.Next == nil:
		return toTarget(s, StepSurge)
	case s.Next.State == Broken:
		return withMessage(toTarget(s, StepRecordFailure), s.Next.Reason)
	case s.Next.State == Serving && !s.Pod.Terminating:
		return toTarget(s, StepDrain)
	case s.Next.State == Receiving && !s.Pod.Terminating && !s.HandsOver:
		if d, blocked := shardUnavailable(in, s); blocked {
			return d // no pod of this shard serves at the end of a handover
		}
		return toTarget(s, StepHandOver)
	case s.Next.Reason != "": // it may still start, such as on a new node, and the first pod serves
		return needIntervention(withMessage(toTarget(s, StepAwait), s.Next.Reason))
	default:
		return toTarget(s, StepAwait)
	}
}

// abandonReplacement ends a replacement that failed or whose target has changed: the template
// goes back to the revision of the pod that stays.
func abandonReplacement(s Shard) Decision {
	switch {
	case s.HandsOver && mustDrain(s): // a handover is completed: which pod has the items is known only then
		return toTarget(s, StepDrain)
	case s.Next != nil || s.Pod.Terminating:
		return toTarget(s, StepAwait) // the ReplicaSet deletes one of the two
	case s.Failed != "" && s.Pod.State == Broken && s.Pod.Revision == s.Target:
		return rollBack(s, StepRecreate) // the first pod was lost, and the second one stayed
	default:
		return toTarget(s, StepPromoteTemplate)
	}
}

// continueInPlaceUpdate verifies a pod that was updated in place, or rolls it back.
func continueInPlaceUpdate(in Input, s Shard) Decision {
	failed := s.Pod.State == Broken ||
		s.Pod.State == Serving && (s.Pod.Outcome == Mismatched || s.Pod.Outcome == Cold && !in.AllowItemLoss)
	switch {
	case s.Next != nil || s.Pod.Terminating:
		return toTarget(s, StepAwait) // the ReplicaSet creates another one from the template
	case failed && s.Pod.Revision == s.Target && s.Failed == "":
		return withMessage(toTarget(s, StepRecordFailure), s.Pod.Reason)
	case failed || s.Failed != "" && s.Pod.Revision == s.Target:
		if d, blocked := shardUnavailable(in, s); blocked && s.Pod.State == Serving {
			return d // the rollback would make a second shard unavailable
		}
		return inPlaceSequence(s, true)
	case s.Pod.State != Serving:
		return requeueAfter(toTarget(s, StepAwait), progressPoll)
	case s.Pod.Outcome == Pending:
		return requeueAfter(toTarget(s, StepAwait), max(agentPoll, s.AgentRetry))
	default:
		return toTarget(s, StepPromoteTemplate)
	}
}

// inPlaceSequence returns the next step of an update in place: the pod's resources, then the
// announcement to its agent if the container will restart, then everything else in one write.
func inPlaceSequence(s Shard, back bool) Decision {
	change, towards := s.ToTarget, toTarget
	if back {
		change, towards = s.Rollback, rollBack
	}
	switch {
	case change.Resize == Needed:
		return towards(s, StepResize)
	case change.Resize == Underway && !back:
		d := towards(s, StepAwait)
		return requeueAfter(withMessage(d, d.Message+": "+change.ResizeReason), progressPoll)
	case change.Method >= Recreate && s.Pod.State == Serving && !change.StopAcknowledged:
		return requeueAfter(towards(s, StepAnnounceStop), max(agentPoll, s.AgentRetry))
	default:
		return towards(s, StepUpdateInPlace)
	}
}

package rollout

import (
	"cmp"
	"time"
)

// Step is what to do with a shard.
type Step string

// The steps.
const (
	// StepNone does nothing: all shards are up to date, or a gate blocks.
	StepNone Step = ""
	// StepAwait waits for a shard whose update has started.
	StepAwait Step = "Await"
	// StepPreflight starts the preflight checks of the image.
	StepPreflight Step = "Preflight"
	// StepResize resizes the pod in place.
	StepResize Step = "Resize"
	// StepAnnounceStop announces a restart of the container to the shard's agent.
	StepAnnounceStop Step = "AnnounceStop"
	// StepRevert reverts the announced stop, or the resources, of a spec that has changed since.
	StepRevert Step = "Revert"
	// StepUpdateInPlace applies the change to the pod.
	StepUpdateInPlace Step = "UpdateInPlace"
	// StepPromoteTemplate sets the template to the pod's revision.
	StepPromoteTemplate Step = "PromoteTemplate"
	// StepRecordFailure records on the shard that the update failed.
	StepRecordFailure Step = "RecordFailure"
	// StepSurge sets the template to the target and creates a second pod from it.
	StepSurge Step = "Surge"
	// StepDrain deletes the first of two pods: the ReplicaSet does it, or the operator, if the second one has, or receives,
	// the items. The ReplicaSet may not have seen yet which of them is ready, and must not delete that one.
	StepDrain Step = "Drain"
	// StepHandOver requests the second of two pods to receive the items of the first.
	StepHandOver Step = "HandOver"
	// StepRecreate sets the template to the target and deletes the broken pod.
	StepRecreate Step = "Recreate"
)

// Decision is one step for one shard, or the gate that blocks it.
type Decision struct {
	// Shard that is concerned; empty when all are up to date.
	Shard string
	Step  Step
	// RollingBack is whether the step leads to the template's revision instead of the target.
	RollingBack bool
	// Gate that blocks the shard; empty when none does.
	Gate Gate
	// Change that is being applied.
	Change Change
	// Message for the user.
	Message string
	// NeedsIntervention is whether the rollout can't continue by itself.
	NeedsIntervention bool
	// RequeueAfter is when to call Next again if nothing else triggers it; 0 is never.
	RequeueAfter time.Duration
}

// Done reports whether all shards are up to date.
func (d Decision) Done() bool { return d.Shard == "" }

func toTarget(s Shard, step Step) Decision {
	return Decision{Shard: s.Name, Step: step, Change: s.ToTarget, Message: s.ToTarget.Description}
}

func rollBack(s Shard, step Step) Decision {
	return Decision{Shard: s.Name, Step: step, RollingBack: true, Change: s.Rollback, Message: cmp.Or(s.Failed, s.Pod.Reason)}
}

func withMessage(d Decision, message string) Decision {
	d.Message = message
	return d
}

func requeueAfter(d Decision, after time.Duration) Decision {
	d.RequeueAfter = after
	return d
}

func needIntervention(d Decision) Decision {
	d.NeedsIntervention = true
	return d
}

func blockedBy(s Shard, g Gate, message string) Decision {
	return Decision{Shard: s.Name, Gate: g, Change: s.ToTarget, Message: message}
}

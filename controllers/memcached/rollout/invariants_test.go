package rollout

import (
	"fmt"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// gatesInOrder are all gates in the order of evaluation, as the API has them.
var gatesInOrder = func() (all []Gate) {
	for _, g := range v1beta1.Gates {
		all = append(all, Gate(g))
	}
	return all
}()

// violation returns which invariant a decision violates; empty when none.
func violation(in Input, d Decision) string {
	var s *Shard
	for i := range in.Shards {
		if in.Shards[i].Name == d.Shard {
			s = &in.Shards[i]
		}
	}
	switch {
	case s == nil:
		if d != (Decision{}) {
			return fmt.Sprintf("a decision without a shard: %+v", d)
		}
		return doneViolation(in)
	case d.Step == StepNone || d.Step == StepPreflight:
		if (in.Paused || in.Invalid != "") && mustDrain(*s) {
			return "two pods serve until it is no longer paused or invalid"
		}
		if in.Paused && s.StopAnnounced {
			return "a pod that is drained while it is paused would keep its items"
		}
		return gateViolation(in, d)
	case d.Gate != "":
		return fmt.Sprintf("%s although %s blocks", d.Step, d.Gate)
	case (in.Paused || in.Invalid != "") && !(d.Step == StepRevert && (s.StopAnnounced || !in.Paused)) && !mustDrain(*s):
		return string(d.Step) + " while paused or invalid"
	case d.NeedsIntervention && (d.Step != StepAwait || s.Next == nil || s.Next.Reason == "" || d.Message != s.Next.Reason):
		return string(d.Step) + " needs intervention"
	case d.RollingBack && d.Message == "":
		return string(d.Step) + " rolls back without a message"
	case d.RollingBack && d.Step == StepAwait:
		return "the rollback waits"
	case d.Step == StepAwait || d.Step == StepRevert:
		return ""
	case d.Step == StepPromoteTemplate && !d.RollingBack && s.Pod.InPlace && s.Failed != "" && s.Pod.Revision == s.Target:
		return "a failed update is promoted"
	}
	if message := stepViolation(in, *s, d); message != "" {
		return message
	}
	for _, other := range in.Shards {
		if d.Step == StepHandOver && other.Pod.State != Serving {
			return fmt.Sprintf("%s of %s while %s is unavailable", d.Step, s.Name, other.Name)
		}
	}
	if starts := s.Pod.Revision == s.Template; !starts || d.Step == StepRecordFailure || d.RollingBack || d.Change.Method <= Live || s.Pod.State == Broken {
		return ""
	}
	for _, other := range in.Shards {
		if p := other.Pod; p.State != Serving || p.Terminating || p.Outcome == Pending || p.Revision != other.Template {
			return fmt.Sprintf("%s of %s while %s is unavailable or in transition", d.Step, s.Name, other.Name)
		}
		if other.Failed != "" {
			return fmt.Sprintf("%s of %s although the update failed on %s", d.Step, s.Name, other.Name)
		}
	}
	return ""
}

func doneViolation(in Input) string {
	for _, s := range in.Shards {
		if s.Template != s.Target || s.Pod.State != Absent && s.Pod.Revision != s.Target {
			return "done with " + s.Name + " outdated"
		}
		if s.StopAnnounced {
			return "done with a stop announced on " + s.Name
		}
		if s.ResourcesDrifted && !in.Paused {
			return "done with resources of another spec on " + s.Name
		}
	}
	return ""
}

func gateViolation(in Input, d Decision) string {
	named := false
	for _, gate := range gatesInOrder {
		named = named || d.Gate == gate
	}
	needs := d.Gate == GateUpdateFailed || d.Gate == GateUpdatePathNotAllowed ||
		d.Gate == GateImageNotVerified && in.Preflight == Refused ||
		d.Gate == GateHitRatioNotRecovered && in.Recovery.Waited >= in.Recovery.Timeout && !in.Recovery.Continue
	switch {
	case !named:
		return fmt.Sprintf("blocked by the unknown gate %q", d.Gate)
	case d.Message == "":
		return string(d.Gate) + " without a message"
	case d.Step == StepPreflight && (d.Gate != GateImageNotVerified || in.Preflight != Needed):
		return "an unneeded preflight check"
	case d.NeedsIntervention != needs:
		return fmt.Sprintf("%s needs intervention: %v", d.Gate, d.NeedsIntervention)
	}
	return ""
}

// stepViolation checks a step against the shard, whatever the others do.
func stepViolation(in Input, s Shard, d Decision) string {
	starts := s.Pod.Revision == s.Template
	isUnverified := starts && !d.RollingBack && d.Change.Method == Recreate && in.Preflight != Done
	switch d.Step {
	case StepResize, StepAnnounceStop, StepUpdateInPlace, StepRecreate, StepDrain, StepHandOver:
		if s.Pod.Terminating {
			return "a terminating pod is changed"
		}
	}
	switch d.Step {
	case StepUpdateInPlace:
		switch {
		case d.Change.Method == Replace && !d.RollingBack:
			return "a replacement is updated in place"
		case d.Change.Method == Recreate && s.Pod.State == Serving && !d.Change.StopAcknowledged:
			return "a container is stopped unannounced"
		case isUnverified:
			return "an image is not verified"
		case starts && !d.RollingBack && s.Pod.State == Serving && s.Pod.Outcome == Pending:
			return "the previous update is still pending"
		case d.Change.Resize == Needed || d.Change.Resize == Underway && !d.RollingBack:
			return "the pod doesn't have its resources yet"
		}
	case StepAnnounceStop:
		if d.Change.Method < Recreate || s.Pod.State != Serving || d.Change.StopAcknowledged {
			return "an unneeded announcement"
		}
		if isUnverified {
			return "an image is not verified"
		}
	case StepSurge:
		if d.Change.Method != Replace || !d.Change.ReplacementAnnounced {
			return "a shard starts empty unannounced"
		}
		if starts && in.RestoreRunning != "" {
			return "a shard is replaced while a restore writes into it"
		}
		if s.Failed != "" {
			return "a failed update is retried"
		}
	case StepDrain:
		if s.Next == nil || s.Next.State != Serving {
			return "the first pod is drained before the second serves"
		}
	case StepHandOver:
		if s.Next == nil || s.Next.State != Receiving || s.Failed != "" {
			return "the second pod is requested to receive items before it can"
		}
		if s.HandsOver {
			return "a handover is requested twice"
		}
	case StepRecreate:
		switch {
		case s.Pod.State != Broken:
			return "a pod that isn't broken is deleted"
		case s.Failed != "" && !d.RollingBack:
			return "a failed update is retried"
		case isUnverified:
			return "an image is not verified"
		}
	case StepPromoteTemplate:
		if starts {
			return "nothing to promote"
		}
	case StepRecordFailure:
		if s.Failed != "" || d.Message == "" {
			return "a failure is recorded twice or without a message"
		}
	}
	return ""
}

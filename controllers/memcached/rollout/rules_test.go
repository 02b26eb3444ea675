package rollout

import "fmt"

// gatesInOrder are all gates, in the order in which they are asked.
var gatesInOrder = []string{
	Paused, SpecInvalid, UpdateFailed, PathNotAllowed, ImageNotProven, ShardsNotSettled, ShardOut, MinTimeBetween, WindowClosed, HitRatio, EmptyAnnounced,
}

// breach returns which rule a decision breaks, or nothing.
func breach(in Input, d Decision) string {
	var s *Shard
	for i := range in.Shards {
		if in.Shards[i].Name == d.Shard {
			s = &in.Shards[i]
		}
	}
	switch {
	case s == nil:
		if d != (Decision{}) {
			return fmt.Sprintf("a decision of no shard: %+v", d)
		}
		return breachOfDone(in)
	case d.Step == StepNone || d.Step == StepProve:
		return breachOfHold(in, d)
	case d.Gate != "":
		return fmt.Sprintf("%s although %s holds", d.Step, d.Gate)
	case in.Paused || in.Invalid != "" && d.Step != StepWithdraw:
		return string(d.Step) + " while paused or invalid"
	case d.NeedsPerson && (d.Step != StepAwait || s.Next == nil || s.Next.Why == "" || d.Message != s.Next.Why):
		return string(d.Step) + " needs a person"
	case d.Back && d.Message == "":
		return string(d.Step) + " back without a sentence"
	case d.Back && d.Step == StepAwait:
		return "the way back is waited with"
	case d.Step == StepAwait || d.Step == StepWithdraw:
		return ""
	case d.Step == StepConfirm && !d.Back && s.Pod.InPlace && s.Failed != "" && s.Pod.Revision == in.Target:
		return "what failed is confirmed"
	}
	if sentence := breachOfStep(*s, d); sentence != "" {
		return sentence
	}
	if begins := s.Pod.Revision == s.Template; !begins || d.Back || d.Change.Class <= Live || s.Pod.State == Broken {
		return ""
	}
	for _, other := range in.Shards {
		if p := other.Pod; p.State != Serving || p.Going || p.Outcome == Pending || p.Revision != other.Template {
			return fmt.Sprintf("%s of %s while %s is out or not settled", d.Step, s.Name, other.Name)
		}
		if other.Failed != "" {
			return fmt.Sprintf("%s of %s although the target failed on %s", d.Step, s.Name, other.Name)
		}
	}
	return ""
}

func breachOfDone(in Input) string {
	for _, s := range in.Shards {
		if s.Template != in.Target || s.Pod.State != Absent && s.Pod.Revision != in.Target {
			return "content with " + s.Name
		}
		if s.Announcement && !in.Paused {
			return "content with an announcement on " + s.Name
		}
		if s.Astray && !in.Paused {
			return "content with resources of another spec on " + s.Name
		}
	}
	return ""
}

func breachOfHold(in Input, d Decision) string {
	named := false
	for _, gate := range gatesInOrder {
		named = named || d.Gate == gate
	}
	asks := d.Gate == UpdateFailed || d.Gate == PathNotAllowed ||
		d.Gate == ImageNotProven && d.Change.Proof == Refused ||
		d.Gate == HitRatio && in.Recovery.Waited >= in.Recovery.Timeout && !in.Recovery.Continue
	switch {
	case !named:
		return fmt.Sprintf("a hold with the gate %q", d.Gate)
	case d.Message == "":
		return d.Gate + " without a sentence"
	case d.Step == StepProve && (d.Gate != ImageNotProven || d.Change.Proof != Needed):
		return "a proof that is not needed"
	case d.NeedsPerson != asks:
		return fmt.Sprintf("%s needs a person: %v", d.Gate, d.NeedsPerson)
	}
	return ""
}

// breachOfStep is of the shard alone.
func breachOfStep(s Shard, d Decision) string {
	begins := s.Pod.Revision == s.Template
	switch d.Step {
	case StepResize, StepAnnounce, StepChange, StepRemake, StepRetire:
		if s.Pod.Going {
			return "a pod is changed that goes"
		}
	}
	switch d.Step {
	case StepChange:
		switch {
		case d.Change.Class == Replace && !d.Back:
			return "what cannot be changed in place is"
		case d.Change.Class == Recreate && s.Pod.State == Serving && !d.Change.Announced:
			return "a container is ended unannounced"
		case d.Change.Class == Recreate && begins && !d.Back && d.Change.Proof != Done:
			return "an image is not proven"
		case begins && !d.Back && s.Pod.State == Serving && s.Pod.Outcome == Pending:
			return "what was asked before has not come yet"
		case d.Change.Resize == Needed || d.Change.Resize == Underway && !d.Back:
			return "the pod has not got its resources"
		}
	case StepAnnounce:
		if d.Change.Class < Recreate || s.Pod.State != Serving || d.Change.Announced {
			return "an announcement that is not needed"
		}
		if begins && !d.Back && d.Change.Proof != Done {
			return "an image is not proven"
		}
	case StepSurge:
		if d.Change.Class != Replace || !d.Change.Told {
			return "a shard starts empty and was not told of"
		}
		if s.Failed != "" {
			return "what failed is tried again"
		}
	case StepRetire:
		if s.Next == nil || s.Next.State != Serving {
			return "the first pod goes before the second serves"
		}
	case StepRemake:
		switch {
		case s.Pod.State != Broken:
			return "a pod that is not broken is ended"
		case s.Failed != "" && !d.Back:
			return "what failed is tried again"
		case begins && d.Change.Class == Recreate && d.Change.Proof != Done:
			return "an image is not proven"
		}
	case StepConfirm:
		if begins {
			return "nothing to confirm"
		}
	case StepNote:
		if s.Failed != "" || d.Message == "" {
			return "a note that says nothing"
		}
	}
	return ""
}

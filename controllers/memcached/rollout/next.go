package rollout

import (
	"cmp"
	"fmt"
	"time"
)

// The names of the gates, in the order in which they are asked.
const (
	Paused           = "Paused"
	SpecInvalid      = "SpecInvalid"
	UpdateFailed     = "UpdateFailed"
	PathNotAllowed   = "PathNotAllowed"
	ImageNotProven   = "ImageNotProven"
	ShardsNotSettled = "ShardsNotSettled"
	ShardOut         = "ShardOut"
	MinTimeBetween   = "MinTimeBetweenShards"
	WindowClosed     = "MaintenanceWindow"
	HitRatio         = "HitRatio"
	EmptyAnnounced   = "EmptyShardAnnounced"
)

// lookSoon is when to ask an agent again that is about to learn of something.
const lookSoon = 200 * time.Millisecond

// lookLater is when to look again at something that takes its time.
const lookLater = 5 * time.Second

// Next returns the next step, or what holds it back.
func Next(in Input) Decision {
	next := unfinished(in)
	if next == nil {
		return withdrawal(in, Decision{})
	}
	switch {
	case in.Paused:
		return hold(*next, Paused, "nothing is changed until spec.paused is false")
	case in.Invalid != "":
		return withdrawal(in, hold(*next, SpecInvalid, in.Invalid))
	}
	return withdrawal(in, decide(in, *next))
}

// withdrawal takes back what was begun for a spec that was changed again. Of a stop
// that is announced and not to come: the end of that pod would be taken for the end
// of its container, and nobody would serve until its replacement does.
func withdrawal(in Input, d Decision) Decision {
	for _, s := range in.Shards {
		stopping := s.Name == d.Shard && (d.Step == StepAnnounce || d.Step == StepChange && d.Change.Class >= Recreate)
		if s.Announcement && !stopping && !in.Paused {
			return Decision{Shard: s.Name, Step: StepWithdraw, Message: "its restart is not to come"}
		}
		if s.Astray && !in.Paused {
			return Decision{Shard: s.Name, Step: StepWithdraw, Message: "its resources were for a spec that is no more"}
		}
	}
	return d
}

// unfinished returns the shard to be concerned with: one that is on its way before
// one that waits, the lower ordinal first; nil when all are as they should be.
func unfinished(in Input) *Shard {
	var waiting, absent *Shard
	for i := range in.Shards {
		s := &in.Shards[i]
		switch {
		case s.Pod.State == Absent: // a pod is on its way, made of the template
			if s.Template != in.Target && absent == nil {
				absent = s
			}
		case s.Pod.Revision != s.Template:
			return s
		case s.Template != in.Target && waiting == nil:
			waiting = s
		}
	}
	if waiting == nil {
		return absent
	}
	return waiting
}

func decide(in Input, next Shard) Decision {
	switch {
	case next.Pod.State == Absent:
		return hold(next, ShardOut, fmt.Sprintf("shard %s has no pod yet", next.Name))
	case next.Pod.Revision == next.Template:
	case next.Pod.InPlace:
		return changed(in, next)
	case next.Template == in.Target:
		return replacing(next)
	default:
		return givenUp(in, next)
	}
	for _, s := range in.Shards {
		if s.Failed != "" {
			d := hold(s, UpdateFailed, s.Failed)
			d.NeedsPerson = true
			return d
		}
	}
	if d, ok := atOnce(in); ok {
		return d
	}
	if d, held := gates(in, next); held {
		return d
	}
	return begin(next)
}

// replacing goes on with a shard whose next pod is to take over.
func replacing(s Shard) Decision {
	switch {
	case s.Failed != "":
		// The template follows the pod again, and the second pod goes.
		return back(s, StepConfirm)
	case s.Next == nil && s.Pod.Going:
		return forward(s, StepAwait) // the ReplicaSet makes the other by itself
	case s.Next == nil && s.Pod.State == Broken:
		return forward(s, StepRemake)
	case s.Next == nil && (s.Forward.Class != Replace || !s.Forward.Told):
		// It serves after all, and its items are not to be given up like this.
		return forward(s, StepConfirm)
	case s.Next == nil:
		return forward(s, StepSurge)
	case s.Next.State == Broken:
		d := forward(s, StepNote)
		d.Message = s.Next.Why
		return d
	case s.Next.State == Serving && !s.Pod.Going:
		return forward(s, StepRetire)
	default:
		d := forward(s, StepAwait)
		if s.Next.Why != "" { // a node may come that takes it, and the first pod serves on
			d.Message, d.NeedsPerson = s.Next.Why, true
		}
		return d
	}
}

// givenUp ends the replacement of a shard's pod that failed, or that another target
// overtook: the template follows the pod that stays.
func givenUp(in Input, s Shard) Decision {
	switch {
	case s.Next != nil || s.Pod.Going:
		return forward(s, StepAwait) // the ReplicaSet ends one of the two by itself
	case s.Failed != "" && s.Pod.State == Broken && s.Pod.Revision == in.Target:
		return back(s, StepRemake) // the second one stayed: the first went meanwhile
	default:
		return forward(s, StepConfirm)
	}
}

// changed goes on with a shard whose pod was changed in place.
func changed(in Input, s Shard) Decision {
	failed := s.Pod.State == Broken ||
		s.Pod.State == Serving && (s.Pod.Outcome == Wrong || s.Pod.Outcome == Cold && !in.AcceptCold)
	switch {
	case s.Next != nil || s.Pod.Going:
		return forward(s, StepAwait) // somebody ends it, and another is made of the template
	case failed && s.Pod.Revision == in.Target && s.Failed == "":
		d := forward(s, StepNote)
		d.Message = s.Pod.Why
		return d
	case failed || s.Failed != "" && s.Pod.Revision == in.Target:
		if d, held := noneOut(in, s); held && s.Pod.State == Serving {
			return d // it serves, if not as it should
		}
		return steps(s, true)
	case s.Pod.State == Serving && s.Pod.Outcome != Pending:
		return forward(s, StepConfirm)
	default:
		d := forward(s, StepAwait)
		if d.After = lookLater; s.Pod.State == Serving {
			d.After = lookSoon // it is the agent who tells
		}
		return d
	}
}

// atOnce returns a step that needs no gate: what disturbs no shard, and what mends
// one that does not run anyway, which comes first.
func atOnce(in Input) (Decision, bool) {
	waits := func(s Shard, state State) bool {
		return s.Pod.State == state && !s.Pod.Going && s.Pod.Revision == s.Template && s.Template != in.Target
	}
	for _, s := range in.Shards {
		if waits(s, Broken) {
			if d, held := imageProven(in, s); held {
				return d, true // what broke for a moment may come back as it was
			}
			return forward(s, StepRemake), true
		}
	}
	for _, s := range in.Shards {
		if waits(s, Serving) && s.Pod.Outcome != Pending && s.Forward.Class <= Live { // what was asked before is to come first
			return steps(s, false), true
		}
	}
	return Decision{}, false
}

// gates returns what holds the next shard back, if anything does.
func gates(in Input, next Shard) (Decision, bool) {
	for _, gate := range []func(Input, Shard) (Decision, bool){
		pathAllowed, imageProven, othersSettled, noneOut, timeBetween, windowOpen, hitRatioBack, emptyTold,
	} {
		if d, held := gate(in, next); held {
			return d, true
		}
	}
	return Decision{}, false
}

func pathAllowed(in Input, next Shard) (Decision, bool) {
	d := hold(next, PathNotAllowed, next.Forward.Forbidden)
	d.NeedsPerson = true
	return d, next.Forward.Forbidden != ""
}

func imageProven(in Input, next Shard) (Decision, bool) {
	d := hold(next, ImageNotProven, next.Forward.ProofWhy)
	switch next.Forward.Proof {
	case Needed:
		d.Step = StepProve
	case Refused:
		d.NeedsPerson = true
	case NotNeeded, Done:
		return Decision{}, false
	case Underway:
	}
	return d, true
}

func othersSettled(in Input, next Shard) (Decision, bool) {
	for _, s := range in.Shards {
		sentence := ""
		switch {
		case s.Pod.State == Starting && s.Pod.Why != "":
			sentence = "does not serve: " + s.Pod.Why
		case s.Pod.State == Starting:
			sentence = "starts"
		case s.Pod.Going:
			sentence = "is being moved to another pod"
		case s.Leaving:
			sentence = "waits for the end of its former pod"
		case s.Pod.State == Serving && s.Pod.Outcome == Pending:
			sentence = "has not told yet how it started"
		default:
			continue
		}
		d := hold(next, ShardsNotSettled, fmt.Sprintf("waiting for shard %s, which %s", s.Name, sentence))
		return d, true
	}
	return Decision{}, false
}

func noneOut(in Input, next Shard) (Decision, bool) {
	if in.Unmade != "" {
		return hold(next, ShardOut, fmt.Sprintf("shard %s is made first", in.Unmade)), true
	}
	for _, s := range in.Shards {
		if s.Pod.State != Serving {
			return hold(next, ShardOut, fmt.Sprintf("shard %s does not serve, and two shards must not be out at once", s.Name)), true
		}
	}
	return Decision{}, false
}

func timeBetween(in Input, next Shard) (Decision, bool) {
	left := in.MinBetween - in.SinceLast
	if in.SinceLast < 0 || left <= 0 {
		return Decision{}, false
	}
	d := hold(next, MinTimeBetween, fmt.Sprintf("waiting until %s have passed since the last shard", in.MinBetween))
	d.After = left
	return d, true
}

func windowOpen(in Input, next Shard) (Decision, bool) {
	d := hold(next, WindowClosed, "waiting for the next maintenance window")
	d.After = in.OpensIn
	return d, in.OpensIn > 0
}

func hitRatioBack(in Input, next Shard) (Decision, bool) {
	r := in.Recovery
	if r == nil || r.Requests >= r.MinRequests && r.Now >= r.Share*r.Before {
		return Decision{}, false
	}
	if r.Waited >= r.Timeout && r.Continue {
		return Decision{}, false
	}
	d := hold(next, HitRatio, fmt.Sprintf("waiting until shard %s finds %.0f %% of what it found before its change, a hit ratio of %.1f %%",
		r.Shard, 100*r.Share, 100*r.Before))
	d.After = lookLater
	if r.Waited >= r.Timeout {
		d.NeedsPerson = true
		d.Message = fmt.Sprintf("shard %s had a hit ratio of %.1f %% before its change and does not find %.0f %% of that within %s",
			r.Shard, 100*r.Before, 100*r.Share, r.Timeout)
	}
	return d, true
}

func emptyTold(in Input, next Shard) (Decision, bool) {
	return hold(next, EmptyAnnounced, "it will start empty"), next.Forward.Class == Replace && !next.Forward.Told
}

// begin takes the first step with a shard.
func begin(s Shard) Decision {
	if s.Forward.Class == Replace {
		return forward(s, StepSurge)
	}
	return steps(s, false)
}

// steps changes a pod in place: its resources, then, when its container is to
// restart, its agent is told, and then all the rest in one write.
func steps(s Shard, isBack bool) Decision {
	change, towards := s.Forward, forward
	if isBack {
		change, towards = s.Back, back
	}
	switch {
	case change.Resize == Needed:
		return towards(s, StepResize)
	case change.Resize == Underway && !isBack:
		d := towards(s, StepAwait)
		d.Message += ": " + change.ResizeWhy
		d.After = lookLater
		return d
	case change.Class >= Recreate && s.Pod.State == Serving && !change.Announced:
		d := towards(s, StepAnnounce)
		d.After = lookSoon
		return d
	default:
		return towards(s, StepChange)
	}
}

func forward(s Shard, step Step) Decision {
	return Decision{Shard: s.Name, Step: step, Change: s.Forward, Message: s.Forward.What}
}

func back(s Shard, step Step) Decision {
	return Decision{Shard: s.Name, Step: step, Back: true, Change: s.Back, Message: cmp.Or(s.Failed, s.Pod.Why)}
}

func hold(s Shard, gate, sentence string) Decision {
	return Decision{Shard: s.Name, Gate: gate, Change: s.Forward, Message: sentence}
}

package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// seenShard is a shard as the operator sees it, and the pod that it takes for the
// one that holds the shard.
type seenShard struct {
	Shard
	of     *modelShard
	pod    *modelPod
	podWas modelPod
}

func (w *world) see(s *modelShard) seenShard {
	seen := seenShard{of: s, Shard: Shard{Name: s.name, Template: s.template.String()}}
	if f := s.failed; f != nil && f.revision == w.target && f.attempt == w.attempt() {
		seen.Failed = f.message
	}
	pod, next := s.holders()
	if pod == nil {
		return seen
	}
	seen.pod, seen.podWas = pod, *pod
	step := cmp.Or(pod.step, s.step)
	seen.Pod = Pod{Revision: pod.asked.String(), State: pod.state, Going: pod.going, Why: pod.why}
	seen.Pod.Outcome, seen.Pod.Why = w.outcome(s, pod, step)
	seen.Pod.InPlace = s.inPlace(pod)
	if pod.state == Broken && stopIsToCome(pod, step) && w.now-step.at < endsContainer {
		seen.Pod.State = Starting
	}
	for _, p := range s.pods {
		seen.Leaving = seen.Leaving || p != pod && (p.going || p != next)
	}
	seen.Forward = w.podChange(pod, w.target, false)
	if pod.asked == w.target {
		seen.Forward = w.changeBetween(s.template, w.target)
	}
	seen.Forward.Told = w.told == modelTold{w.target, s.name, true}
	if seen.Forward.Class == Recreate {
		seen.Forward.Proof = cmp.Or(w.proofs[w.proofKey()], Needed)
		seen.Forward.ProofWhy = "proving image " + w.target.image
		if seen.Forward.Proof == Refused {
			seen.Forward.ProofWhy = w.refusals[w.proofKey()]
		}
	}
	seen.Back = w.podChange(pod, s.template, true)
	if next != nil {
		seen.Next = &Pod{Revision: s.template.String(), State: next.state, Going: next.going, Why: next.why}
		if next.why == noNode { // it is waited for
			seen.Next.State = Starting
		}
	} else if s.refused && w.surges(seen) {
		seen.Next = &Pod{Revision: s.template.String(), State: Broken, Why: "a quota does not allow it"}
	}
	seen.Astray = pod.asked == s.template && pod.cpu != pod.asked.cpu && pod.cpu != w.target.cpu
	seen.Announcement = pod.stop.container == pod.container && !stopIsToCome(pod, step)
	return seen
}

// holders picks them as the controller does.
func (s *modelShard) holders() (pod, next *modelPod) {
	pods := slices.Clone(s.pods)
	rank := func(p *modelPod) int {
		switch {
		case p.state == Serving && !p.going:
			return 0
		case p.state == Serving:
			return 1
		case !p.going:
			return 2
		default:
			return 3
		}
	}
	slices.SortStableFunc(pods, func(a, b *modelPod) int { return cmp.Or(rank(a)-rank(b), b.number-a.number) })
	if len(pods) == 0 {
		return nil, nil
	}
	pod = pods[0]
	for _, p := range pods {
		follows := p.asked == s.template
		switch {
		case p.going:
		case follows && next == nil:
			next = p
		case !follows && (pod.asked == s.template || pod.going):
			pod = p
		}
	}
	if next == pod || pod.asked == s.template {
		next = nil
	}
	return pod, next
}

// surges says whether a shard is to have two pods, as the controller does.
func (w *world) surges(s seenShard) bool {
	takesOver := s.Next != nil && s.Next.State == Serving
	return s.pod != nil && s.Template == w.target.String() && s.Pod.Revision != s.Template && s.Failed == "" && s.Forward.Class == Replace &&
		s.Pod.State != Broken && !s.Pod.Going && !(s.podWas.retired && takesOver)
}

// inPlace says whether the pod came from the template in place.
func (s *modelShard) inPlace(p *modelPod) bool {
	return p.step != nil && p.step.revision == p.asked && p.step.from == s.template && (s.step == nil || s.step.at < p.step.at)
}

func stopIsToCome(p *modelPod, step *modelStep) bool {
	return step != nil && step.class == Recreate && step.container == p.container
}

// endsContainer is as in the controller.
const endsContainer = 10 * time.Second

// outcome judges as the controller does.
func (w *world) outcome(s *modelShard, p *modelPod, step *modelStep) (Outcome, string) {
	switch {
	case p.state != Serving:
	case stopIsToCome(p, step), p.tells && step != nil && step.revision == p.asked && p.asked.arguments != p.runs.arguments && !p.refuses:
	case step == nil || step.revision != p.asked || p.asked == s.template || step.class <= Live:
		if p.tells {
			return Settled, ""
		}
	case !p.tells:
	default:
		really := w.fate(s, p.runs.image)
		switch {
		case strings.HasPrefix(really, "is really"):
			return Wrong, "the image " + really
		case p.refuses && w.now-step.at > 5*time.Second:
			return Wrong, "memcached does not start with " + p.asked.arguments
		case p.runs.arguments != p.asked.arguments:
		case p.cold:
			return Cold, "it started empty"
		default:
			return Settled, ""
		}
	}
	return Pending, p.why
}

// changeBetween is what change.go makes of two revisions.
func (w *world) changeBetween(from, to revision) Change {
	c := Change{}
	var what []string
	differs := func(a, b, unset string, class Class) bool {
		if a != b {
			c.Class = max(c.Class, class)
			what = append(what, cmp.Or(a, unset)+" → "+cmp.Or(b, unset))
		}
		return a != b
	}
	differs(from.image, to.image, "", Recreate)
	differs(from.arguments, to.arguments, "no arguments", Restart)
	differs(from.memory, to.memory, "64Mi", Replace)
	if differs(from.cpu, to.cpu, "cpu=1", Live) {
		c.Resize = Needed
	}
	differs(from.label, to.label, "no label", Live)
	if from.series() != to.series() {
		c.Class = Replace
		if !w.acceptCold {
			c.Forbidden = "nobody knows whether " + to.image + " reads the items of " + from.image
		}
	}
	if c.What = strings.Join(what, ", "); c.Class == Replace {
		c.Resize = NotNeeded
	}
	return c
}

// podChange is changeBetween, with how far its preparations are on the pod.
func (w *world) podChange(p *modelPod, to revision, back bool) Change {
	c := w.changeBetween(p.asked, to)
	if c.Resize != NotNeeded {
		switch room := w.fates[to.cpu]; {
		case p.cpu != to.cpu:
			c.Resize = Needed
		case p.cpuNow == p.cpu:
			c.Resize = Done
		case room == "never" && !back:
			c.Class, c.Resize = Replace, NotNeeded
			c.What += "; no node will have room"
		default:
			c.Resize, c.ResizeWhy = Underway, cmp.Or(room, "the kubelet resizes the pod")
		}
	}
	token := modelToken{p.container, to}
	c.Announced = p.tells && p.heard == token && p.stop == token
	return c
}

func (w *world) proofKey() string { return w.target.String() + " " + w.attempt() }

// unproven says why the target's image cannot be proven, if it cannot.
func (w *world) unproven() string {
	switch fate := w.fates[w.target.image]; {
	case fate == "cannot be pulled", fate == "is not memcached", strings.HasPrefix(fate, "is really"):
		return "image " + w.target.image + " " + fate
	case w.fates[w.target.arguments] == "refused":
		return "memcached does not start with " + w.target.arguments
	}
	return ""
}

func (w *world) seeAll() []seenShard {
	var all []seenShard
	for _, s := range w.shards {
		all = append(all, w.see(s))
	}
	return all
}

func (w *world) input(shards []seenShard) Input {
	in := Input{Target: w.target.String(), Paused: w.paused, Invalid: w.invalid, AcceptCold: w.acceptCold,
		SinceLast: -1, MinBetween: w.minBetween, OpensIn: max(w.opensAt-w.now, 0)}
	var last *modelStep
	for _, s := range shards {
		in.Shards = append(in.Shards, s.Shard)
		if s.pod == nil {
			continue
		}
		step := cmp.Or(s.pod.step, s.of.step)
		if step == nil || step.class <= Live || last != nil && step.at <= last.at {
			continue
		}
		last = step
		in.SinceLast = w.now - step.at
		if w.gate != nil {
			in.Recovery = &Recovery{Shard: s.Name, Before: 0.95, Now: 0.5, Requests: 5000, Share: 0.9, MinRequests: 1000,
				Waited: in.SinceLast, Timeout: w.gate.timeout, Continue: w.gate.goesOn}
			if w.gate.recovers >= 0 && in.SinceLast >= w.gate.recovers {
				in.Recovery.Now = 0.95
			}
		}
	}
	return in
}

// decide returns the next decision and what it was made by.
func (w *world) decide() (Decision, []seenShard) {
	shards := w.seeAll()
	return Next(w.input(shards)), shards
}

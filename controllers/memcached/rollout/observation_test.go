package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// observedShard is a shard as the operator observes it, and the pod that runs it.
type observedShard struct {
	Shard
	of        *modelShard
	pod, next *modelPod
	podWas    modelPod
	// moveStarted is whether the replacement of the pod by one on another node has.
	moveStarted bool
}

func (w *world) observe(s *modelShard) observedShard {
	observed := observedShard{of: s, Shard: Shard{Name: s.name, Target: w.target.String(), Template: s.template.String()}}
	if f := s.failed; f != nil && f.revision == w.target && f.attempt == w.attempt() {
		observed.Failed = f.message
	}
	pod, next := s.activeAndNext()
	if pod == nil {
		return observed
	}
	observed.pod, observed.podWas = pod, *pod
	record := cmp.Or(pod.update, s.update)
	observed.Pod = Pod{Revision: pod.revision.String(), State: pod.state, Terminating: pod.terminating, Reason: pod.reason}
	observed.Pod.Outcome, observed.Pod.Reason = w.outcome(s, pod, record)
	observed.moveStarted = s.moveStarted(pod)
	observed.Pod.InPlace = s.inPlace(pod) && !observed.moveStarted
	if observed.moveStarted {
		observed.Template += moved
	}
	if pod.state == Broken && stopPending(pod, record) && w.now-record.at < containerRestartGrace {
		observed.Pod.State = Starting
	}
	for _, p := range s.pods {
		observed.PredecessorTerminating = observed.PredecessorTerminating || p != pod && (p.terminating || p != next)
	}
	if w.moves(s, pod, observed.Pod) {
		observed.Target += moved
	}
	moveOnly := observed.Target != w.target.String() && pod.revision == w.target
	observed.ToTarget = w.podChange(pod, w.target, false)
	switch {
	case moveOnly:
		observed.ToTarget = Change{Method: Replace, HandsOver: true, Description: "moves to another node"}
	case pod.revision == w.target && s.template == w.target && observed.Failed == "" && w.replacementAnnounced(s):
		observed.ToTarget = Change{Method: Replace, HandsOver: w.handsOver, Description: "the new pod takes over"}
	case pod.revision == w.target:
		observed.ToTarget = w.changeBetween(s.template, w.target)
	case w.byHandover && pod.state != Broken:
		observed.ToTarget = byHandover(observed.ToTarget)
	}
	observed.ToTarget.ReplacementAnnounced = w.replacementAnnounced(s)
	observed.Rollback = w.podChange(pod, s.template, true)
	if next != nil {
		observed.next, observed.HandsOver = next, next.receives == pod.number && !pod.terminating
		observed.Next = &Pod{Revision: s.template.String(), State: next.state, Terminating: next.terminating, Reason: next.reason}
	} else if s.podRejected && w.needsSurge(observed) {
		observed.Next = &Pod{Revision: s.template.String(), State: Broken, Reason: "a quota doesn't allow it"}
	}
	if observed.Next != nil && observed.Next.State == Broken && (moveOnly || observed.Next.Reason == noNode) { // the controller waits for a node
		observed.Next.State = Starting
	}
	observed.ResourcesDrifted = pod.revision == s.template && pod.cpu != pod.revision.cpu && pod.cpu != w.target.cpu
	observed.StopAnnounced = pod.stop.container == pod.container && !stopPending(pod, record)
	return observed
}

// moved is added to the revision of a pod that runs on another node than the first one.
const moved = " on another node"

// moves reports whether a shard's pod has to be replaced by one on another node, as the controller does.
func (w *world) moves(s *modelShard, p *modelPod, was Pod) bool {
	switch {
	case !p.moves || s.template != w.target:
		return false
	case s.moveStarted(p):
		return true
	}
	return !p.terminating && was.State != Broken && !slices.ContainsFunc(w.shards, func(s *modelShard) bool {
		pod, _ := s.activeAndNext()
		return s.template != w.target || pod != nil && pod.revision != w.target
	})
}

func (w *world) replacementAnnounced(s *modelShard) bool {
	return w.announced == modelAnnouncement{w.target, s.name, true}
}

// activeAndNext selects the pods as the controller does.
func (s *modelShard) activeAndNext() (pod, next *modelPod) {
	pods := slices.Clone(s.pods)
	rank := func(p *modelPod) int {
		switch {
		case p.state == Serving && !p.terminating:
			return 0
		case p.state == Serving:
			return 1
		case !p.terminating:
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
		follows := p.revision == s.template && !s.moveStarted(p)
		switch {
		case p.terminating:
		case follows && next == nil:
			next = p
		case !follows && (pod.revision == s.template && !s.moveStarted(pod) || pod.terminating):
			pod = p
		}
	}
	if next == pod || pod.revision == s.template && !s.moveStarted(pod) {
		next = nil
	}
	return pod, next
}

// moveStarted reports whether the replacement of a pod by one on another node has.
func (s *modelShard) moveStarted(p *modelPod) bool {
	return p.moves && s.update != nil && s.update.moves == p.number
}

// needsSurge reports whether a shard needs two pods, as the controller does.
func (w *world) needsSurge(s observedShard) bool {
	takesOver := s.Next != nil && s.Next.State == Serving
	if s.HandsOver && s.next.state != Broken {
		return true
	}
	return s.pod != nil && s.Template == s.Target && s.Pod.Revision != s.Template && s.Failed == "" && s.ToTarget.Method == Replace &&
		s.Pod.State != Broken && !s.Pod.Terminating && !(s.podWas.draining && takesOver)
}

// inPlace reports whether the pod was updated in place from the template's revision.
func (s *modelShard) inPlace(p *modelPod) bool {
	return p.update != nil && p.update.revision == p.revision && p.update.from == s.template && (s.update == nil || s.update.at < p.update.at)
}

func stopPending(p *modelPod, record *modelUpdate) bool {
	return record != nil && record.method == Recreate && record.container == p.container
}

// containerRestartGrace is that of the controller.
const containerRestartGrace = 10 * time.Second

// outcome evaluates an update as the controller does.
func (w *world) outcome(s *modelShard, p *modelPod, record *modelUpdate) (Outcome, string) {
	switch {
	case p.state != Serving:
	case stopPending(p, record), p.startReported && record != nil && record.revision == p.revision && p.revision.arguments != p.running.arguments && !p.argumentsRejected:
	case record == nil || record.revision != p.revision || p.revision == s.template || record.method <= Live:
		switch {
		case p.startReported && p.cold && record != nil && record.keepsItems && record.revision == p.revision && w.replacementAnnounced(s):
			return Cold, "it started empty"
		case p.startReported:
			return Verified, ""
		}
	case !p.startReported:
	default:
		fault := w.faultOf(s, p.running.image)
		switch {
		case strings.HasPrefix(fault, "contains"):
			return Mismatched, "the image " + fault
		case p.argumentsRejected && w.now-record.at > 5*time.Second:
			return Mismatched, "memcached doesn't start with " + p.revision.arguments
		case p.running.arguments != p.revision.arguments:
		case p.cold:
			return Cold, "it started empty"
		default:
			return Verified, ""
		}
	}
	return Pending, p.reason
}

// changeBetween compares two revisions as the controller does.
func (w *world) changeBetween(from, to revision) Change {
	c := Change{HandsOver: w.handsOver}
	var what []string
	differs := func(a, b, unset string, method Method) bool {
		if a != b {
			c.Method = max(c.Method, method)
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
		c.Method = Replace
		if !w.allowCrossSeries {
			c.Forbidden = to.image + " may not be able to read items saved by " + from.image
		}
	}
	if c.Description = strings.Join(what, ", "); c.Method == Replace {
		c.Resize = NotNeeded
	}
	return c
}

// podChange returns the change of a pod, with the progress of its preparations.
func (w *world) podChange(p *modelPod, to revision, back bool) Change {
	c := w.changeBetween(p.revision, to)
	if c.Resize != NotNeeded {
		switch room := w.faults[to.cpu]; {
		case p.cpu != to.cpu:
			c.Resize = Needed
		case p.cpuNow == p.cpu:
			c.Resize = Done
		case room == "never" && !back:
			c.Method, c.Resize = Replace, NotNeeded
			c.Description += "; no node has room"
		default:
			c.Resize, c.ResizeReason = Underway, cmp.Or(room, "the kubelet resizes the pod")
		}
	}
	token := modelToken{p.container, to}
	c.StopAcknowledged = p.startReported && p.acknowledged == token && p.stop == token
	return c
}

// byHandover returns the change as a replacement that keeps the items, if it can, as the controller does.
func byHandover(c Change) Change {
	if c.HandsOver && (c.Method == Restart || c.Method == Recreate) {
		c.Method, c.Resize = Replace, NotNeeded
		c.Description += ", which moves it to a new pod with its items"
	}
	c.KeepsItems = c.HandsOver && c.Method == Replace
	return c
}

func (w *world) preflightKey() string { return w.target.String() + " " + w.attempt() }

// preflightFailure returns why the target's image fails its checks; empty when it passes.
func (w *world) preflightFailure() string {
	switch fault := w.faults[w.target.image]; {
	case fault == "cannot be pulled", fault == "is not memcached", strings.HasPrefix(fault, "contains"):
		return "image " + w.target.image + " " + fault
	case w.faults[w.target.arguments] == "rejected":
		return "memcached doesn't start with " + w.target.arguments
	}
	return ""
}

func (w *world) observeAll() []observedShard {
	var all []observedShard
	for _, s := range w.shards {
		all = append(all, w.observe(s))
	}
	return all
}

func (w *world) input(shards []observedShard) Input {
	in := Input{Preflight: cmp.Or(w.preflights[w.preflightKey()], Needed), PreflightReason: "checking image " + w.target.image,
		Paused: w.paused, Invalid: w.invalid, AllowItemLoss: w.allowItemLoss,
		SinceUpdate: -1, MinPeriod: w.minPeriod, WindowOpensIn: max(w.windowOpensAt-w.now, 0), RestoreRunning: w.restoreRunning}
	if in.Preflight == Refused {
		in.PreflightReason = w.preflightFailures[w.preflightKey()]
	}
	var last *modelUpdate
	for _, s := range shards {
		in.Shards = append(in.Shards, s.Shard)
		if s.pod == nil {
			continue
		}
		record := cmp.Or(s.pod.update, s.of.update)
		if record == nil || record.method <= Live || last != nil && record.at <= last.at {
			continue
		}
		last = record
		in.SinceUpdate = w.now - record.at
		if w.hitRatioGate != nil {
			in.Recovery = &Recovery{Shard: s.Name, Before: 0.95, Now: 0.5, Requests: 5000, Share: 0.9, MinRequests: 1000,
				Waited: in.SinceUpdate, Timeout: w.hitRatioGate.timeout, Continue: w.hitRatioGate.continues}
			if w.hitRatioGate.recovers >= 0 && in.SinceUpdate >= w.hitRatioGate.recovers {
				in.Recovery.Now = 0.95
			}
		}
	}
	return in
}

// decide returns the next decision and the observation behind it.
func (w *world) decide() (Decision, []observedShard) {
	shards := w.observeAll()
	return Next(w.input(shards)), shards
}

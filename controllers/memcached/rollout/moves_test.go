package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// move is something that could happen next, and how long it takes.
type move struct {
	who, what string
	takes     time.Duration
	do        func()
}

// moves are all that could happen next without anybody's fault.
func (w *world) moves() []move {
	var all []move
	if w.proofs[w.proofKey()] == Underway {
		to, what := Done, "proves image "+w.target.image
		if w.unproven() != "" {
			to, what = Refused, "refuses image "+w.target.image
		}
		all = append(all, move{"proof", what, 3 * time.Second, func() { w.proofs[w.proofKey()], w.refusals[w.proofKey()] = to, w.unproven() }})
	}
	if w.proofs[w.proofKey()] == Refused && w.unproven() == "" {
		all = append(all, move{"clock", "the proof is made anew", 5 * time.Minute, func() { delete(w.proofs, w.proofKey()) }})
	}
	for _, s := range w.shards {
		for _, p := range s.pods {
			all = append(all, w.podMoves(s, p)...)
		}
		all = append(all, w.setMoves(s)...)
	}
	return all
}

// setMoves are those of a ReplicaSet.
func (w *world) setMoves(s *modelShard) []move {
	var live []*modelPod
	for _, p := range s.pods {
		if !p.going {
			live = append(live, p)
		}
	}
	want := 1
	if s.surge {
		want = 2
	}
	switch {
	case len(live) == 1 && want == 2 && w.fates["quota"] != "":
		if !s.refused {
			return []move{{"ReplicaSet", "is refused a pod for " + s.name, 0, func() { s.refused = true }}}
		}
	case len(live) < want:
		return []move{{"ReplicaSet", "makes a pod for " + s.name, 0, func() { w.makePod(s) }}}
	case len(live) > want:
		// Those that do not serve, then the cheaper, then the newer.
		slices.SortStableFunc(live, func(a, b *modelPod) int {
			key := func(p *modelPod) int {
				switch {
				case p.state != Serving:
					return 0
				case p.retired:
					return 1
				}
				return 2
			}
			return cmp.Or(key(a)-key(b), b.number-a.number)
		})
		return []move{{"ReplicaSet", "ends the pod " + live[0].asked.String() + " of " + s.name, 0, func() { w.end(s, live[0], itsReplicaSet) }}}
	}
	return nil
}

func (w *world) makePod(s *modelShard) {
	w.pods++
	s.refused = false
	s.pods = append(s.pods, &modelPod{number: w.pods, asked: s.template, made: s.template, runs: s.template,
		cpu: s.template.cpu, cpuNow: s.template.cpu, state: Starting, container: 100 * w.pods})
}

// podMoves are those of a pod's kubelet and agent.
func (w *world) podMoves(s *modelShard, p *modelPod) []move {
	var all []move
	can := func(who, what string, takes time.Duration, do func()) { all = append(all, move{who, what, takes, do}) }
	if p.going {
		can("kubelet", fmt.Sprintf("the pod %s of %s is gone", p.asked, s.name), time.Second, func() {
			s.pods = slices.DeleteFunc(s.pods, func(o *modelPod) bool { return o == p })
		})
		if p.state == Serving && p.stop != p.heard {
			can("agent", s.name+" reads of its stop", 300*time.Millisecond, func() { p.heard = p.stop })
		}
		return all
	}
	if p.state == Serving && p.stop != p.heard {
		can("agent", s.name+" reads of its stop", 300*time.Millisecond, func() { p.heard = p.stop })
	}
	switch stops := p.stop.container == p.container; {
	case p.asked.image != p.runs.image:
		can("kubelet", "ends the container of "+s.name, time.Second, func() { w.recreate(s, p, stops && p.heard == p.stop) })
	case p.state == Serving && p.asked.arguments != p.runs.arguments && !stops && !p.refuses:
		if w.fate(s, p.asked.arguments) == "refused" {
			can("agent", s.name+" refuses "+p.asked.arguments, time.Second, func() { p.refuses, p.tells = true, true })
		} else {
			can("agent", "restarts memcached of "+s.name, time.Second, func() { w.restart(s, p) })
		}
	case p.state == Starting:
		can("kubelet", "starts "+p.runs.String()+" for "+s.name, 2*time.Second, func() { w.start(s, p) })
	case p.state == Broken && (p.crashed || w.whyBroken(s, p) == ""):
		can("kubelet", "starts "+p.runs.String()+" for "+s.name+" again", 10*time.Second, func() {
			p.container++
			w.start(s, p)
		})
	case p.state == Serving && !p.tells:
		can("agent", s.name+" tells how it started", 0, func() { p.tells, p.items = true, true })
	}
	if p.cpu != p.cpuNow && w.fates[p.cpu] == "" {
		can("kubelet", "resizes the pod of "+s.name, time.Second, func() { p.cpuNow = p.cpu })
	}
	return all
}

// recreate ends a pod's container, for one of another image.
func (w *world) recreate(s *modelShard, p *modelPod, announced bool) {
	if p.state == Serving {
		if s.outByUs = true; !announced {
			w.breaks("the container of %s was ended unannounced", s.name)
		}
	}
	p.state, p.why, p.runs, p.tells, p.crashed, p.refuses = Starting, "", p.asked, false, false, false
	p.container++
}

// restart has the agent restart memcached.
func (w *world) restart(s *modelShard, p *modelPod) {
	p.state, p.runs.arguments, p.tells, s.outByUs = Starting, p.asked.arguments, false, true
}

// start has a container come up, or not.
func (w *world) start(s *modelShard, p *modelPod) {
	p.runs.arguments, p.crashed = p.asked.arguments, false
	if p.why = w.whyBroken(s, p); p.why != "" {
		p.state = Broken
		return
	}
	if w.fate(s, p.runs.image) == "loses the items" {
		p.items = false
	}
	p.state, p.cold, p.tells = Serving, !p.items, false
	s.outByUs = false
}

// whyBroken says why a pod does not come up, if it does not.
func (w *world) whyBroken(s *modelShard, p *modelPod) string {
	image := w.fate(s, p.runs.image)
	switch {
	case w.fate(s, cmp.Or(p.made.memory, "64Mi")) == "no node":
		return noNode
	case image == "crashes" || image == "cannot be pulled" || image == "is not memcached":
		return "image " + p.runs.image + " " + image
	case w.fate(s, p.runs.arguments) == "refused":
		return "memcached does not start with " + p.runs.arguments
	}
	return ""
}

const noNode = "no node takes the pod"

// end has a pod end. Its items go with it: unless a node is drained, they must
// have been told of, or be of no use.
func (w *world) end(s *modelShard, p *modelPod, by string) {
	p.going = true
	isSpare := slices.ContainsFunc(s.pods, func(o *modelPod) bool {
		return o != p && !o.going && o.state == Serving && (o.items || o.number < p.number)
	})
	switch {
	case by == drained || !p.items || p.retired:
	case p.state == Broken && !s.inPlace(p): // it broke by itself
	case p.state != Serving && isSpare, by == itsReplicaSet && isSpare:
	default:
		w.breaks("the items of %s were given up untold with the pod %s, which %s ended", s.name, p.asked, by)
	}
}

// Those who end pods.
const (
	drained       = "a drain"
	itsReplicaSet = "its ReplicaSet"
	theOperator   = "the operator"
)

// drain has a shard's pod be moved.
func (w *world) drain(s *modelShard) {
	if p, _ := s.holders(); p != nil && !p.going {
		w.end(s, p, drained)
		s.outByUs = false
	}
}

// crash has a shard's container end by itself, with its items.
func (w *world) crash(s *modelShard) {
	if p, _ := s.holders(); p != nil && !p.going && p.state != Broken {
		p.state, p.why, p.items, p.crashed, p.tells = Broken, "memcached was killed", false, true, false
		s.outByUs = false
	}
}

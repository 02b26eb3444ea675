package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// transition is an event that may happen next, and how long it takes.
type transition struct {
	who, what string
	takes     time.Duration
	do        func()
}

// transitions returns the events that may happen next without a fault.
func (w *world) transitions() []transition {
	var all []transition
	if w.preflights[w.preflightKey()] == Underway {
		to, what := Done, "image "+w.target.image+" passes"
		if w.preflightFailure() != "" {
			to, what = Refused, "image "+w.target.image+" fails"
		}
		all = append(all, transition{"preflight", what, 3 * time.Second, func() {
			w.preflights[w.preflightKey()], w.preflightFailures[w.preflightKey()] = to, w.preflightFailure()
		}})
	}
	if w.preflights[w.preflightKey()] == Refused && w.preflightFailure() == "" {
		all = append(all, transition{"clock", "the preflight check is due again", 5 * time.Minute, func() { delete(w.preflights, w.preflightKey()) }})
	}
	for _, s := range w.shards {
		for _, p := range s.pods {
			all = append(all, w.podTransitions(s, p)...)
		}
		all = append(all, w.replicaSetTransitions(s)...)
	}
	return all
}

func (w *world) replicaSetTransitions(s *modelShard) []transition {
	var live []*modelPod
	for _, p := range s.pods {
		if !p.terminating {
			live = append(live, p)
		}
	}
	want := 1
	if s.surge {
		want = 2
	}
	switch {
	case len(live) == 1 && want == 2 && w.faults["quota"] != "":
		if !s.podRejected {
			return []transition{{"ReplicaSet", "can't create a pod for " + s.name, 0, func() { s.podRejected = true }}}
		}
	case len(live) < want:
		return []transition{{"ReplicaSet", "creates a pod for " + s.name, 0, func() { w.createPod(s) }}}
	case len(live) > want:
		// Pods that don't serve first, then those of a lower deletion cost, then newer ones.
		slices.SortStableFunc(live, func(a, b *modelPod) int {
			key := func(p *modelPod) int {
				switch {
				case p.state != Serving:
					return 0
				case p.draining:
					return 1
				}
				return 2
			}
			return cmp.Or(key(a)-key(b), b.number-a.number)
		})
		return []transition{{"ReplicaSet", "deletes the pod " + live[0].revision.String() + " of " + s.name, 0, func() { w.terminate(s, live[0], byReplicaSet) }}}
	}
	return nil
}

func (w *world) createPod(s *modelShard) {
	w.pods++
	s.podRejected = false
	s.pods = append(s.pods, &modelPod{number: w.pods, revision: s.template, created: s.template, running: s.template,
		cpu: s.template.cpu, cpuNow: s.template.cpu, state: Starting, container: 100 * w.pods})
}

// podTransitions returns those of the pod's kubelet and agent.
func (w *world) podTransitions(s *modelShard, p *modelPod) []transition {
	var all []transition
	add := func(who, what string, takes time.Duration, do func()) {
		all = append(all, transition{who, what, takes, do})
	}
	successor := slices.IndexFunc(s.pods, func(o *modelPod) bool { return o != p && !o.terminating && o.state != Broken })
	if w.handsOver && p.state == Serving && p.items && successor >= 0 && s.pods[successor].state != Serving {
		if next := s.pods[successor]; next.state == Receiving && (p.terminating || next.receives == p.number) {
			add("agent", fmt.Sprintf("%s hands over its items to %s", s.name, next.revision), 10*time.Second, func() {
				p.state, p.items = Starting, false
				next.state, next.items, next.cold, next.startReported, s.disrupted = Serving, true, false, true, false
			})
		}
		if p.terminating {
			return all // it serves in the meantime
		}
	}
	if p.terminating {
		add("kubelet", fmt.Sprintf("removes the pod %s of %s", p.revision, s.name), time.Second, func() {
			s.pods = slices.DeleteFunc(s.pods, func(o *modelPod) bool { return o == p })
		})
		if p.state == Serving && p.stop != p.acknowledged {
			add("agent", s.name+" reads the announced stop", 300*time.Millisecond, func() { p.acknowledged = p.stop })
		}
		return all
	}
	if p.state == Serving && p.stop != p.acknowledged {
		add("agent", s.name+" reads the announced stop", 300*time.Millisecond, func() { p.acknowledged = p.stop })
	}
	switch stops := p.stop.container == p.container; {
	case p.revision.image != p.running.image:
		add("kubelet", "stops the container of "+s.name, time.Second, func() { w.recreate(s, p, stops && p.acknowledged == p.stop) })
	case p.state == Serving && p.revision.arguments != p.running.arguments && !stops && !p.argumentsRejected:
		if w.faultOf(s, p.revision.arguments) == "rejected" {
			add("agent", s.name+" rejects "+p.revision.arguments, time.Second, func() { p.argumentsRejected, p.startReported = true, true })
		} else {
			add("agent", "restarts memcached of "+s.name, time.Second, func() { w.restart(s, p) })
		}
	case p.state == Receiving && w.sourceOf(s, p) == nil:
		add("agent", s.name+" finds no pod that has its items", time.Second, func() { p.state, p.cold, p.startReported = Serving, true, false })
	case p.state == Starting:
		add("kubelet", "starts "+p.running.String()+" for "+s.name, 2*time.Second, func() { w.start(s, p) })
	case p.state == Broken && (p.crashed || w.startFailure(s, p) == ""):
		add("kubelet", "starts "+p.running.String()+" for "+s.name+" again", 10*time.Second, func() {
			p.container++
			w.start(s, p)
		})
	case p.state == Serving && !p.startReported:
		add("agent", s.name+" reports its start", 0, func() { p.startReported, p.items = true, true })
	}
	if p.cpu != p.cpuNow && w.faults[p.cpu] == "" {
		add("kubelet", "resizes the pod of "+s.name, time.Second, func() { p.cpuNow = p.cpu })
	}
	return all
}

// recreate replaces a pod's container with one of another image.
func (w *world) recreate(s *modelShard, p *modelPod, announced bool) {
	if p.state == Serving {
		if s.disrupted = true; !announced {
			w.violates("the container of %s was stopped unannounced", s.name)
		}
	}
	p.state, p.reason, p.running, p.startReported, p.crashed, p.argumentsRejected = Starting, "", p.revision, false, false, false
	p.container++
}

func (w *world) restart(s *modelShard, p *modelPod) {
	p.state, p.running.arguments, p.startReported, s.disrupted = Starting, p.revision.arguments, false, true
}

// start starts a container, which may fail.
func (w *world) start(s *modelShard, p *modelPod) {
	p.running.arguments, p.crashed = p.revision.arguments, false
	if p.reason = w.startFailure(s, p); p.reason != "" {
		p.state = Broken
		return
	}
	if w.faultOf(s, p.running.image) == "loses the items" {
		p.items = false
	}
	if w.handsOver && !p.items && w.sourceOf(s, p) != nil {
		p.state, p.startReported = Receiving, false
		return
	}
	p.state, p.cold, p.startReported = Serving, !p.items, false
	s.disrupted = false
}

// sourceOf returns the pod that can hand over its items to another one; nil when there is none.
func (w *world) sourceOf(s *modelShard, to *modelPod) *modelPod {
	i := slices.IndexFunc(s.pods, func(o *modelPod) bool { return o != to && o.state == Serving && o.items })
	if i < 0 {
		return nil
	}
	return s.pods[i]
}

// startFailure returns why a pod doesn't start; empty when it does.
func (w *world) startFailure(s *modelShard, p *modelPod) string {
	image := w.faultOf(s, p.running.image)
	switch {
	case w.faultOf(s, cmp.Or(p.created.memory, "64Mi")) == "no node":
		return noNode
	case image == "crashes" || image == "cannot be pulled" || image == "is not memcached":
		return "image " + p.running.image + " " + image
	case w.faultOf(s, p.running.arguments) == "rejected":
		return "memcached doesn't start with " + p.running.arguments
	}
	return ""
}

const noNode = "no node has room for the pod"

// terminate deletes a pod and its items. Unless a node is drained, the loss has to be announced,
// or the shard has to have another pod.
func (w *world) terminate(s *modelShard, p *modelPod, by string) {
	p.terminating = true
	isSpare := slices.ContainsFunc(s.pods, func(o *modelPod) bool {
		return o != p && !o.terminating && o.state == Serving && (o.items || o.number < p.number)
	})
	switch {
	case by == byDrain || !p.items || p.draining:
	case by == byOperator && slices.ContainsFunc(s.pods, func(o *modelPod) bool { return o.state == Receiving }):
	case p.state == Broken && !s.inPlace(p): // not broken by an update
	case p.state != Serving && isSpare, by == byReplicaSet && isSpare:
	default:
		w.violates("the items of %s were lost unannounced with the pod %s, which was deleted by %s", s.name, p.revision, by)
	}
}

// Causes of a pod's termination.
const (
	byDrain      = "a drain"
	byReplicaSet = "its ReplicaSet"
	byOperator   = "the operator"
)

// drain evicts a shard's pod.
func (w *world) drain(s *modelShard) {
	if p, _ := s.activeAndNext(); p != nil && !p.terminating {
		w.terminate(s, p, byDrain)
		s.disrupted = false
	}
}

// crash kills a shard's memcached, which loses its items.
func (w *world) crash(s *modelShard) {
	if p, _ := s.activeAndNext(); p != nil && !p.terminating && p.state != Broken {
		p.state, p.reason, p.items, p.crashed, p.startReported = Broken, "memcached was killed", false, true, false
		s.disrupted = false
	}
}

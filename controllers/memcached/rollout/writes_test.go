package rollout

import (
	"slices"
)

// write is one write to the API server.
type write struct {
	what string
	do   func()
}

// writes are what the controller writes for a decision, in its order: ReplicaSets,
// patches and deletions of pods, which are refused when the pod is not any more what
// was seen, and the status.
func (w *world) writes(d Decision, shards []seenShard) []write {
	var all []write
	target := w.target
	if !w.paused {
		for _, s := range shards {
			all = append(all, write{"ReplicaSet " + s.Name, w.setWrite(d, s)})
		}
		if d.Step == StepProve {
			key := w.proofKey()
			all = append(all, write{"proof", func() { w.proofs[key] = Underway }})
		}
		for _, s := range shards {
			if s.Name == d.Shard {
				all = append(all, w.podWrites(d, s)...)
			}
		}
		if d.Done() {
			all = append(all, write{"proofs", func() { clear(w.proofs) }})
		}
	}
	told := modelTold{target, d.Shard, d.Change.Class == Replace && !d.Back}
	if d.Done() || d.Step == StepWithdraw {
		told = modelTold{}
	}
	return append(all, write{"status", func() { w.told = told }})
}

// setWrite writes a shard's ReplicaSet.
func (w *world) setWrite(d Decision, s seenShard) func() {
	target, template, attempt := w.target, s.of.template, w.attempt()
	step, failed := s.of.step, s.of.failed
	if s.Failed == "" {
		failed = nil
	}
	surge := w.surges(s)
	if d.Shard == s.Name {
		switch d.Step {
		case StepConfirm:
			template, surge = s.podWas.asked, false
		case StepNote:
			failed = &modelFailure{target, attempt, d.Message}
		case StepSurge, StepRemake:
			if !d.Back && template != target {
				step = &modelStep{target, s.podWas.asked, w.now, Replace, s.podWas.container}
				template = target
			}
			surge = surge || d.Step == StepSurge
		}
	}
	return func() {
		s.of.template, s.of.surge, s.of.step, s.of.failed = template, surge, step, failed
		s.of.refused = s.of.refused && surge
	}
}

// podWrites patch and delete the shard's pod.
func (w *world) podWrites(d Decision, s seenShard) []write {
	target, template, p := w.target, s.of.template, s.pod
	to := target
	if d.Back {
		to = template
	}
	patch := func(what string, do func()) []write {
		return []write{{what, func() {
			if *p == s.podWas && slices.Contains(s.of.pods, p) {
				do()
			}
		}}}
	}
	switch d.Step {
	case StepResize:
		return patch("resize", func() { p.cpu = to.cpu })
	case StepAnnounce:
		return patch("announce", func() { p.stop = modelToken{p.container, to} })
	case StepWithdraw:
		if !s.Announcement {
			return patch("resize", func() { p.cpu = p.asked.cpu })
		}
		return patch("withdraw", func() { p.stop = modelToken{} })
	case StepRetire:
		return patch("retire", func() { p.retired = true })
	case StepChange:
		return patch("change", func() {
			p.step = &modelStep{to, p.asked, w.now, d.Change.Class, p.container}
			p.asked = to
			p.refuses = p.refuses && to.arguments != p.runs.arguments
		})
	case StepRemake:
		if p != nil && template == to {
			return patch("delete", func() { w.end(s.of, p, theOperator) })
		}
	}
	return nil
}

// apply does all that the controller does with a decision.
func (w *world) apply(d Decision, shards []seenShard) {
	for _, write := range w.writes(d, shards) {
		write.do()
	}
}

package rollout

import (
	"slices"
)

// write is one write to the API server.
type write struct {
	what string
	do   func()
}

// writes returns what the controller writes for a decision, in its order: ReplicaSets, patches
// and deletions of pods, which the API server rejects if the pod has changed since the
// observation, and the status.
func (w *world) writes(d Decision, shards []observedShard) []write {
	var all []write
	target := w.target
	if !w.paused || d.Step != StepNone {
		for _, s := range shards {
			if w.paused && s.Name != d.Shard {
				continue
			}
			all = append(all, write{"ReplicaSet " + s.Name, w.replicaSetWrite(d, s)})
		}
		if d.Step == StepPreflight {
			key := w.preflightKey()
			all = append(all, write{"preflight pods", func() { w.preflights[key] = Underway }})
		}
		for _, s := range shards {
			if s.Name == d.Shard {
				all = append(all, w.podWrites(d, s)...)
			}
		}
		if d.Done() {
			all = append(all, write{"preflight pods", func() { clear(w.preflights) }})
		}
	}
	announced := modelAnnouncement{target, d.Shard, d.Change.Method == Replace && !d.RollingBack}
	if d.Done() || d.Step == StepRevert {
		announced = modelAnnouncement{}
	}
	return append(all, write{"status", func() { w.announced = announced }})
}

func (w *world) replicaSetWrite(d Decision, s observedShard) func() {
	target, template, attempt := w.target, s.of.template, w.attempt()
	record, failed := s.of.update, s.of.failed
	if s.Failed == "" {
		failed = nil
	}
	surge := w.needsSurge(s)
	if d.Shard == s.Name {
		switch d.Step {
		case StepPromoteTemplate:
			template, surge = s.podWas.revision, false
			if s.moveStarted {
				record = nil
			}
		case StepRecordFailure:
			failed = &modelFailure{target, attempt, d.Message}
			if s.moveStarted && s.podWas.revision == target {
				w.violates("the move of %s fails the update", s.Name)
			}
		case StepSurge, StepRecreate:
			if !d.RollingBack && s.Template != s.Target {
				record = &modelUpdate{revision: target, from: s.podWas.revision, at: w.now, method: Replace, container: s.podWas.container}
				record.keepsItems = d.Step == StepSurge && d.Change.KeepsItems
				if s.podWas.moves {
					record.moves = s.podWas.number
				}
				template = target
			}
			surge = surge || d.Step == StepSurge
		}
	}
	return func() {
		s.of.template, s.of.surge, s.of.update, s.of.failed = template, surge, record, failed
		s.of.podRejected = s.of.podRejected && surge
	}
}

// podWrites returns the patch or deletion of the shard's pod.
func (w *world) podWrites(d Decision, s observedShard) []write {
	target, template, p := w.target, s.of.template, s.pod
	to := target
	if d.RollingBack {
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
	case StepAnnounceStop:
		return patch("announce stop", func() { p.stop = modelToken{p.container, to} })
	case StepRevert:
		if !s.StopAnnounced {
			return patch("resize", func() { p.cpu = p.revision.cpu })
		}
		return patch("revert stop", func() { p.stop = modelToken{} })
	case StepDrain:
		if s.HandsOver {
			return patch("delete", func() { w.terminate(s.of, p, byOperator) })
		}
		return patch("drain", func() { p.draining = true })
	case StepHandOver:
		return []write{{"request", func() { s.next.receives = p.number }}}
	case StepUpdateInPlace:
		return patch("update", func() {
			p.update = &modelUpdate{revision: to, from: p.revision, at: w.now, method: d.Change.Method, container: p.container}
			p.revision = to
			p.argumentsRejected = p.argumentsRejected && to.arguments != p.running.arguments
		})
	case StepRecreate:
		if p != nil && template == to {
			return patch("delete", func() { w.terminate(s.of, p, byOperator) })
		}
	}
	return nil
}

// apply performs all writes of a decision.
func (w *world) apply(d Decision, shards []observedShard) {
	for _, write := range w.writes(d, shards) {
		write.do()
	}
}

package rollout

import (
	"fmt"
	"time"
)

// row is one line of a story.
type row struct {
	at        time.Duration
	who, what string
	shards    []string
	message   string
}

// maxRounds is the number of rounds after which a world should be steady. An hour of checks
// every five seconds has fewer.
const maxRounds = 1000

// run alternates the operator and the world until neither changes anything, or until enough
// returns true. It returns the last decision, and false if there is no steady state.
func (w *world) run(log func(row), enough func() bool) (Decision, bool) {
	var (
		logged string
		last   Decision
	)
	for range maxRounds {
		d, shards := w.decide()
		w.apply(d, shards)
		if text := fmt.Sprintln(d.Shard, d.Step, d.RollingBack, d.Gate, d.Message); text != logged {
			logged = text
			log(row{w.now, "operator", describe(d), w.renderShards(), d.Message})
			if enough() {
				return d, true
			}
		}
		switch transitions := w.transitions(); {
		case len(transitions) > 0:
			w.now += transitions[0].takes
			transitions[0].do()
			log(row{w.now, transitions[0].who, transitions[0].what, w.renderShards(), ""})
			if enough() {
				return d, true
			}
		case d.Step != StepNone && d.Step != StepAwait:
		case d.RequeueAfter > 0 && !d.NeedsIntervention && d.Change.Resize != Underway:
			w.now += d.RequeueAfter
		case d == last: // the writes changed nothing
			return d, true
		}
		last = d
	}
	d, _ := w.decide()
	return d, false
}

func describe(d Decision) string {
	switch {
	case d.Done():
		return "all up to date"
	case d.Step == StepNone && d.NeedsIntervention:
		return "requires intervention: " + string(d.Gate)
	case d.Step == StepNone:
		return "blocks " + d.Shard + ": " + string(d.Gate)
	case d.NeedsIntervention:
		return string(d.Step) + " " + d.Shard + ", requires intervention"
	case d.RollingBack:
		return string(d.Step) + " " + d.Shard + ", rolling back"
	default:
		return string(d.Step) + " " + d.Shard
	}
}

// renderShard shows a shard: [1.6.38] is stable, [1.6.38→1.6.45 …] updated in place and not verified,
// and [1.6.38 + 1.6.38 128Mi …] has a second pod.
func (w *world) renderShard(s *modelShard) string {
	pod, next := s.activeAndNext()
	if pod == nil {
		return fmt.Sprintf("%s [%s no pod]", s.name, s.template)
	}
	text := renderPod(pod)
	switch {
	case pod.revision == s.template:
	case next != nil:
		text += " + " + renderPod(next)
	case pod.update != nil && pod.update.revision == pod.revision:
		text = s.template.String() + "→" + text
	default:
		text += ", next " + s.template.String()
	}
	if f := s.failed; f != nil && f.revision == w.target && f.attempt == w.attempt() {
		text += ", failed"
	}
	return fmt.Sprintf("%s [%s]", s.name, text)
}

func renderPod(p *modelPod) string {
	text := p.revision.String()
	if p.state != Serving {
		text += " " + p.state.String()
	} else if p.cold {
		text += " empty"
	}
	if p.stop.container == p.container {
		text += " announced"
	}
	if p.cpu != p.cpuNow {
		text += " resizing"
	}
	if p.terminating {
		text += " terminating"
	}
	return text
}

func (w *world) renderShards() []string {
	var all []string
	for _, s := range w.shards {
		all = append(all, w.renderShard(s))
	}
	return all
}

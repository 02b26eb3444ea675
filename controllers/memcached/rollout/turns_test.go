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
	sentence  string
}

// maxTurns is after how many turns something is wrong that does not come to rest:
// an hour of looking each five seconds is less.
const maxTurns = 1000

// run lets the operator and the world take turns until neither moves any more, or
// until enough says so. It returns the last decision, and false when it does not
// come to rest.
func (w *world) run(log func(row), enough func() bool) (Decision, bool) {
	var (
		logged string
		last   Decision
	)
	for range maxTurns {
		d, shards := w.decide()
		w.apply(d, shards)
		if text := fmt.Sprintln(d.Shard, d.Step, d.Back, d.Gate, d.Message); text != logged {
			logged = text
			log(row{w.now, "operator", tell(d), w.pictures(), d.Message})
			if enough() {
				return d, true
			}
		}
		switch moves := w.moves(); {
		case len(moves) > 0:
			w.now += moves[0].takes
			moves[0].do()
			log(row{w.now, moves[0].who, moves[0].what, w.pictures(), ""})
			if enough() {
				return d, true
			}
		case d.Step != StepNone && d.Step != StepAwait:
		case d.After > 0 && !d.NeedsPerson && d.Change.Resize != Underway:
			w.now += d.After
		case d == last: // what was written did not lead on either
			return d, true
		}
		last = d
	}
	d, _ := w.decide()
	return d, false
}

// tell says what the operator decided.
func tell(d Decision) string {
	switch {
	case d.Done():
		return "is content"
	case d.Step == StepNone && d.NeedsPerson:
		return "needs a person: " + d.Gate
	case d.Step == StepNone:
		return "holds " + d.Shard + ": " + d.Gate
	case d.NeedsPerson:
		return string(d.Step) + " " + d.Shard + ", needs a person"
	case d.Back:
		return string(d.Step) + " " + d.Shard + " back"
	default:
		return string(d.Step) + " " + d.Shard
	}
}

// picture shows a shard: [1.6.38] is settled, [1.6.38→1.6.45 …] changed in place and
// not verified, [1.6.38 + 1.6.38 128Mi …] has a second pod.
func (w *world) picture(s *modelShard) string {
	pod, next := s.holders()
	if pod == nil {
		return fmt.Sprintf("%s [%s no pod]", s.name, s.template)
	}
	text := show(pod)
	switch {
	case pod.asked == s.template:
	case next != nil:
		text += " + " + show(next)
	case pod.step != nil && pod.step.revision == pod.asked:
		text = s.template.String() + "→" + text
	default:
		text += ", next " + s.template.String()
	}
	if f := s.failed; f != nil && f.revision == w.target && f.attempt == w.attempt() {
		text += ", failed"
	}
	return fmt.Sprintf("%s [%s]", s.name, text)
}

func show(p *modelPod) string {
	text := p.asked.String()
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
	if p.going {
		text += " going"
	}
	return text
}

func (w *world) pictures() []string {
	var all []string
	for _, s := range w.shards {
		all = append(all, w.picture(s))
	}
	return all
}

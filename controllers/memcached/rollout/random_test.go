package rollout

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/exhaustive"
)

var seed = flag.Uint64("seed", 0, "play one sequence and log its story")

const (
	seeds  = 5000
	events = 60
)

// TestInvariantsHoldInRandomSequences plays seeded sequences of steps of the operator, events of
// the world, faults and edits in any order. The operator may crash between any two writes. After
// that the world has to reach a steady state.
func TestInvariantsHoldInRandomSequences(t *testing.T) { playSeeds(t, true) }

// TestShardsAreUpdatedWithTheirItemsWithoutFaults plays sequences without faults and further
// edits. Every shard is updated, and none loses items that it can keep.
func TestShardsAreUpdatedWithTheirItemsWithoutFaults(t *testing.T) { playSeeds(t, false) }

func playSeeds(t *testing.T, withFaults bool) {
	if *seed != 0 {
		var story strings.Builder
		err := playSeed(*seed, withFaults, &story)
		t.Logf("\n%s", &story)
		if err != nil {
			t.Error(err)
		}
		return
	}
	for n := uint64(1); n <= seeds; n += uint64(exhaustive.OneIn(7)) { //nolint:gosec // it is positive
		if err := playSeed(n, withFaults, nil); err != nil {
			var story strings.Builder
			_ = playSeed(n, withFaults, &story)
			t.Fatalf("-seed=%d: %v\n%s", n, err, &story)
		}
	}
}

type sequence struct {
	*world
	*rand.Rand
	withFaults bool
	rows       []row
	logs       bool
}

// playSeed plays one sequence and writes its story, unless story is nil.
func playSeed(seed uint64, withFaults bool, story io.Writer) error {
	s := &sequence{Rand: rand.New(rand.NewPCG(seed, 1)), withFaults: withFaults, logs: story != nil} //nolint:gosec // sequences are reproducible
	s.world = newWorld(1+s.IntN(3), parseRevision("1.6.38"))
	s.target, s.handsOver, s.byHandover = s.revision(), seed%2 == 1, seed%4 == 1
	err := s.playAll()
	if story != nil {
		_, _ = io.WriteString(story, renderRows(s.rows))
	}
	return err
}

func (s *sequence) playAll() error {
	for range events {
		s.playEvent()
		if s.violation != "" {
			return fmt.Errorf("%s", s.violation)
		}
	}
	return s.converge()
}

func (s *sequence) log(who, what, message string) {
	if s.logs {
		s.rows = append(s.rows, row{s.now, who, what, s.renderShards(), message})
	}
}

// revision returns a random one.
func (s *sequence) revision() revision {
	pick := func(words ...string) string { return words[s.IntN(len(words))] }
	return parseRevision(strings.Join([]string{
		pick("1.6.18", "1.6.38", "1.6.38", "1.6.45", "1.6.45", "1.7.0"), pick("", "", "", "-t8", "-c9"), pick("", "", "", "128Mi"),
		pick("", "", "", "cpu=2"), pick("", "", "", "label=x"),
	}, " "))
}

func (s *sequence) playEvent() {
	switch n := s.IntN(100); {
	case n < 45:
		s.operate()
	case n < 47 && s.handsOver:
		shard := s.shards[s.IntN(len(s.shards))]
		if p, _ := shard.activeAndNext(); p != nil {
			p.moves = !p.moves
			s.log("user", fmt.Sprintf("wants %s on another node: %t", shard.name, p.moves), "")
		}
	case n < 85 || !s.withFaults:
		s.playTransition()
	default:
		s.fault()
	}
	out := 0
	for _, shard := range s.shards {
		if shard.disrupted {
			out++
		}
	}
	if out > 1 {
		s.violates("the operator made %d shards unavailable", out)
	}
}

// operate plays a step of the operator. Sometimes the world changes before the step is written,
// and sometimes the operator crashes before it has written all of it.
func (s *sequence) operate() {
	d, shards := s.decide()
	if message := violation(s.input(shards), d); message != "" {
		s.violates("%s", message)
	}
	writes := s.writes(d, shards)
	if s.IntN(8) == 0 {
		s.playTransition()
	}
	before := s.upToDate()
	crashes := s.IntN(8) == 0
	if crashes {
		writes = writes[:s.IntN(len(writes))]
	}
	for _, w := range writes {
		w.do()
	}
	if crashes {
		s.log("operator", describe(d)+", crashes", d.Message)
	} else {
		s.log("operator", describe(d), d.Message)
	}
	if after := s.upToDate(); after < before && !d.RollingBack {
		s.violates("%d shards were up to date, and after %s %d", before, describe(d), after)
	}
}

// upToDate returns how many shards are up to date.
func (s *sequence) upToDate() int {
	n := 0
	for _, shard := range s.shards {
		if pod, _ := shard.activeAndNext(); pod != nil && pod.revision == s.target && shard.template == s.target {
			n++
		}
	}
	return n
}

// playTransition plays one of the events that may happen next.
func (s *sequence) playTransition() {
	transitions := s.transitions()
	if len(transitions) == 0 {
		s.now += time.Duration(s.IntN(20)) * time.Second
		return
	}
	m := transitions[s.IntN(len(transitions))]
	s.now += m.takes
	m.do()
	s.log(m.who, m.what, "")
}

// fault plays a fault, or an edit by the user.
func (s *sequence) fault() {
	shard := s.shards[s.IntN(len(s.shards))]
	toggle := func(of, fault string) {
		if s.faults[of] != "" {
			fault = ""
		}
		s.faults[of] = fault
		s.log("world", of+": "+fault, "")
	}
	image := []string{"1.6.18", "1.6.38", "1.6.45"}[s.IntN(3)]
	if (s.paused || s.invalid != "") && s.IntN(2) == 0 {
		s.paused, s.invalid = false, ""
		s.log("user", "unpauses, and sets a valid spec", "")
		return
	}
	switch s.IntN(24) {
	case 0, 1:
		s.drain(shard)
		s.log("node", "is drained of "+shard.name, "")
	case 2:
		s.crash(shard)
		s.log("kernel", "kills memcached of "+shard.name, "")
	case 3:
		s.paused = true
		s.log("user", "pauses", "")
	case 4:
		s.invalid = "not valid"
		s.log("user", "sets an invalid spec", "")
	case 5:
		s.allowItemLoss = s.IntN(2) == 0
		s.allowCrossSeries = s.IntN(2) == 0
		s.log("user", fmt.Sprintf("allows item loss: %t, another release series: %t", s.allowItemLoss, s.allowCrossSeries), "")
	case 6:
		s.retries++
		s.log("user", "retries", "")
	case 7, 8, 9:
		toggle(image, []string{"cannot be pulled", "crashes", "loses the items", "contains 1.6.1"}[s.IntN(4)])
	case 10:
		toggle(shard.name+"/"+image, []string{"crashes", "contains 1.6.1"}[s.IntN(2)])
	case 11:
		toggle("-t8", "rejected")
	case 12:
		toggle("128Mi", "no node")
	case 13:
		toggle("cpu=2", []string{"no room yet", "never"}[s.IntN(2)])
	case 14:
		toggle("quota", "allows no second pod")
	case 15:
		s.minPeriod = time.Duration(s.IntN(2)) * 30 * time.Second
		s.windowOpensAt = s.now + time.Duration(s.IntN(2))*time.Minute
		s.hitRatioGate = nil
		if s.IntN(2) == 0 {
			s.hitRatioGate = &modelHitRatioGate{timeout: 30 * time.Second, recovers: time.Duration(s.IntN(3)-1) * 20 * time.Second, continues: s.IntN(2) == 0}
		}
		s.log("user", "changes the strategy", "")
	default:
		s.target = s.revision()
		s.log("user", "requests "+s.target.String(), "")
	}
}

// converge plays until the steady state and checks it.
func (s *sequence) converge() error {
	log := func(r row) {
		if s.logs {
			s.rows = append(s.rows, r)
		}
	}
	d, ok := s.run(log, func() bool { return s.violation != "" })
	again, shards := s.decide()
	switch {
	case s.violation != "":
		return fmt.Errorf("%s", s.violation)
	case !ok:
		return fmt.Errorf("no steady state: %s: %s", describe(d), d.Message)
	case again != d:
		return fmt.Errorf("the steady state decides %s and then %s", describe(d), describe(again))
	case d.Step == StepAwait && (d.Change.Resize == Underway || d.NeedsIntervention):
		return nil // the message says what is missing
	case d.Step != StepNone:
		return fmt.Errorf("the steady state has a step: %s", describe(d))
	case !s.withFaults && !d.Done() && d.Gate != GateUpdatePathNotAllowed:
		return fmt.Errorf("blocked by %s without a fault", describe(d))
	}
	for _, shard := range shards {
		if err := s.checkShard(shard, d); err != nil {
			return err
		}
	}
	return nil
}

// checkShard checks a shard in the steady state.
func (s *sequence) checkShard(shard observedShard, d Decision) error {
	switch p := shard.pod; {
	case mustDrain(shard.Shard):
		return fmt.Errorf("two pods of %s serve in the steady state", shard.Name)
	case len(shard.of.pods) != 1 && (!shard.of.surge || d.Done() && !s.paused):
		return fmt.Errorf("%s has %d pods in the steady state", shard.Name, len(shard.of.pods))
	case p.revision.memory != p.created.memory:
		return fmt.Errorf("%s says that its pod is %s, but it was created from %s", shard.Name, p.revision, p.created)
	case p.state == Serving && (p.running.image != p.revision.image || p.running.arguments != p.revision.arguments) && !p.argumentsRejected:
		return fmt.Errorf("%s runs %s, not %s", shard.Name, p.running, p.revision)
	case d.Done() && (p.revision != s.target || shard.of.template != s.target || p.moves && p.state != Broken):
		return fmt.Errorf("the operator is done with %s", s.renderShard(shard.of))
	case p.stop.container == p.container && !s.paused && s.invalid == "":
		return fmt.Errorf("the stop of %s is still announced", shard.Name)
	case !s.withFaults && p.cold && p.created == p.revision && s.changeBetween(parseRevision("1.6.38"), s.target).Method < Replace:
		return fmt.Errorf("%s lost its items", shard.Name)
	}
	return nil
}

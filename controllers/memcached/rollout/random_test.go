package rollout

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var seed = flag.Uint64("seed", 0, "the one sequence to play, with its story")

const (
	seeds  = 5000
	events = 60
)

// TestWhateverHappensTheRulesHold plays seeded sequences in which the operator, the
// world, its faults and the person come in any order, and the operator may die
// between any two writes. Then all goes well again, and it has to come to rest.
func TestWhateverHappensTheRulesHold(t *testing.T) { playSeeds(t, true) }

// TestWithoutFaultsEachShardArrivesWithItsItems leaves faults and afterthoughts out:
// every shard gets there, none goes back, and none loses what it could keep.
func TestWithoutFaultsEachShardArrivesWithItsItems(t *testing.T) { playSeeds(t, false) }

func playSeeds(t *testing.T, faults bool) {
	if *seed != 0 {
		var story strings.Builder
		err := playSeed(*seed, faults, &story)
		t.Logf("\n%s", &story)
		if err != nil {
			t.Error(err)
		}
		return
	}
	for n := range uint64(seeds) {
		if err := playSeed(n+1, faults, nil); err != nil {
			var story strings.Builder
			_ = playSeed(n+1, faults, &story)
			t.Fatalf("-seed=%d: %v\n%s", n+1, err, &story)
		}
	}
}

// sequence is one that is played.
type sequence struct {
	*world
	*rand.Rand
	faults bool
	rows   []row
	tells  bool
}

// playSeed plays one sequence and writes its story, if there is somebody to read it.
func playSeed(seed uint64, faults bool, story io.Writer) error {
	s := &sequence{Rand: rand.New(rand.NewPCG(seed, 1)), faults: faults, tells: story != nil} //nolint:gosec // the same each time is what is wanted
	s.world = newWorld(1+s.IntN(3), parseRevision("1.6.38"))
	s.target = s.revision()
	err := s.playAll()
	if story != nil {
		_, _ = io.WriteString(story, picture(s.rows))
	}
	return err
}

func (s *sequence) playAll() error {
	for range events {
		s.happen()
		if s.breach != "" {
			return fmt.Errorf("%s", s.breach)
		}
	}
	return s.settle()
}

func (s *sequence) log(who, what, sentence string) {
	if s.tells {
		s.rows = append(s.rows, row{s.now, who, what, s.pictures(), sentence})
	}
}

// revision returns one that somebody may ask for.
func (s *sequence) revision() revision {
	pick := func(words ...string) string { return words[s.IntN(len(words))] }
	return parseRevision(strings.Join([]string{
		pick("1.6.18", "1.6.38", "1.6.38", "1.6.45", "1.6.45", "1.7.0"), pick("", "", "", "-t8", "-c9"), pick("", "", "", "128Mi"),
		pick("", "", "", "cpu=2"), pick("", "", "", "label=x"),
	}, " "))
}

// happen lets one thing happen.
func (s *sequence) happen() {
	switch n := s.IntN(100); {
	case n < 45:
		s.operate()
	case n < 85 || !s.faults:
		s.move()
	default:
		s.fault()
	}
	out := 0
	for _, shard := range s.shards {
		if shard.outByUs {
			out++
		}
	}
	if out > 1 {
		s.breaks("%d shards are out by our doing", out)
	}
}

// operate has the operator take a step: at times the world moves before it is
// written, and at times the operator dies before all of it is.
func (s *sequence) operate() {
	d, shards := s.decide()
	if sentence := breach(s.input(shards), d); sentence != "" {
		s.breaks("%s", sentence)
	}
	writes := s.writes(d, shards)
	if s.IntN(8) == 0 {
		s.move()
	}
	before := s.arrived()
	dies := s.IntN(8) == 0
	if dies {
		writes = writes[:s.IntN(len(writes))]
	}
	for _, w := range writes {
		w.do()
	}
	if dies {
		s.log("operator", tell(d)+", dies", d.Message)
	} else {
		s.log("operator", tell(d), d.Message)
	}
	if after := s.arrived(); after < before && !d.Back {
		s.breaks("%d shards were as asked, and after %s %d", before, tell(d), after)
	}
}

// arrived returns how many shards are as the person asks.
func (s *sequence) arrived() int {
	n := 0
	for _, shard := range s.shards {
		if pod, _ := shard.holders(); pod != nil && pod.asked == s.target && shard.template == s.target {
			n++
		}
	}
	return n
}

// move lets one of the things happen that could.
func (s *sequence) move() {
	moves := s.moves()
	if len(moves) == 0 {
		s.now += time.Duration(s.IntN(20)) * time.Second
		return
	}
	m := moves[s.IntN(len(moves))]
	s.now += m.takes
	m.do()
	s.log(m.who, m.what, "")
}

// fault lets something happen that was not to be expected.
func (s *sequence) fault() {
	shard := s.shards[s.IntN(len(s.shards))]
	toggle := func(of, fate string) {
		if s.fates[of] != "" {
			fate = ""
		}
		s.fates[of] = fate
		s.log("world", of+": "+fate, "")
	}
	image := []string{"1.6.18", "1.6.38", "1.6.45"}[s.IntN(3)]
	if (s.paused || s.invalid != "") && s.IntN(2) == 0 {
		s.paused, s.invalid = false, ""
		s.log("person", "unpauses, and mends the spec", "")
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
		s.log("person", "pauses", "")
	case 4:
		s.invalid = "not valid"
		s.log("person", "writes a spec that is not valid", "")
	case 5:
		s.acceptCold = !s.acceptCold
		s.log("person", fmt.Sprint("accepts cold: ", s.acceptCold), "")
	case 6:
		s.retries++
		s.log("person", "has it tried again", "")
	case 7, 8, 9:
		toggle(image, []string{"cannot be pulled", "crashes", "loses the items", "is really 1.6.1"}[s.IntN(4)])
	case 10:
		toggle(shard.name+"/"+image, []string{"crashes", "is really 1.6.1"}[s.IntN(2)])
	case 11:
		toggle("-t8", "refused")
	case 12:
		toggle("128Mi", "no node")
	case 13:
		toggle("cpu=2", []string{"no room yet", "never"}[s.IntN(2)])
	case 14:
		toggle("quota", "refuses a second pod")
	case 15:
		s.minBetween = time.Duration(s.IntN(2)) * 30 * time.Second
		s.opensAt = s.now + time.Duration(s.IntN(2))*time.Minute
		s.gate = nil
		if s.IntN(2) == 0 {
			s.gate = &modelGate{timeout: 30 * time.Second, recovers: time.Duration(s.IntN(3)-1) * 20 * time.Second, goesOn: s.IntN(2) == 0}
		}
		s.log("person", "writes another strategy", "")
	default:
		s.target = s.revision()
		s.log("person", "asks for "+s.target.String(), "")
	}
}

// settle lets all that can go on go on, and looks at where it ends.
func (s *sequence) settle() error {
	turns := func(r row) {
		if s.tells {
			s.rows = append(s.rows, r)
		}
	}
	d, ok := s.run(turns, func() bool { return s.breach != "" })
	again, shards := s.decide()
	switch {
	case s.breach != "":
		return fmt.Errorf("%s", s.breach)
	case !ok:
		return fmt.Errorf("it does not come to rest: %s: %s", tell(d), d.Message)
	case again != d:
		return fmt.Errorf("at rest it decides %s and then %s", tell(d), tell(again))
	case d.Step == StepAwait && (d.Change.Resize == Underway || d.NeedsPerson):
		return nil // the message says what the node lacks
	case d.Step != StepNone:
		return fmt.Errorf("it rests on a step: %s", tell(d))
	case !s.faults && !d.Done() && d.Gate != PathNotAllowed:
		return fmt.Errorf("it ends in %s without a fault", tell(d))
	}
	for _, shard := range shards {
		if err := s.isTrue(shard, d); err != nil {
			return err
		}
	}
	return nil
}

// isTrue says what is not so of a shard at rest.
func (s *sequence) isTrue(shard seenShard, d Decision) error {
	switch p := shard.pod; {
	case len(shard.of.pods) != 1 && (!shard.of.surge || d.Done() && !s.paused):
		return fmt.Errorf("%s has %d pods at rest", shard.Name, len(shard.of.pods))
	case p.asked.memory != p.made.memory:
		return fmt.Errorf("%s says that its pod is %s, but it was made as %s", shard.Name, p.asked, p.made)
	case p.state == Serving && (p.runs.image != p.asked.image || p.runs.arguments != p.asked.arguments) && !p.refuses:
		return fmt.Errorf("%s runs %s, not %s", shard.Name, p.runs, p.asked)
	case d.Done() && (p.asked != s.target || shard.of.template != s.target):
		return fmt.Errorf("the operator is content with %s", s.picture(shard.of))
	case p.stop.container == p.container && !s.paused && s.invalid == "":
		return fmt.Errorf("the stop of %s stands announced", shard.Name)
	case !s.faults && p.cold && p.made == p.asked && s.changeBetween(parseRevision("1.6.38"), s.target).Class < Replace:
		return fmt.Errorf("%s lost its items", shard.Name)
	}
	return nil
}

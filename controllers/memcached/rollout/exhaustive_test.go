package rollout

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// The revisions of the small states: what is asked for, what was before, and a
// target that was overtaken.
const (
	wanted    = "wanted"
	before    = "before"
	overtaken = "overtaken"
)

// everyChange are the changes that tell one state from another: by class, each
// with its own preparations.
func everyChange() []Change {
	changes := []Change{{Class: Live}, {Class: Restart}, {Class: Replace}, {Class: Replace, Told: true},
		{Class: Replace, Told: true, Forbidden: "nobody knows"}}
	for _, resize := range []Progress{Needed, Underway, Done} {
		changes = append(changes, Change{Class: Live, Resize: resize}, Change{Class: Restart, Resize: resize})
	}
	for _, proof := range []Progress{Needed, Underway, Done, Refused} {
		changes = append(changes, Change{Class: Recreate, Proof: proof, ProofWhy: "proving"})
	}
	changes = append(changes, Change{Class: Recreate, Proof: Done, Announced: true}, Change{Class: Recreate, Proof: Done, Resize: Needed},
		Change{Class: Recreate, Proof: Done, Forbidden: "nobody knows"})
	for i := range changes {
		changes[i].What = changes[i].Class.String()
	}
	return changes
}

// everyPod are the states of a pod of a revision.
func everyPod(revision string) []Pod {
	pods := []Pod{{Revision: revision, State: Starting}, {Revision: revision, State: Broken, Why: "it crashes"}}
	for outcome := Pending; outcome <= Wrong; outcome++ {
		pods = append(pods, Pod{Revision: revision, State: Serving, Outcome: outcome, Why: "a sentence"})
	}
	for _, p := range pods {
		p.Going = true
		pods = append(pods, p)
	}
	return pods
}

// everyShard are the states of a shard.
func everyShard() []Shard {
	all := []Shard{{Template: wanted}, {Template: before}} // without a pod
	everyNext := []*Pod{nil, {State: Starting}, {State: Starting, Why: "no node takes it"}, {State: Serving}, {State: Broken, Why: "it crashes"}}
	for _, at := range []struct{ template, pod string }{
		{wanted, wanted}, {before, before}, {before, wanted}, {wanted, before}, {before, overtaken}, {overtaken, before},
	} {
		changes, nexts := everyChange(), everyNext
		switch {
		case at.pod == wanted:
			changes = []Change{{}} // the pod is there already
		case at.pod != at.template: // how to begin is decided already
			changes = []Change{{Class: Recreate}, {Class: Replace}, {Class: Replace, Told: true}}
		}
		if at.pod == at.template {
			nexts = everyNext[:1]
		}
		for _, pod := range everyPod(at.pod) {
			for _, change := range changes {
				for _, next := range nexts {
					for _, flags := range everyFlags {
						s := Shard{Template: at.template, Pod: pod, Next: next, Forward: change, Announcement: flags.announcement, Astray: flags.astray}
						if s.Pod.InPlace = flags.inPlace; s.Pod.InPlace && at.pod == at.template || s.Astray && at.pod != at.template {
							continue
						}
						if flags.failed {
							s.Failed = "it failed"
						}
						if !s.Pod.InPlace {
							all = append(all, s)
							continue
						}
						for _, back := range everyBack {
							s.Forward, s.Back = Change{Class: back.Class}, back
							all = append(all, s)
						}
					}
				}
			}
		}
	}
	return all
}

var everyFlags = func() (all []struct{ failed, announcement, inPlace, astray bool }) {
	for n := range 16 {
		all = append(all, struct{ failed, announcement, inPlace, astray bool }{n&1 != 0, n&2 != 0, n&4 != 0, n&8 != 0})
	}
	return all
}()

// everyBack are the ways back of a pod that was changed in place.
var everyBack = []Change{{Class: Live}, {Class: Restart, Resize: Needed}, {Class: Restart, Resize: Underway}, {Class: Recreate}, {Class: Recreate, Announced: true}}

// fewShards are those that differ for another shard's sake.
func fewShards(all []Shard) []Shard {
	var few []Shard
	seen := map[string]bool{}
	for _, s := range all {
		key := fmt.Sprint(s.Template, s.Pod.Revision, s.Pod.State, s.Pod.Going, s.Pod.Outcome == Pending, s.Failed, s.Announcement, s.Astray)
		if s.Pod.Revision == s.Template {
			key += fmt.Sprint(s.Forward.Class <= Live)
		}
		if !seen[key] {
			seen[key] = true
			few = append(few, s)
		}
	}
	return few
}

// everyStrategy are what else a decision is made by.
var everyStrategy = []Input{
	{SinceLast: -1},
	{SinceLast: -1, Paused: true},
	{SinceLast: -1, Invalid: "timeZone is not known"},
	{SinceLast: time.Second, AcceptCold: true},
	{SinceLast: time.Second, MinBetween: time.Minute},
	{SinceLast: -1, OpensIn: time.Minute},
	{SinceLast: time.Hour, Recovery: &Recovery{Shard: "cache-1", Before: 1, Share: 0.9, Waited: time.Hour, Timeout: time.Minute}},
}

// TestInEverySmallState asks for a decision in each state of two shards and holds
// it against the rules: each shard in every state beside each of those that differ
// for its sake, in either place, under each strategy.
func TestInEverySmallState(t *testing.T) {
	all := everyShard()
	few := fewShards(all)
	states := 0
	for _, strategy := range everyStrategy {
		in, tried := strategy, all
		if in.Paused || in.Invalid != "" {
			tried = few // nothing else counts then
		}
		in.Target, in.Shards = wanted, make([]Shard, 2)
		for place := range 2 {
			for i := range tried {
				in.Shards[place] = tried[i]
				in.Shards[place].Name = []string{"cache-0", "cache-1"}[place]
				for j := range few {
					in.Shards[1-place] = few[j]
					in.Shards[1-place].Name = []string{"cache-1", "cache-0"}[place]
					states++
					d := Next(in)
					if sentence := breach(in, d); sentence != "" {
						t.Fatalf("%s\n%+v\n%+v", sentence, d, in)
					}
					if states%64 == 0 { // a decision keeps nothing, and changes nothing
						was := slices.Clone(in.Shards)
						if again := Next(in); again != d {
							t.Fatalf("first %+v, then %+v\n%+v", d, again, in)
						}
						if !slices.EqualFunc(was, in.Shards, equalShards) {
							t.Fatalf("%+v became %+v", was, in.Shards)
						}
					}
				}
			}
		}
	}
	t.Logf("%d states: %d of a shard beside %d of another, in either place, under %d strategies", states, len(all), len(few), len(everyStrategy))
}

func equalShards(a, b Shard) bool {
	if (a.Next == nil) != (b.Next == nil) || a.Next != nil && *a.Next != *b.Next {
		return false
	}
	a.Next, b.Next = nil, nil
	return a == b
}

// TestGatesAreAskedInTheirOrder lets every set of gates hold at once: the first of
// them is the one that is named.
func TestGatesAreAskedInTheirOrder(t *testing.T) {
	settled := func(name string) Shard {
		return Shard{Name: name, Template: before, Pod: Pod{Revision: before, State: Serving, Outcome: Settled},
			Forward: Change{Class: Replace, What: "64Mi → 128Mi", Proof: Done, Told: true}}
	}
	fails := map[string]func(in *Input){
		Paused:           func(in *Input) { in.Paused = true },
		SpecInvalid:      func(in *Input) { in.Invalid = "timeZone is not known" },
		UpdateFailed:     func(in *Input) { in.Shards[1].Failed = "it crashed" },
		PathNotAllowed:   func(in *Input) { in.Shards[0].Forward.Forbidden = "nobody knows" },
		ImageNotProven:   func(in *Input) { in.Shards[0].Forward.Proof, in.Shards[0].Forward.ProofWhy = Underway, "proving" },
		ShardsNotSettled: func(in *Input) { in.Shards[1].Pod.Going = true },
		ShardOut: func(in *Input) {
			in.Shards[2].Pod.State, in.Shards[2].Template = Broken, wanted
			in.Shards[2].Pod.Revision = wanted
		},
		MinTimeBetween: func(in *Input) { in.MinBetween = time.Minute },
		WindowClosed:   func(in *Input) { in.OpensIn = time.Hour },
		HitRatio:       func(in *Input) { in.Recovery = &Recovery{Shard: "cache-2", Before: 1, Share: 1, Timeout: time.Hour} },
		EmptyAnnounced: func(in *Input) { in.Shards[0].Forward.Told = false },
	}
	if len(fails) != len(gatesInOrder) {
		t.Fatalf("%d gates fail, of %d", len(fails), len(gatesInOrder))
	}
	for set := range 1 << len(gatesInOrder) {
		in := Input{Target: wanted, Shards: []Shard{settled("cache-0"), settled("cache-1"), settled("cache-2")}}
		first := ""
		for i, gate := range gatesInOrder {
			if set&(1<<i) == 0 {
				continue
			}
			fails[gate](&in)
			if first == "" {
				first = gate
			}
		}
		d := Next(in)
		if d.Gate != first {
			t.Errorf("of the set %b the gate %q is named, not %q", set, d.Gate, first)
		}
		if first == "" && d.Step != StepSurge {
			t.Errorf("no gate holds, and it decides %+v", d)
		}
		if sentence := breach(in, d); sentence != "" {
			t.Errorf("of the set %b: %s: %+v", set, sentence, d)
		}
	}
}

func TestTheHitRatioIsBackWhenItIsTheShareOfEnoughRequests(t *testing.T) {
	back := Recovery{Before: 0.5, Now: 0.25, Requests: 1000, Share: 0.5, MinRequests: 1000, Timeout: time.Minute}
	for _, c := range []struct {
		name        string
		change      func(r *Recovery)
		holds, asks bool
	}{
		{"just back", func(*Recovery) {}, false, false},
		{"a little less", func(r *Recovery) { r.Now = 0.249 }, true, false},
		{"of too few requests", func(r *Recovery) { r.Requests = 999 }, true, false},
		{"better than before, of too few requests", func(r *Recovery) { r.Now, r.Requests = 1, 999 }, true, false},
		{"nothing was found before either", func(r *Recovery) { r.Before, r.Now = 0, 0 }, false, false},
		{"just before the time is up", func(r *Recovery) { r.Now, r.Waited = 0, time.Minute-1 }, true, false},
		{"the time is up", func(r *Recovery) { r.Now, r.Waited = 0, time.Minute }, true, true},
		{"the time is up, and it goes on", func(r *Recovery) { r.Now, r.Waited, r.Continue = 0, time.Minute, true }, false, false},
		{"it would go on, and the time is not up", func(r *Recovery) { r.Now, r.Continue = 0, true }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := back
			c.change(&r)
			d := Next(Input{Target: wanted, Recovery: &r, Shards: []Shard{{Name: "cache-0", Template: before,
				Pod: Pod{Revision: before, State: Serving, Outcome: Settled}, Forward: Change{Class: Restart}}}})
			if holds := d.Gate == HitRatio; holds != c.holds || d.NeedsPerson != c.asks {
				t.Errorf("it decides %+v", d)
			}
		})
	}
}

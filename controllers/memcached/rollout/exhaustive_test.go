package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/exhaustive"
)

// The revisions of the small states: the update revision, the former one, and an update revision
// that was superseded.
const (
	updated    = "updated"
	former     = "former"
	superseded = "superseded"
)

// everyChange returns the changes that distinguish states: each method with its preparations.
func everyChange() []Change {
	changes := []Change{{Method: Live}, {Method: Restart}, {Method: Replace}, {Method: Replace, ReplacementAnnounced: true},
		{Method: Replace, ReplacementAnnounced: true, Forbidden: "not allowed"}}
	for _, resize := range []Progress{Needed, Underway, Done} {
		changes = append(changes, Change{Method: Live, Resize: resize}, Change{Method: Restart, Resize: resize})
	}
	changes = append(changes, Change{Method: Recreate}, Change{Method: Recreate, StopAcknowledged: true}, Change{Method: Recreate, Resize: Needed},
		Change{Method: Recreate, Forbidden: "not allowed"})
	for i := range changes {
		changes[i].Description = changes[i].Method.String()
	}
	return changes
}

// everyPod returns all states of a pod of a revision.
func everyPod(revision string) []Pod {
	pods := []Pod{{Revision: revision, State: Starting}, {Revision: revision, State: Broken, Reason: "it crashes"}}
	for outcome := Pending; outcome <= Mismatched; outcome++ {
		pods = append(pods, Pod{Revision: revision, State: Serving, Outcome: outcome, Reason: "a reason"})
	}
	for _, p := range pods {
		p.Terminating = true
		pods = append(pods, p)
	}
	return pods
}

// everyShard returns all states of a shard.
func everyShard() []Shard {
	all := []Shard{{Target: updated, Template: updated}, {Target: updated, Template: former}} // without a pod
	everyNext := []*Pod{nil, {State: Starting}, {State: Starting, Reason: "no node has room"}, {State: Serving}, {State: Receiving}, {State: Broken, Reason: "it crashes"}}
	for _, at := range []struct{ template, pod string }{
		{updated, updated}, {former, former}, {former, updated}, {updated, former}, {former, superseded}, {superseded, former},
	} {
		changes, nexts := everyChange(), everyNext
		switch {
		case at.pod == updated:
			changes = []Change{{}} // the pod is up to date
			if at.template == updated {
				changes = append(changes, Change{Method: Replace, ReplacementAnnounced: true})
			}
		case at.pod != at.template: // the first step is already taken
			changes = []Change{{Method: Recreate}, {Method: Replace}, {Method: Replace, ReplacementAnnounced: true}}
		}
		if at.pod == at.template {
			nexts = []*Pod{nil, {State: Serving}} // a second one that is not needed
		}
		for _, pod := range everyPod(at.pod) {
			for _, change := range changes {
				for _, next := range nexts {
					for _, flags := range everyFlags {
						s := Shard{Target: updated, Template: at.template, Pod: pod, Next: next, ToTarget: change, StopAnnounced: flags.stopAnnounced, ResourcesDrifted: flags.drifted}
						if s.Pod.InPlace = flags.inPlace; s.Pod.InPlace && at.pod == at.template || s.ResourcesDrifted && at.pod != at.template {
							continue
						}
						if flags.failed {
							s.Failed = "it failed"
						}
						if !s.Pod.InPlace {
							all = append(all, s)
							if s.HandsOver = next != nil && !pod.Terminating && flags.isPlain; s.HandsOver {
								all = append(all, s)
							}
							continue
						}
						for _, back := range everyRollback {
							s.ToTarget, s.Rollback = Change{Method: back.Method}, back
							all = append(all, s)
						}
					}
				}
			}
		}
	}
	return all
}

type flags struct{ failed, stopAnnounced, inPlace, drifted, isPlain bool }

var everyFlags = func() (all []flags) {
	for n := range 16 {
		all = append(all, flags{n&1 != 0, n&2 != 0, n&4 != 0, n&8 != 0, n <= 1})
	}
	return all
}()

// everyRollback are the rollbacks of a pod that was updated in place.
var everyRollback = []Change{{Method: Live}, {Method: Restart, Resize: Needed}, {Method: Restart, Resize: Underway}, {Method: Recreate}, {Method: Recreate, StopAcknowledged: true}}

// distinctForOthers returns one shard of each kind that makes a difference to another shard.
func distinctForOthers(all []Shard) []Shard {
	var few []Shard
	seen := map[string]bool{}
	for _, s := range all {
		key := fmt.Sprint(s.Template, s.Pod.Revision, s.Pod.State, s.Pod.Terminating, s.Pod.Outcome == Pending, s.Failed, s.StopAnnounced, s.ResourcesDrifted)
		if s.Pod.Revision == s.Template {
			key += fmt.Sprint(s.ToTarget.Method <= Live, s.Pod.Outcome == Cold)
		}
		if !seen[key] {
			seen[key] = true
			few = append(few, s)
		}
	}
	return few
}

// everyStrategy are the other inputs of a decision.
var everyStrategy = []Input{
	{SinceUpdate: -1},
	{SinceUpdate: -1, Preflight: Needed, PreflightReason: "checking"},
	{SinceUpdate: -1, Preflight: Underway, PreflightReason: "checking"},
	{SinceUpdate: -1, Preflight: Refused, PreflightReason: "it crashes"},
	{SinceUpdate: -1, Paused: true},
	{SinceUpdate: -1, Invalid: "timeZone is not known"},
	{SinceUpdate: time.Second, AllowItemLoss: true},
	{SinceUpdate: time.Second, MinPeriod: time.Minute},
	{SinceUpdate: -1, WindowOpensIn: time.Minute},
	{SinceUpdate: -1, RestoreRunning: "fill"},
	{SinceUpdate: -1, Scaling: true},
	{SinceUpdate: time.Hour, Recovery: &Recovery{Shard: "cache-1", Before: 1, Share: 0.9, Waited: time.Hour, Timeout: time.Minute}},
}

// TestEveryStateOfTwoShardsSatisfiesInvariants checks the decision for a shard in every state
// beside another one in every state that makes a difference, in either position and with every
// strategy: of these combinations, a sample by default.
func TestEveryStateOfTwoShardsSatisfiesInvariants(t *testing.T) {
	all := everyShard()
	few := distinctForOthers(all)
	states, step, j := 0, exhaustive.OneIn(19), 0
	for _, strategy := range everyStrategy {
		in, tried := strategy, all
		in.Preflight = cmp.Or(in.Preflight, Done)
		switch {
		case in.Preflight != Done:
			tried = slices.DeleteFunc(slices.Clone(all), func(s Shard) bool { return s.ToTarget.Method != Recreate })
		case in.Paused || in.Invalid != "":
			tried = slices.Clone(few) // of the rest, only a second pod that serves makes a difference
			for _, s := range all {
				if mustDrain(s) {
					tried = append(tried, s)
				}
			}
		}
		in.Shards = make([]Shard, 2)
		for place := range 2 {
			for i := range tried {
				in.Shards[place] = tried[i]
				in.Shards[place].Name = []string{"cache-0", "cache-1"}[place]
				for ; j < len(few); j += step {
					in.Shards[1-place] = few[j]
					in.Shards[1-place].Name = []string{"cache-1", "cache-0"}[place]
					states++
					d := Next(in)
					if message := violation(in, d); message != "" {
						t.Fatalf("%s\n%+v\n%+v", message, d, in)
					}
					if states%64 == 0 { // Next keeps no state and doesn't modify its input
						was := slices.Clone(in.Shards)
						if again := Next(in); again != d {
							t.Fatalf("first %+v, then %+v\n%+v", d, again, in)
						}
						if !slices.EqualFunc(was, in.Shards, equalShards) {
							t.Fatalf("%+v became %+v", was, in.Shards)
						}
					}
				}
				j -= len(few) // the next row continues the sample
			}
		}
	}
	t.Logf("one in %d, %d states: %d of a shard beside %d of another, in either position, with %d strategies", step, states, len(all), len(few), len(everyStrategy))
}

func equalShards(a, b Shard) bool {
	if (a.Next == nil) != (b.Next == nil) || a.Next != nil && *a.Next != *b.Next {
		return false
	}
	a.Next, b.Next = nil, nil
	return a == b
}

// The node takes the pod with it, whether a window is open or not, and whether items move to other shards.
func TestNothingDelaysTheMoveFromANodeThatIsAboutToGo(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		for _, added := range []State{Absent, Starting, Broken} { // it doesn't serve until it has its items
			in := Input{
				Shards: []Shard{{Name: "cache-0", Target: updated, Template: former, Leaves: leaves, Pod: Pod{Revision: former, State: Serving, Outcome: Verified},
					ToTarget: Change{Method: Replace, Description: "moves", ReplacementAnnounced: true}},
					{Name: "cache-1", Target: updated, Template: updated, Unlisted: true, Pod: Pod{Revision: updated, State: added}}},
				MinPeriod: time.Hour, WindowOpensIn: time.Hour, Scaling: true, Recovery: &Recovery{Shard: "cache-0", Before: 1, Share: 1, Timeout: time.Hour},
			}
			if d := Next(in); leaves != (d.Gate == "" && d.Step == StepSurge) {
				t.Errorf("the node is about to go: %t, a new shard is %s, and the decision %+v", leaves, added, d)
			}
			if in.Shards[1].Unlisted = false; Next(in).Step != StepNone {
				t.Errorf("a second shard becomes unavailable beside one that is %s", added)
			}
		}
	}
}

// TestFirstBlockingGateIsReported lets every set of gates block at once.
func TestFirstBlockingGateIsReported(t *testing.T) {
	stable := func(name string) Shard {
		return Shard{Name: name, Target: updated, Template: former, Pod: Pod{Revision: former, State: Serving, Outcome: Verified},
			ToTarget: Change{Method: Replace, Description: "64Mi → 128Mi", ReplacementAnnounced: true}}
	}
	block := map[Gate]func(in *Input){
		GatePaused:                func(in *Input) { in.Paused = true },
		GateUpdateStrategyInvalid: func(in *Input) { in.Invalid = "timeZone is not known" },
		GateUpdateFailed:          func(in *Input) { in.Shards[1].Failed = "it crashed" },
		GateUpdatePathNotAllowed:  func(in *Input) { in.Shards[0].ToTarget.Forbidden = "an unknown path" },
		GateImageNotVerified: func(in *Input) {
			in.Preflight, in.PreflightReason, in.Shards[0].ToTarget.Method = Underway, "checking", Recreate
		},
		GateSecretInvalid:     func(in *Input) { in.Shards[0].ToTarget.SecretError = "tls.crt expired" },
		GateScaling:           func(in *Input) { in.Scaling = true },
		GateShardInTransition: func(in *Input) { in.Shards[1].Pod.Terminating = true },
		GateShardUnavailable: func(in *Input) {
			in.Shards[2].Pod.State, in.Shards[2].Template = Broken, updated
			in.Shards[2].Pod.Revision = updated
		},
		GateMinPeriodNotElapsed:      func(in *Input) { in.MinPeriod = time.Minute },
		GateOutsideMaintenanceWindow: func(in *Input) { in.WindowOpensIn = time.Hour },
		GateHitRatioNotRecovered:     func(in *Input) { in.Recovery = &Recovery{Shard: "cache-2", Before: 1, Share: 1, Timeout: time.Hour} },
		GateRestoreRunning:           func(in *Input) { in.RestoreRunning = "fill" },
		GateEmptyStartNotAnnounced:   func(in *Input) { in.Shards[0].ToTarget.ReplacementAnnounced = false },
	}
	if len(block) != len(gatesInOrder) {
		t.Fatalf("%d of %d gates block", len(block), len(gatesInOrder))
	}
	for set := range 1 << len(gatesInOrder) {
		in := Input{Shards: []Shard{stable("cache-0"), stable("cache-1"), stable("cache-2")}}
		first := Gate("")
		for i, gate := range gatesInOrder {
			if set&(1<<i) == 0 {
				continue
			}
			block[gate](&in)
			if first == "" {
				first = gate
			}
		}
		d := Next(in)
		if d.Gate != first {
			t.Errorf("set %b: got gate %q, want %q", set, d.Gate, first)
		}
		if first == "" && d.Step != StepSurge {
			t.Errorf("no gate blocks: %+v", d)
		}
		if message := violation(in, d); message != "" {
			t.Errorf("set %b: %s: %+v", set, message, d)
		}
	}
}

func TestHitRatioRecoversWithItsShareOfEnoughRequests(t *testing.T) {
	recovered := Recovery{Before: 0.5, Now: 0.25, Requests: 1000, Share: 0.5, MinRequests: 1000, Timeout: time.Minute}
	for _, c := range []struct {
		name                      string
		change                    func(r *Recovery)
		blocks, needsIntervention bool
	}{
		{"just recovered", func(*Recovery) {}, false, false},
		{"slightly below", func(r *Recovery) { r.Now = 0.249 }, true, false},
		{"over too few requests", func(r *Recovery) { r.Requests = 999 }, true, false},
		{"better than before over too few requests", func(r *Recovery) { r.Now, r.Requests = 1, 999 }, true, false},
		{"no hits before either", func(r *Recovery) { r.Before, r.Now = 0, 0 }, false, false},
		{"just before the timeout", func(r *Recovery) { r.Now, r.Waited = 0, time.Minute-1 }, true, false},
		{"timed out", func(r *Recovery) { r.Now, r.Waited = 0, time.Minute }, true, true},
		{"timed out, and continues", func(r *Recovery) { r.Now, r.Waited, r.Continue = 0, time.Minute, true }, false, false},
		{"continues after a timeout that is still to come", func(r *Recovery) { r.Now, r.Continue = 0, true }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := recovered
			c.change(&r)
			d := Next(Input{Recovery: &r, Shards: []Shard{{Name: "cache-0", Target: updated, Template: former,
				Pod: Pod{Revision: former, State: Serving, Outcome: Verified}, ToTarget: Change{Method: Restart}}}})
			if blocks := d.Gate == GateHitRatioNotRecovered; blocks != c.blocks || d.NeedsIntervention != c.needsIntervention {
				t.Errorf("got %+v", d)
			}
		})
	}
}

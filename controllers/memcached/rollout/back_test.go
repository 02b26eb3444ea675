package rollout

import "testing"

// TestAShardThatServesIsTakenBackWhenNoOtherIsOut: it came back empty, which is no
// reason to have two shards out at once.
func TestAShardThatServesIsTakenBackWhenNoOtherIsOut(t *testing.T) {
	failed := Shard{
		Name: "cache-0", Template: "old", Failed: "it started empty",
		Pod:     Pod{Revision: "new", State: Serving, Outcome: Cold, InPlace: true},
		Forward: Change{Class: Restart}, Back: Change{Class: Restart},
	}
	for other, want := range map[State]Decision{
		Serving:  {Shard: "cache-0", Step: StepChange, Back: true},
		Starting: {Shard: "cache-0", Gate: ShardOut},
		Broken:   {Shard: "cache-0", Gate: ShardOut},
		Absent:   {Shard: "cache-0", Gate: ShardOut},
	} {
		in := Input{Target: "new", Shards: []Shard{failed, {Name: "cache-1", Template: "old", Pod: Pod{Revision: "old", State: other, Outcome: Settled}}}}
		if got := Next(in); got.Shard != want.Shard || got.Step != want.Step || got.Gate != want.Gate || got.Back != want.Back {
			t.Errorf("while the other one is %s: %+v", other, got)
		}
	}
	broken := failed
	broken.Pod.State = Broken
	in := Input{Target: "new", Shards: []Shard{broken, {Name: "cache-1", Template: "old", Pod: Pod{Revision: "old", State: Starting}}}}
	if got := Next(in); got.Step != StepChange || !got.Back {
		t.Errorf("one that does not serve waits: %+v", got)
	}
}

func TestNoShardIsChangedBeforeAllAreMade(t *testing.T) {
	in := Input{Target: "new", Unmade: "cache-1", Shards: []Shard{
		{Name: "cache-0", Template: "old", Pod: Pod{Revision: "old", State: Serving, Outcome: Settled}, Forward: Change{Class: Restart}},
	}}
	if got := Next(in); got.Gate != ShardOut || got.Step != StepNone {
		t.Errorf("it is changed: %+v", got)
	}
	in.Unmade = ""
	if got := Next(in); got.Step != StepChange {
		t.Errorf("it waits: %+v", got)
	}
}

package rollout

import "testing"

// A shard that lost its items in an update serves all the same: its rollback must not make a
// second shard unavailable.
func TestServingShardIsRolledBackOnlyWhileOthersServe(t *testing.T) {
	failed := Shard{
		Name: "cache-0", Template: "old", Failed: "it started empty",
		Pod:      Pod{Revision: "new", State: Serving, Outcome: Cold, InPlace: true},
		ToTarget: Change{Method: Restart}, Rollback: Change{Method: Restart},
	}
	for other, want := range map[State]Decision{
		Serving:  {Shard: "cache-0", Step: StepUpdateInPlace, RollingBack: true},
		Starting: {Shard: "cache-0", Gate: GateShardUnavailable},
		Broken:   {Shard: "cache-0", Gate: GateShardUnavailable},
		Absent:   {Shard: "cache-0", Gate: GateShardUnavailable},
	} {
		in := Input{Target: "new", Shards: []Shard{failed, {Name: "cache-1", Template: "old", Pod: Pod{Revision: "old", State: other, Outcome: Verified}}}}
		if got := Next(in); got.Shard != want.Shard || got.Step != want.Step || got.Gate != want.Gate || got.RollingBack != want.RollingBack {
			t.Errorf("while the other shard is %s: got %+v, want %+v", other, got, want)
		}
	}
	broken := failed
	broken.Pod.State = Broken
	in := Input{Target: "new", Shards: []Shard{broken, {Name: "cache-1", Template: "old", Pod: Pod{Revision: "old", State: Starting}}}}
	if got := Next(in); got.Step != StepUpdateInPlace || !got.RollingBack {
		t.Errorf("the rollback of a broken shard doesn't start: %+v", got)
	}
}

func TestRolloutWaitsUntilAllShardsExist(t *testing.T) {
	in := Input{Target: "new", MissingShard: "cache-1", Shards: []Shard{
		{Name: "cache-0", Template: "old", Pod: Pod{Revision: "old", State: Serving, Outcome: Verified}, ToTarget: Change{Method: Restart}},
	}}
	if got := Next(in); got.Gate != GateShardUnavailable || got.Step != StepNone {
		t.Errorf("with a missing shard: %+v", got)
	}
	in.MissingShard = ""
	if got := Next(in); got.Step != StepUpdateInPlace {
		t.Errorf("with all shards: %+v", got)
	}
}

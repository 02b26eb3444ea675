package rollout

import "testing"

// A shard that lost its items in an update serves all the same: its rollback must not make a
// second shard unavailable.
func TestServingShardIsRolledBackOnlyWhileOthersServe(t *testing.T) {
	failed := Shard{
		Name: "cache-0", Target: "new", Template: "old", Failed: "it started empty",
		Pod:      Pod{Revision: "new", State: Serving, Outcome: Cold, InPlace: true},
		ToTarget: Change{Method: Restart}, Rollback: Change{Method: Restart},
	}
	for other, want := range map[State]Decision{
		Serving:  {Shard: "cache-0", Step: StepUpdateInPlace, RollingBack: true},
		Starting: {Shard: "cache-0", Gate: GateShardUnavailable},
		Broken:   {Shard: "cache-0", Gate: GateShardUnavailable},
		Absent:   {Shard: "cache-0", Gate: GateShardUnavailable},
	} {
		in := Input{Shards: []Shard{failed, {Name: "cache-1", Target: "new", Template: "old", Pod: Pod{Revision: "old", State: other, Outcome: Verified}}}}
		if got := Next(in); got.Shard != want.Shard || got.Step != want.Step || got.Gate != want.Gate || got.RollingBack != want.RollingBack {
			t.Errorf("while the other shard is %s: got %+v, want %+v", other, got, want)
		}
	}
	broken := failed
	broken.Pod.State = Broken
	in := Input{Shards: []Shard{broken, {Name: "cache-1", Target: "new", Template: "old", Pod: Pod{Revision: "old", State: Starting}}}}
	if got := Next(in); got.Step != StepUpdateInPlace || !got.RollingBack {
		t.Errorf("the rollback of a broken shard doesn't start: %+v", got)
	}
}

func TestRolloutWaitsUntilAllShardsExist(t *testing.T) {
	in := Input{MissingShard: "cache-1", Shards: []Shard{
		{Name: "cache-0", Target: "new", Template: "old", Pod: Pod{Revision: "old", State: Serving, Outcome: Verified}, ToTarget: Change{Method: Restart}},
	}}
	if got := Next(in); got.Gate != GateShardUnavailable || got.Step != StepNone {
		t.Errorf("with a missing shard: %+v", got)
	}
	in.MissingShard = ""
	if got := Next(in); got.Step != StepUpdateInPlace {
		t.Errorf("with all shards: %+v", got)
	}
}

func TestShardThatLostItsItemsStopsTheRestartsOfOthers(t *testing.T) {
	shard := func(name string) Shard {
		return Shard{Name: name, Target: updated, Template: updated, Pod: Pod{Revision: updated, State: Serving, Outcome: Verified}}
	}
	requires, lost := shard("cache-0"), shard("cache-1")
	requires.Target, requires.ToTarget = "updated, with another certificate", Change{Method: Restart}
	lost.Pod.Outcome, lost.Pod.Reason = Cold, "it started empty"
	in := Input{Shards: []Shard{requires, lost}, SinceUpdate: -1}
	if d := Next(in); d.Step != StepRecordFailure || d.Shard != "cache-1" || d.Message != "it started empty" {
		t.Errorf("%+v", d)
	}
	in.Shards[1].Failed = "it started empty"
	if d := Next(in); d.Gate != GateUpdateFailed || !d.NeedsIntervention {
		t.Errorf("%+v", d)
	}
	in.Shards[1].Failed, in.AllowItemLoss = "", true
	if d := Next(in); d.Step != StepUpdateInPlace || d.Shard != "cache-0" {
		t.Errorf("%+v", d)
	}
}

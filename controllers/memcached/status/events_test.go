package status

import (
	"slices"
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// rollsBack marks a shard that is being rolled back.
const rollsBack v1beta1.UpdateMethod = "rollback"

// Any status of a sequence may be missing: one that conflicts is not written.
func TestUpdateEventsAreRecordedOnce(t *testing.T) {
	on := func(shard string, method v1beta1.UpdateMethod, gate v1beta1.Gate) *v1beta1.UpdateStatus {
		return &v1beta1.UpdateStatus{Revision: "a", Shard: shard, Method: method, Gate: gate, RollingBack: method == rollsBack}
	}
	for _, sequence := range []struct {
		name     string
		statuses []*v1beta1.UpdateStatus
		want     []string
	}{
		{"done", []*v1beta1.UpdateStatus{on("c-0", v1beta1.UpdateRestart, ""), on("c-1", v1beta1.UpdateRestart, v1beta1.GateShardInTransition), on("c-1", v1beta1.UpdateRestart, ""), nil},
			[]string{v1beta1.EventUpdateStarted, v1beta1.EventUpdateFinished}},
		{"reverted", []*v1beta1.UpdateStatus{on("c-0", v1beta1.UpdateRestart, v1beta1.GateOutsideMaintenanceWindow), nil}, []string{v1beta1.EventUpdateStarted}},
		{"reverted while no shard is ready", []*v1beta1.UpdateStatus{on("c-0", v1beta1.UpdateRestart, v1beta1.GateShardUnavailable), nil}, []string{v1beta1.EventUpdateStarted}},
		{"broken shards are fixed", []*v1beta1.UpdateStatus{on("c-0", v1beta1.UpdateRestart, ""), nil}, []string{v1beta1.EventUpdateStarted, v1beta1.EventUpdateFinished}},
		{"rolled back", []*v1beta1.UpdateStatus{on("c-0", v1beta1.UpdateRecreate, ""), on("c-0", rollsBack, ""), on("c-0", v1beta1.UpdateRecreate, v1beta1.GateUpdateFailed)},
			[]string{v1beta1.EventUpdateStarted, v1beta1.EventShardRolledBack}},
		{"rolled back without the status in between", []*v1beta1.UpdateStatus{on("c-0", v1beta1.UpdateRecreate, ""), on("c-0", v1beta1.UpdateRecreate, v1beta1.GateUpdateFailed)},
			[]string{v1beta1.EventUpdateStarted, v1beta1.EventShardRolledBack}},
		{"rolled back twice", []*v1beta1.UpdateStatus{on("c-0", v1beta1.UpdateRecreate, v1beta1.GateUpdateFailed), on("c-0", v1beta1.UpdateRecreate, ""), on("c-0", rollsBack, "")},
			[]string{v1beta1.EventUpdateStarted, v1beta1.EventShardRolledBack, v1beta1.EventShardRolledBack}},
		{"replaced", []*v1beta1.UpdateStatus{on("c-0", v1beta1.UpdateReplace, v1beta1.GateEmptyStartNotAnnounced), on("c-0", v1beta1.UpdateReplace, ""), on("c-1", v1beta1.UpdateReplace, v1beta1.GateShardInTransition), on("c-1", v1beta1.UpdateReplace, ""), nil},
			[]string{v1beta1.EventUpdateStarted, v1beta1.EventEmptyStartAnnounced, v1beta1.EventEmptyStartAnnounced, v1beta1.EventUpdateFinished}},
		{"handed over", []*v1beta1.UpdateStatus{on("c-0", v1beta1.UpdateReplace, v1beta1.GateEmptyStartNotAnnounced), on("c-0", v1beta1.UpdateReplace, ""), nil},
			[]string{v1beta1.EventUpdateStarted, v1beta1.EventUpdateFinished}},
	} {
		var (
			was *v1beta1.UpdateStatus
			got []string
		)
		next := v1beta1.MemcachedStatus{Shards: []v1beta1.ShardStatus{{Revision: "a", UpToDate: true, Ready: true}}}
		switch sequence.name {
		case "reverted":
			next.Shards[0].Revision = "former"
		case "broken shards are fixed", "reverted while no shard is ready":
			next.Shards[0] = v1beta1.ShardStatus{UpToDate: true}
		}
		for _, now := range sequence.statuses {
			next.Update = now
			for _, e := range updateEvents(was, next, sequence.name == "handed over") {
				got = append(got, e.Reason)
			}
			was = now
		}
		if !slices.Equal(got, sequence.want) {
			t.Errorf("%s: events %v, want %v", sequence.name, got, sequence.want)
		}
	}
}

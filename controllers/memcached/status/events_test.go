package status

import (
	"slices"
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// rollsBack marks a shard that is being rolled back.
const rollsBack v1alpha1.UpdateMethod = "rollback"

// Any status of a sequence may be missing: one that conflicts is not written.
func TestUpdateEventsAreRecordedOnce(t *testing.T) {
	on := func(shard string, method v1alpha1.UpdateMethod, gate v1alpha1.Gate) *v1alpha1.UpdateStatus {
		return &v1alpha1.UpdateStatus{Revision: "a", Shard: shard, Method: method, Gate: gate, RollingBack: method == rollsBack}
	}
	for _, sequence := range []struct {
		name     string
		statuses []*v1alpha1.UpdateStatus
		want     []string
	}{
		{"done", []*v1alpha1.UpdateStatus{on("c-0", v1alpha1.UpdateRestart, ""), on("c-1", v1alpha1.UpdateRestart, v1alpha1.GateShardInTransition), on("c-1", v1alpha1.UpdateRestart, ""), nil},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventUpdateFinished}},
		{"rolled back", []*v1alpha1.UpdateStatus{on("c-0", v1alpha1.UpdateRecreate, ""), on("c-0", rollsBack, ""), on("c-0", v1alpha1.UpdateRecreate, v1alpha1.GateUpdateFailed)},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventShardRolledBack}},
		{"rolled back without the status in between", []*v1alpha1.UpdateStatus{on("c-0", v1alpha1.UpdateRecreate, ""), on("c-0", v1alpha1.UpdateRecreate, v1alpha1.GateUpdateFailed)},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventShardRolledBack}},
		{"rolled back twice", []*v1alpha1.UpdateStatus{on("c-0", v1alpha1.UpdateRecreate, v1alpha1.GateUpdateFailed), on("c-0", v1alpha1.UpdateRecreate, ""), on("c-0", rollsBack, "")},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventShardRolledBack, v1alpha1.EventShardRolledBack}},
		{"replaced", []*v1alpha1.UpdateStatus{on("c-0", v1alpha1.UpdateReplace, v1alpha1.GateEmptyStartNotAnnounced), on("c-0", v1alpha1.UpdateReplace, ""), on("c-1", v1alpha1.UpdateReplace, v1alpha1.GateShardInTransition), on("c-1", v1alpha1.UpdateReplace, ""), nil},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventEmptyStartAnnounced, v1alpha1.EventEmptyStartAnnounced, v1alpha1.EventUpdateFinished}},
		{"handed over", []*v1alpha1.UpdateStatus{on("c-0", v1alpha1.UpdateReplace, v1alpha1.GateEmptyStartNotAnnounced), on("c-0", v1alpha1.UpdateReplace, ""), nil},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventUpdateFinished}},
	} {
		var (
			was *v1alpha1.UpdateStatus
			got []string
		)
		for _, now := range sequence.statuses {
			for _, e := range updateEvents(was, v1alpha1.MemcachedStatus{Update: now}, sequence.name == "handed over") {
				got = append(got, e.Reason)
			}
			was = now
		}
		if !slices.Equal(got, sequence.want) {
			t.Errorf("%s: events %v, want %v", sequence.name, got, sequence.want)
		}
	}
}

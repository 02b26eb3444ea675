package memcached

import (
	"slices"
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// Each story is a sequence of statuses, of which any may be missing: one that
// conflicts is not written.
func TestEventsOfAnUpdateTellEachThingOnce(t *testing.T) {
	on := func(shard, step, gate string) *v1alpha1.UpdateStatus {
		return &v1alpha1.UpdateStatus{Revision: "a", Shard: shard, Step: step, Gate: gate}
	}
	for _, story := range []struct {
		name     string
		statuses []*v1alpha1.UpdateStatus
		want     []string
	}{
		{"done", []*v1alpha1.UpdateStatus{on("c-0", "restart", ""), on("c-1", "restart", rollout.ShardsNotSettled), on("c-1", "restart", ""), nil},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventUpdateFinished}},
		{"taken back", []*v1alpha1.UpdateStatus{on("c-0", "recreate", ""), on("c-0", stepBack, ""), on("c-0", "recreate", rollout.UpdateFailed)},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventShardRolledBack}},
		{"taken back, and the status in between was not written", []*v1alpha1.UpdateStatus{on("c-0", "recreate", ""), on("c-0", "recreate", rollout.UpdateFailed)},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventShardRolledBack}},
		{"taken back twice", []*v1alpha1.UpdateStatus{on("c-0", "recreate", rollout.UpdateFailed), on("c-0", "recreate", ""), on("c-0", stepBack, "")},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventShardRolledBack, v1alpha1.EventShardRolledBack}},
		{"replaced", []*v1alpha1.UpdateStatus{on("c-0", "replace", rollout.EmptyAnnounced), on("c-0", "replace", ""), on("c-1", "replace", rollout.ShardsNotSettled), on("c-1", "replace", ""), nil},
			[]string{v1alpha1.EventUpdateStarted, v1alpha1.EventShardToStartEmpty, v1alpha1.EventShardToStartEmpty, v1alpha1.EventUpdateFinished}},
	} {
		var (
			was  *v1alpha1.UpdateStatus
			told []string
		)
		for _, now := range story.statuses {
			for _, e := range updateEvents(was, v1alpha1.MemcachedStatus{Update: now}) {
				told = append(told, e.reason)
			}
			was = now
		}
		if !slices.Equal(told, story.want) {
			t.Errorf("%s: told was %v, want %v", story.name, told, story.want)
		}
	}
}

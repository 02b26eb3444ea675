package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
)

func fromNightly(s *v1beta1.MemcachedSpec) {
	s.Backup.Bootstrap = &v1beta1.Bootstrap{BackupRef: &v1beta1.BackupReference{Name: "nightly"}, DeadlineSeconds: ptr.To[int32](60)}
}

// withoutShards removes all shards, as of a new Memcached.
func withoutShards(obs *observation.Observation) {
	for ordinal := range obs.Shards {
		name := resources.ShardName("cache", ordinal)
		delete(obs.Objects, resources.Key{Kind: resources.KindReplicaSet, Name: name})
		delete(obs.Pods, name)
	}
	obs.Memcached.Status.Shards = nil
}

func TestOnlyNewMemcachedIsFilled(t *testing.T) {
	withShard := func(state string, age time.Duration) func(*observation.Observation) {
		return func(obs *observation.Observation) {
			key := resources.Key{Kind: resources.KindReplicaSet, Name: "cache-0"}
			plantest.AddObject(obs, key, state)
			obs.Objects[key].SetCreationTimestamp(metav1.NewTime(obs.Memcached.CreationTimestamp.Add(-age)))
		}
	}
	for name, c := range map[string]struct {
		change func(*observation.Observation)
		starts bool
	}{
		"it is new":           {func(*observation.Observation) {}, true},
		"it is paused":        {func(obs *observation.Observation) { obs.Memcached.Spec.Paused = true }, false},
		"its spec is wrong":   {func(obs *observation.Observation) { obs.Memcached.Spec.Version = "1.5.0" }, false},
		"it has size 0":       {func(obs *observation.Observation) { *obs.Memcached.Spec.Size = 0 }, false},
		"it isn't filled":     {func(obs *observation.Observation) { obs.Memcached.Spec.Backup.Bootstrap = nil }, false},
		"it is being deleted": {func(obs *observation.Observation) { obs.Memcached.DeletionTimestamp = &metav1.Time{Time: obs.Now} }, false},
		"it had shards": {func(obs *observation.Observation) {
			obs.Memcached.Status.Shards = []v1beta1.ShardStatus{{Name: "cache-0"}}
		}, false},
		"a shard was created, but not its status": {withShard("ours", 0), true},
		"it has adopted a shard":                  {withShard("ours", time.Second), false},
		"it adopts a shard":                       {withShard("orphaned", time.Second), false},
		"another owner has a shard's name":        {withShard("foreign", time.Second), true},
		"a former Memcached's shards are there":   {withShard("predecessors", time.Second), true},
		"it was filled before": {func(obs *observation.Observation) {
			obs.Memcached.Status.Bootstrap = &v1beta1.BootstrapStatus{Phase: v1beta1.TransferComplete}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 2, fromNightly)
			withoutShards(obs)
			c.change(obs)
			p := plantest.Plan(obs)
			if starts := obs.Memcached.Status.Bootstrap == nil && p.Bootstrap.Status.IsRunning(); starts != c.starts || len(p.Actions.Create) > 0 {
				t.Errorf("the bootstrap is %+v, and these are created: %v", p.Bootstrap.Status, p.Actions.Create)
			}
		})
	}
}

func TestMemcachedThatRunsIsNotFilled(t *testing.T) {
	obs := plantest.Running(t, 2, fromNightly)
	if p := plantest.Plan(obs); p.Bootstrap.Status != nil || len(describe(p.Actions)) > 0 {
		t.Errorf("bootstrap %+v, %q", p.Bootstrap.Status, describe(p.Actions))
	}
	obs.Memcached.Status.Shards = nil // it was restored from a backup of etcd, or its ReplicaSets are adopted
	if p := plantest.Plan(obs); p.Bootstrap.Status != nil {
		t.Errorf("without a status, its bootstrap is %+v", p.Bootstrap.Status)
	}
}

// filling returns an observation of a Memcached that is being filled: each shard serves.
func filling(t *testing.T) *observation.Observation {
	obs := plantest.Running(t, 2, fromNightly)
	obs.Memcached.Status.Bootstrap = &v1beta1.BootstrapStatus{RestoreName: "cache-bootstrap", Phase: v1beta1.TransferRunning}
	return obs
}

func TestBootstrapFollowsItsRestore(t *testing.T) {
	restore := func(obs *observation.Observation, phase v1beta1.TransferPhase, owner observation.Ownership) *v1beta1.MemcachedRestore {
		r := &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Name: "cache-bootstrap"}}
		r.Status.Phase = phase
		obs.Restores["cache-bootstrap"] = observation.Object{APIObject: r, Owner: owner}
		return r
	}
	const cache1 = "waiting for all shards to become ready before filling them: cache-1"
	for name, c := range map[string]struct {
		change  func(*observation.Observation)
		phase   v1beta1.TransferPhase
		message string
		creates bool
	}{
		"all shards run":                           {func(*observation.Observation) {}, v1beta1.TransferRunning, "starting the restore", true},
		"all shards run, and it is paused":         {func(obs *observation.Observation) { obs.Memcached.Spec.Paused = true }, v1beta1.TransferRunning, "waiting until spec.paused is false", false},
		"all shards run, and its spec is rejected": {func(obs *observation.Observation) { obs.Memcached.Spec.Version = "1.5.0" }, v1beta1.TransferRunning, "starting the restore", true},
		"a shard has no pod":                       {func(obs *observation.Observation) { delete(obs.Pods, "cache-1") }, v1beta1.TransferRunning, cache1, false},
		"a shard isn't ready":                      {func(obs *observation.Observation) { shardtest.Starting(obs.Pods["cache-1"][0]) }, v1beta1.TransferRunning, cache1, false},
		"the restore waits": {func(obs *observation.Observation) {
			restore(obs, v1beta1.TransferPending, observation.Ours).Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Message: "waiting until MemcachedBackup nightly is Complete"}}
		}, v1beta1.TransferRunning, "waiting until MemcachedBackup nightly is Complete", false},
		"the restore hasn't copied": {func(obs *observation.Observation) { restore(obs, "", observation.Ours) }, v1beta1.TransferRunning, "restored no items yet", false},
		"the restore copies": {func(obs *observation.Observation) {
			restore(obs, v1beta1.TransferRunning, observation.Ours).Status.Progress = &v1beta1.TransferProgress{TotalItems: 2000, Percent: 43}
		},
			v1beta1.TransferRunning, "restored 43% of 2,000 items", false},
		"the restore is complete": {func(obs *observation.Observation) {
			s := &restore(obs, v1beta1.TransferComplete, observation.Ours).Status
			s.Restored, s.Expired, s.Rejected = 2000, 7, 3
		}, v1beta1.TransferComplete, "the shards got 2,000 restored items, without 7 that had expired, without 3 that memcached rejected", false},
		"the restore failed": {func(obs *observation.Observation) {
			restore(obs, v1beta1.TransferFailed, observation.Ours).Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Message: "no such bucket"}}
		},
			v1beta1.TransferFailed, "the shards got no restored items: MemcachedRestore cache-bootstrap failed: no such bucket", false},
		"a user has a restore of its name": {func(obs *observation.Observation) { restore(obs, v1beta1.TransferComplete, observation.Foreign) }, v1beta1.TransferFailed,
			"the shards started empty: MemcachedRestore cache-bootstrap exists and isn't managed by this Memcached; to fill the shards, create a MemcachedRestore with another name", false},
		"a restore of its name has no owner any more": {func(obs *observation.Observation) { restore(obs, v1beta1.TransferComplete, observation.Orphaned) }, v1beta1.TransferFailed,
			"the shards started empty: MemcachedRestore cache-bootstrap exists and isn't managed by this Memcached; to fill the shards, create a MemcachedRestore with another name", false},
		"a former Memcached's restore is there": {func(obs *observation.Observation) { restore(obs, v1beta1.TransferComplete, observation.Predecessors) }, v1beta1.TransferRunning,
			"waiting for garbage collection of MemcachedRestore cache-bootstrap of a deleted Memcached with the same name", false},
		"spec.backup.bootstrap was removed": {func(obs *observation.Observation) { obs.Memcached.Spec.Backup.Bootstrap = nil }, v1beta1.TransferFailed,
			"the shards started empty: spec.backup.bootstrap was removed, and MemcachedRestore cache-bootstrap doesn't exist", false},
		"spec.backup.bootstrap was removed during the restore": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Backup.Bootstrap = nil
			restore(obs, "", observation.Ours)
		}, v1beta1.TransferRunning, "restored no items yet", false},
	} {
		t.Run(name, func(t *testing.T) {
			obs := filling(t)
			c.change(obs)
			p := plantest.Plan(obs)
			if b := p.Bootstrap.Status; b.Phase != c.phase || b.Message != c.message {
				t.Errorf("%s: %s, want %s: %s", b.Phase, b.Message, c.phase, c.message)
			}
			if creates := len(p.Actions.Create) > 0; creates != c.creates {
				t.Errorf("creates the restore: %t", creates)
			}
		})
	}
}

func TestBootstrapRestoreHasTheDefaultRateLimit(t *testing.T) {
	obs := filling(t)
	b := obs.Memcached.Spec.Backup.Bootstrap
	b.MaxAgeSeconds, b.MaxTTLSeconds = ptr.To[int32](7), ptr.To[int32](8)
	restore := plantest.Plan(obs).Actions.Create[0].(*v1beta1.MemcachedRestore)
	want := v1beta1.MemcachedRestoreSpec{MemcachedRef: v1beta1.MemcachedReference{Name: "cache"}, BackupRef: &v1beta1.BackupReference{Name: "nightly"},
		MaxAgeSeconds: ptr.To[int32](7), MaxTTLSeconds: ptr.To[int32](8), DeadlineSeconds: ptr.To[int32](60)}
	if diff := cmp.Diff(want, restore.Spec); diff != "" || restore.Name != "cache-bootstrap" {
		t.Errorf("%s (-want +got):\n%s", restore.Name, diff)
	}
}

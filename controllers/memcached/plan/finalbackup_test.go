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
)

func TestForeignBackupIsNotTheFinalBackup(t *testing.T) {
	const foreignBackup = "deleting without a final backup: MemcachedBackup cache-final-ours exists and isn't managed by the operator"
	for name, c := range map[string]struct {
		of     string
		labels map[string]string
		want   string
	}{
		"the operator's":                     {"cache", resources.Labels("cache"), "MemcachedBackup cache-final-ours contains the last 7 items"},
		"of another Memcached":               {"sessions", resources.Labels("cache"), foreignBackup},
		"a user's":                           {"cache", nil, foreignBackup},
		"another program's":                  {"cache", map[string]string{v1beta1.LabelManagedBy: "Helm"}, foreignBackup},
		"a user's, and of another Memcached": {"sessions", nil, foreignBackup},
	} {
		t.Run(name, func(t *testing.T) {
			obs := deletedObservation()
			m := obs.Memcached
			m.Spec.Backup.Final = &v1beta1.FinalBackup{}
			obs.FinalBackup = &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: observation.FinalBackupName(m), Labels: c.labels}}
			obs.FinalBackup.Spec.MemcachedRef.Name = c.of
			obs.FinalBackup.Status.Phase, obs.FinalBackup.Status.Snapshot = v1beta1.TransferComplete, &v1beta1.SnapshotStatus{Items: 7}
			change := plantest.Plan(obs).Actions.Finalizer
			if !change.Remove || change.Event == nil || change.Event.Message != c.want {
				t.Errorf("%+v with event %+v, want %s", change, change.Event, c.want)
			}
		})
	}
}

// deletedObservation returns an observation of a deleted Memcached that wants a final backup.
func deletedObservation() *observation.Observation {
	obs := plantest.Observation(1, "being deleted", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"ready", "none"})
	obs.Memcached.Finalizers = []string{v1beta1.FinalizerFinalBackup}
	obs.Memcached.Spec.DeletionPolicy = v1beta1.DeletionBackup
	return obs
}

func TestDeletedMemcachedIsBackedUpFirst(t *testing.T) {
	backup := func(obs *observation.Observation, phase v1beta1.TransferPhase) *v1beta1.MemcachedBackup {
		obs.FinalBackup = &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: "cache-final-ours", Labels: resources.Labels("cache")}}
		obs.FinalBackup.Spec.MemcachedRef.Name, obs.FinalBackup.Status.Phase = "cache", phase
		return obs.FinalBackup
	}
	for name, c := range map[string]struct {
		change func(*observation.Observation)
		want   []string
	}{
		"it was just deleted":  {func(*observation.Observation) {}, []string{"create MemcachedBackup cache-final-ours", "again in 5m0s"}},
		"it is paused":         {func(obs *observation.Observation) { obs.Memcached.Spec.Paused = true }, []string{"create MemcachedBackup cache-final-ours", "again in 5m0s"}},
		"its spec is rejected": {func(obs *observation.Observation) { obs.Memcached.Spec.Version = "1.5.0" }, []string{"create MemcachedBackup cache-final-ours", "again in 5m0s"}},
		"its pods are deleted during the backup": {func(obs *observation.Observation) {
			clear(obs.Pods)
			backup(obs, v1beta1.TransferFailed).Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Message: "no shard answers"}}
		}, []string{"remove the finalizer: deleting without a final backup: MemcachedBackup cache-final-ours failed: no shard answers"}},
		"its backup starts": {func(obs *observation.Observation) { backup(obs, "") }, []string{"again in 5m0s"}},
		"its backup is complete": {func(obs *observation.Observation) {
			backup(obs, v1beta1.TransferComplete).Status.Snapshot = &v1beta1.SnapshotStatus{Items: 2000}
		},
			[]string{"remove the finalizer: MemcachedBackup cache-final-ours contains the last 2,000 items"}},
		"its backup is complete and empty": {func(obs *observation.Observation) { backup(obs, v1beta1.TransferComplete) },
			[]string{"remove the finalizer: MemcachedBackup cache-final-ours contains the last 0 items"}},
		"its backup failed": {func(obs *observation.Observation) {
			backup(obs, v1beta1.TransferFailed).Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Message: "the store is full"}}
		},
			[]string{"remove the finalizer: deleting without a final backup: MemcachedBackup cache-final-ours failed: the store is full"}},
		"its deadline comes": {func(obs *observation.Observation) {
			backup(obs, v1beta1.TransferRunning)
			obs.Now = obs.Now.Add(5 * time.Minute)
		},
			[]string{"remove the finalizer: deleting without a final backup: MemcachedBackup cache-final-ours did not finish within 5m0s"}},
		"its backup is complete at the deadline": {func(obs *observation.Observation) {
			backup(obs, v1beta1.TransferComplete)
			obs.Now = obs.Now.Add(5 * time.Minute)
		},
			[]string{"remove the finalizer: MemcachedBackup cache-final-ours contains the last 0 items"}},
		"it has no pods": {func(obs *observation.Observation) { obs.Pods["cache-0"], obs.Pods["cache-1"] = nil, nil }, []string{"remove the finalizer: no shard exists to back up"}},
		"it was not filled": {func(obs *observation.Observation) {
			obs.Memcached.Status.Bootstrap = &v1beta1.BootstrapStatus{Phase: v1beta1.TransferRunning}
		},
			[]string{"remove the finalizer: deleting without a final backup: its shards had not been filled yet"}},
		"it wants no backup any more": {func(obs *observation.Observation) { obs.Memcached.Spec.DeletionPolicy = v1beta1.DeletionDelete }, []string{"remove the finalizer"}},
		"its finalizer was removed":   {func(obs *observation.Observation) { obs.Memcached.Finalizers = []string{"example.com/theirs"} }, nil},
		"it exists":                   {func(obs *observation.Observation) { obs.Memcached.DeletionTimestamp = nil }, nil},
		"it exists without a finalizer": {func(obs *observation.Observation) {
			obs.Memcached.DeletionTimestamp, obs.Memcached.Finalizers = nil, nil
		}, []string{"add the finalizer"}},
		"it exists and wants no backup any more": {func(obs *observation.Observation) {
			obs.Memcached.DeletionTimestamp, obs.Memcached.Spec.DeletionPolicy = nil, v1beta1.DeletionDelete
		}, []string{"remove the finalizer"}},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 2, func(s *v1beta1.MemcachedSpec) {
				s.DeletionPolicy, s.Backup.Final = v1beta1.DeletionBackup, &v1beta1.FinalBackup{DeadlineSeconds: ptr.To[int32](300)}
			})
			obs.Memcached.Finalizers, obs.Memcached.DeletionTimestamp = []string{v1beta1.FinalizerFinalBackup}, &metav1.Time{Time: obs.Now}
			c.change(obs)
			if diff := cmp.Diff(c.want, describe(plantest.Plan(obs).Actions)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeletionReportsTheProgressOfItsBackup(t *testing.T) {
	obs := plantest.Running(t, 1, func(s *v1beta1.MemcachedSpec) {
		s.DeletionPolicy = v1beta1.DeletionBackup
		s.Backup.Final = &v1beta1.FinalBackup{RateLimit: &v1beta1.RateLimit{ItemsPerSecond: ptr.To[int32](7)}, DeadlineSeconds: ptr.To[int32](1800),
			Store: v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: "store"}}}
	})
	obs.Memcached.Finalizers, obs.Memcached.DeletionTimestamp = []string{v1beta1.FinalizerFinalBackup}, &metav1.Time{Time: obs.Now}
	created := plantest.Plan(obs)
	obs.FinalBackup = created.Actions.Finalizer.Backup
	if b := obs.FinalBackup; len(b.OwnerReferences) > 0 || b.Spec.DeletionPolicy != v1beta1.SnapshotRetain || *b.Spec.RateLimit.ItemsPerSecond != 7 || *b.Spec.DeadlineSeconds != 1800 || b.Spec.Store.PersistentVolumeClaim.ClaimName != "store" || b.Spec.MemcachedRef.Name != "cache" {
		t.Errorf("the backup is %+v", b)
	}
	messages := []string{created.FinalBackup.Message, plantest.Plan(obs).FinalBackup.Message}
	obs.FinalBackup.Status.Progress = &v1beta1.TransferProgress{TotalItems: 2000, Percent: 43}
	messages = append(messages, plantest.Plan(obs).FinalBackup.Message)
	if diff := cmp.Diff([]string{
		"starting MemcachedBackup cache-final-ours",
		"MemcachedBackup cache-final-ours has copied no items yet; the Memcached is deleted when it is done, or at 12:30 UTC",
		"MemcachedBackup cache-final-ours has copied 43% of 2,000 items; the Memcached is deleted when it is done, or at 12:30 UTC",
	}, messages); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

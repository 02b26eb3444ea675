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
	const foreignBackup = "MemcachedBackup cache-final-ours exists and isn't managed by the operator; the Memcached stays until a backup is complete; " +
		`to delete it without one: kubectl patch memcached cache -n default --type=merge -p '{"spec":{"deletionPolicy":"Delete"}}'`
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
			p := plantest.Plan(obs)
			got := ""
			switch change := p.Actions.Finalizer; {
			case change.Remove:
				got = change.Event.Message
			case p.FinalBackup.Problem != nil && len(p.Actions.Delete) == 0:
				got = p.FinalBackup.Problem.Message
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
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
	failed := func(obs *observation.Observation, why string, ago time.Duration) {
		s := &backup(obs, v1beta1.TransferFailed).Status
		s.Conditions, s.CompletionTime = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Message: why}}, &metav1.Time{Time: obs.Now.Add(-ago)}
	}
	rejected := func(obs *observation.Observation) {
		obs.Memcached.Status.Conditions = []metav1.Condition{{
			Type: v1beta1.ConditionProgressing, Reason: v1beta1.ReasonApplyRejected, Message: "the API server rejected MemcachedBackup cache-final-ours: denied"}}
	}
	for name, c := range map[string]struct {
		change func(*observation.Observation)
		want   []string
	}{
		"it was just deleted":  {func(*observation.Observation) {}, []string{"create MemcachedBackup cache-final-ours", "again in 3m45s"}},
		"it is paused":         {func(obs *observation.Observation) { obs.Memcached.Spec.Paused = true }, []string{"create MemcachedBackup cache-final-ours", "again in 3m45s"}},
		"its spec is rejected": {func(obs *observation.Observation) { obs.Memcached.Spec.Version = "1.5.0" }, []string{"create MemcachedBackup cache-final-ours", "again in 3m45s"}},
		"its pods are deleted during the backup": {func(obs *observation.Observation) {
			clear(obs.Pods)
			failed(obs, "no shard answers", 0)
		}, []string{"remove the finalizer: deleting without a final backup: MemcachedBackup cache-final-ours failed: no shard answers"}},
		"its backup starts": {func(obs *observation.Observation) { backup(obs, "") }, []string{"again in 3m45s"}},
		"its backup is complete": {func(obs *observation.Observation) {
			backup(obs, v1beta1.TransferComplete).Status.Snapshot = &v1beta1.SnapshotStatus{Items: 2000}
		},
			[]string{"remove the finalizer: MemcachedBackup cache-final-ours contains the last 2,000 items"}},
		"its backup is complete and empty": {func(obs *observation.Observation) { backup(obs, v1beta1.TransferComplete) },
			[]string{"remove the finalizer: MemcachedBackup cache-final-ours contains the last 0 items"}},
		"its backup failed":                  {func(obs *observation.Observation) { failed(obs, "the store is full", 59*time.Second) }, []string{"again in 1s"}},
		"its backup failed, and is repeated": {func(obs *observation.Observation) { failed(obs, "the store is full", time.Minute) }, []string{"delete MemcachedBackup cache-final-ours", "again in 3m45s"}},
		"its deadline comes": {func(obs *observation.Observation) {
			backup(obs, v1beta1.TransferRunning)
			obs.Now = obs.Now.Add(5 * time.Minute)
		}, nil},
		"its backup is repeated after its deadline": {func(obs *observation.Observation) {
			obs.Now = obs.Now.Add(time.Hour)
			failed(obs, "the store is full", time.Minute)
		}, []string{"delete MemcachedBackup cache-final-ours"}},
		"its backup is created again after its deadline": {func(obs *observation.Observation) { obs.Now = obs.Now.Add(time.Hour) }, []string{"create MemcachedBackup cache-final-ours"}},
		"its backup failed, and it needs none": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Backup.Final.OnFailure = v1beta1.FinalBackupDelete
			failed(obs, "the store is full", 0)
		}, []string{"again in 1m0s"}},
		"its deadline comes, and it needs none": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Backup.Final.OnFailure = v1beta1.FinalBackupDelete
			backup(obs, v1beta1.TransferRunning)
			obs.Now = obs.Now.Add(5 * time.Minute)
		},
			[]string{"remove the finalizer: deleting without a final backup: MemcachedBackup cache-final-ours was not complete within 5m0s"}},
		"its backup failed by its deadline, and it needs none": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Backup.Final.OnFailure = v1beta1.FinalBackupDelete
			obs.Now = obs.Now.Add(5 * time.Minute)
			failed(obs, "the store is full", 0)
		},
			[]string{"remove the finalizer: deleting without a final backup: MemcachedBackup cache-final-ours failed: the store is full"}},
		"its backup took too long, and it needs none": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Backup.Final.OnFailure = v1beta1.FinalBackupDelete
			obs.Now = obs.Now.Add(5 * time.Minute)
			failed(obs, "it did not finish", 0)
			obs.FinalBackup.Status.Conditions[0].Reason = v1beta1.ReasonDeadlineExceeded
		},
			[]string{"remove the finalizer: deleting without a final backup: MemcachedBackup cache-final-ours failed: it did not finish; " +
				"its deadline is spec.backup.final.deadlineSeconds of the Memcached"}},
		"its backup is complete at the deadline": {func(obs *observation.Observation) {
			backup(obs, v1beta1.TransferComplete)
			obs.Now = obs.Now.Add(5 * time.Minute)
		},
			[]string{"remove the finalizer: MemcachedBackup cache-final-ours contains the last 0 items"}},
		"the API server rejected its backup until its deadline, and it needs none": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Backup.Final.OnFailure = v1beta1.FinalBackupDelete
			rejected(obs)
			obs.Now = obs.Now.Add(5 * time.Minute)
		},
			[]string{"remove the finalizer: deleting without a final backup: the API server rejected MemcachedBackup cache-final-ours: denied"}},
		"the API server rejected its backup, and its pods are deleted": {func(obs *observation.Observation) {
			rejected(obs)
			clear(obs.Pods)
		},
			[]string{"remove the finalizer: deleting without a final backup: the API server rejected MemcachedBackup cache-final-ours: denied"}},
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
		"MemcachedBackup cache-final-ours has copied no items yet; the Memcached is deleted when it is done",
		"MemcachedBackup cache-final-ours has copied 43% of 2,000 items; the Memcached is deleted when it is done",
	}, messages); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Who deletes it may not watch it, but sees it before it is deleted without a backup, or isn't deleted at all.
func TestDeletionWithoutBackupIsDegradedBefore(t *testing.T) {
	const kept = "; the Memcached stays until a backup is complete; to delete it without one: " +
		`kubectl patch memcached cache -n default --type=merge -p '{"spec":{"deletionPolicy":"Delete"}}'`
	const gone = "; without a backup, the Memcached is deleted at 12:30 UTC; to keep it, set spec.backup.final.onFailure to Keep"
	const failed, copied = "MemcachedBackup cache-final-ours failed: the store is full", "MemcachedBackup cache-final-ours has copied no items yet; the Memcached is deleted when it is done"
	for name, c := range map[string]struct {
		onFailure       v1beta1.FinalBackupFailure
		phase           v1beta1.TransferPhase
		age             time.Duration
		was             string
		reason, message string
	}{
		"it copies":                      {v1beta1.FinalBackupKeep, v1beta1.TransferRunning, 22 * time.Minute, "", "", ""},
		"it copies for long":             {v1beta1.FinalBackupKeep, v1beta1.TransferRunning, 23 * time.Minute, "", v1beta1.ReasonFinalBackupLate, copied + kept},
		"it copies for long, and goes":   {v1beta1.FinalBackupDelete, v1beta1.TransferRunning, 23 * time.Minute, "", v1beta1.ReasonFinalBackupLate, copied + ", or at 12:30 UTC" + gone},
		"it failed":                      {v1beta1.FinalBackupKeep, v1beta1.TransferFailed, time.Minute, "", v1beta1.ReasonFinalBackupLate, failed + kept},
		"it failed, and goes":            {v1beta1.FinalBackupDelete, v1beta1.TransferFailed, time.Minute, "", v1beta1.ReasonFinalBackupLate, failed + gone},
		"it failed and is repeated":      {v1beta1.FinalBackupKeep, v1beta1.TransferRunning, 2 * time.Minute, v1beta1.ReasonFinalBackupLate, v1beta1.ReasonFinalBackupLate, copied + kept},
		"its deadline has come":          {v1beta1.FinalBackupKeep, v1beta1.TransferRunning, 30 * time.Minute, v1beta1.ReasonFinalBackupLate, v1beta1.ReasonFinalBackupFailed, copied + kept},
		"it failed after its deadline":   {v1beta1.FinalBackupKeep, v1beta1.TransferFailed, time.Hour, "", v1beta1.ReasonFinalBackupFailed, failed + kept},
		"a field that no API server set": {"", v1beta1.TransferFailed, time.Hour, "", v1beta1.ReasonFinalBackupFailed, failed + kept},
	} {
		obs := plantest.Running(t, 1, func(s *v1beta1.MemcachedSpec) {
			s.DeletionPolicy, s.Backup.Final = v1beta1.DeletionBackup, &v1beta1.FinalBackup{OnFailure: c.onFailure}
		})
		m := obs.Memcached
		m.Finalizers, m.DeletionTimestamp = []string{v1beta1.FinalizerFinalBackup}, &metav1.Time{Time: obs.Now}
		m.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionDegraded, Reason: c.was}}
		obs.Now = obs.Now.Add(c.age)
		obs.FinalBackup = &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: observation.FinalBackupName(m), Labels: resources.Labels("cache")}}
		obs.FinalBackup.Spec.MemcachedRef.Name, obs.FinalBackup.Status.Phase = "cache", c.phase
		if c.phase == v1beta1.TransferFailed {
			obs.FinalBackup.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Message: "the store is full"}}
		}
		reason, message := "", ""
		if problem := plantest.Plan(obs).FinalBackup.Problem; problem != nil {
			reason, message = problem.Reason, problem.Message
		}
		if reason != c.reason || message != c.message {
			t.Errorf("%s: %s: %s\nwant %s: %s", name, reason, message, c.reason, c.message)
		}
	}
}

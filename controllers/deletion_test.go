package controllers

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const toGo = "{memcachedRef: {name: cache}, deletionPolicy: Delete, store: {persistentVolumeClaim: {claimName: snapshots, subPath: cache}}}"

// toBeDeleted creates a backup whose snapshot is deleted with it, and waits until it has finished.
func (w *world) toBeDeleted() *v1alpha1.MemcachedBackup {
	w.Helper()
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toGo)
	w.converge()
	w.recorded()
	return w.backup("nightly")
}

// delete deletes a backup as a user would.
func (w *world) delete(b *v1alpha1.MemcachedBackup) {
	w.Helper()
	w.must(admin.Delete(w.ctx, b))
}

func (w *world) isDeleted(b *v1alpha1.MemcachedBackup) bool {
	w.Helper()
	return !w.exists(b.Name, &v1alpha1.MemcachedBackup{})
}

func TestSnapshotIsDeletedWithBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	if len(w.jobs.snapshots) != 1 {
		t.Fatalf("the store contains %v", w.jobs.snapshots)
	}
	w.delete(b)
	w.converge()
	if !w.isDeleted(b) || len(w.jobs.snapshots) != 0 || w.jobs.created["delete"] != 1 {
		t.Errorf("deleted: %t, the store contains %v, %d pods deleted", w.isDeleted(b), w.jobs.snapshots, w.jobs.created["delete"])
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotDeleted, "directory cache/"+b.Status.Snapshot.Path)
}

func TestRetainedSnapshotDoesNotBlockDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backedUp(1)
	w.delete(b)
	if !w.isDeleted(b) || len(w.jobs.snapshots) != 1 {
		t.Errorf("deleted: %t, the store contains %v", w.isDeleted(b), w.jobs.snapshots)
	}
}

func TestFinalizerIsAddedBeforeBackupStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toGo)
	w.killAfter(1)
	w.reconcile(w.backups, "nightly")
	b := w.backup("nightly")
	if !controllerutil.ContainsFinalizer(b, v1alpha1.FinalizerSnapshot) || b.Status.Phase != "" {
		t.Errorf("finalizers %v in phase %q", b.Finalizers, b.Status.Phase)
	}
	w.delete(b) // before it began
	w.converge()
	if !w.isDeleted(b) || w.jobs.created["delete"] != 0 || w.jobs.created["save"] != 0 {
		t.Errorf("deleted: %t, pods %v", w.isDeleted(b), w.jobs.created)
	}
}

func TestRunningBackupStopsBeforeSnapshotIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	b := w.toBeDeleted()
	w.delete(b)
	w.reconcile(w.backups, "nightly")
	if job := w.job(transfer.Backup, b); job == nil || job.DeletionTimestamp == nil {
		t.Fatal("its Job is not deleted")
	}
	for range 3 { // the pod takes its time
		w.reconcile(w.backups, "nightly")
	}
	if w.job(transfer.Delete, b) != nil {
		t.Error("the snapshot is deleted while the pod may still write")
	}
	w.converge()
	if !w.isDeleted(b) || w.jobs.created["delete"] != 1 {
		t.Errorf("deleted: %t, pods %v", w.isDeleted(b), w.jobs.created)
	}
}

func TestDeletionWaitsForActiveRestores(t *testing.T) {
	t.Parallel()
	for name, restores := range map[string]func(*v1alpha1.MemcachedBackup) string{
		"by the backup's name": func(*v1alpha1.MemcachedBackup) string { return fromBackup },
		"by its path": func(b *v1alpha1.MemcachedBackup) string {
			return "{memcachedRef: {name: cache}, snapshot: {path: " + b.Status.Snapshot.Path + ", store: {persistentVolumeClaim: {claimName: snapshots, subPath: cache}}}}"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.toBeDeleted()
			w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
			w.create("MemcachedRestore", "again", restores(b))
			w.converge()
			w.delete(b)
			w.converge()
			if w.isDeleted(b) || w.job(transfer.Delete, b) != nil || len(w.jobs.snapshots) != 1 {
				t.Fatal("the snapshot is deleted while it is read")
			}
			s := w.backup("nightly").Status
			w.wantEnd(s.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "waiting until MemcachedRestore again has read the snapshot")
			w.wantEvent(w.recorded(), v1alpha1.EventDeletionBlocked, "MemcachedRestore again")
			w.jobs.hang = nil
			w.converge()
			w.wantEnd(w.restore("again").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
			if !w.isDeleted(b) || len(w.jobs.snapshots) != 0 {
				t.Errorf("deleted: %t, the store contains %v", w.isDeleted(b), w.jobs.snapshots)
			}
		})
	}
}

func TestRestoreWithoutJobYieldsToDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.create("MemcachedRestore", "again", fromBackup)
	w.killAfter(1)
	w.reconcile(w.restores, "again") // Running, and no Job yet
	if r := w.restore("again"); r.Status.Phase != v1alpha1.TransferRunning || w.job(transfer.Restore, r) != nil {
		t.Fatalf("the restore is %+v", r.Status)
	}
	w.delete(b)
	w.converge()
	w.wantEnd(w.restore("again").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonBackupDeleting, "")
	if !w.isDeleted(b) || w.jobs.created["load"] != 0 {
		t.Errorf("deleted: %t, pods %v", w.isDeleted(b), w.jobs.created)
	}
}

func TestFailedDeletionRetainsSnapshotAndRecordsEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.jobs.ends = map[snapshotwire.Action][]end{snapshotwire.ActionDelete: {failed(snapshotwire.ExitFinal, v1alpha1.ReasonStoreAccessDenied, "no")}}
	w.delete(b)
	w.converge()
	if !w.isDeleted(b) || len(w.jobs.snapshots) != 1 || w.jobs.created["delete"] != 11 {
		t.Errorf("deleted: %t, pods %v", w.isDeleted(b), w.jobs.created)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotRetained, "PersistentVolumeClaim snapshots", v1alpha1.ReasonStoreAccessDenied)
}

func TestDeletionIsAbandonedAfterTenMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.jobs.stuck = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "minio" not found`}
	w.delete(b)
	w.converge()
	if w.isDeleted(b) {
		t.Fatal("it is deleted immediately")
	}
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, `secret "minio" not found`)
	w.clock.Step(9 * time.Minute)
	if w.converge(); w.isDeleted(b) {
		t.Fatal("it is deleted after nine minutes")
	}
	w.clock.Step(time.Minute)
	w.converge()
	if !w.isDeleted(b) {
		t.Error("it is not deleted")
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotRetained, "PersistentVolumeClaim snapshots")
}

func TestTerminatingNamespaceIsNotBlocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	namespace := &corev1.Namespace{}
	w.must(admin.Get(w.ctx, client.ObjectKey{Name: w.namespace}, namespace))
	w.must(admin.Delete(w.ctx, namespace))
	w.delete(b)
	w.converge()
	if !w.isDeleted(b) {
		t.Errorf("its finalizers are %v", w.backup("nightly").Finalizers)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotRetained, "is being terminated")
}

func TestIncompleteSnapshotIsDeletedWithBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.jobs.ends = map[snapshotwire.Action][]end{snapshotwire.ActionSave: {failed(snapshotwire.ExitFinal, v1alpha1.ReasonStoreFull, "full")}}
	b := w.toBeDeleted()
	w.delete(b)
	w.converge()
	if !w.isDeleted(b) || w.jobs.created["delete"] != 1 {
		t.Errorf("deleted: %t, pods %v", w.isDeleted(b), w.jobs.created)
	}
}

func TestImpossibleBackupHasNoFinalizer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("MemcachedBackup", "nightly", toGo)
	w.converge()
	b := w.backup("nightly")
	w.wantEnd(b.Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonMemcachedNotFound, "")
	if w.delete(b); !w.isDeleted(b) {
		t.Errorf("its finalizers are %v", b.Finalizers)
	}
}

func TestRejectedDeletionJobIsReportedAndAbandoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.must(admin.Delete(w.ctx, w.job(transfer.Backup, b), client.PropagationPolicy("Background")))
	w.forbid("count/jobs.batch")
	w.delete(b)
	w.reconcile(w.backups, "nightly")
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "exceeded quota")
	w.clock.Step(transfer.DeleteDeadlineSeconds * time.Second)
	w.converge()
	if !w.isDeleted(b) || len(w.jobs.snapshots) != 1 {
		t.Errorf("deleted: %t, the store contains %v", w.isDeleted(b), w.jobs.snapshots)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotRetained, "exceeded quota")
}

func (w *world) suspend(job *batchv1.Job) {
	w.Helper()
	w.must(admin.Patch(w.ctx, job, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))))
}

// A queue may delay a Job forever, and Kubernetes doesn't count that time.
func TestDeletionIsAbandonedIfItsJobIsSuspended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.delete(b)
	w.reconcile(w.backups, "nightly")
	w.suspend(w.job(transfer.Delete, b))
	w.clock.Step(transfer.DeleteDeadlineSeconds * time.Second)
	w.reconcile(w.backups, "nightly")
	if w.isDeleted(b) {
		t.Fatal("it is deleted before its Job could have finished")
	}
	w.clock.Step(2 * time.Minute)
	w.reconcile(w.backups, "nightly")
	if !w.isDeleted(b) {
		t.Errorf("it is not deleted: %+v", w.backup("nightly").Status)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotRetained, "is suspended")
}

func TestDeletionIsAbandonedIfJobDoesNotStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	b := w.toBeDeleted()
	w.delete(b)
	for range 3 { // its pod is on a node that does not respond
		w.clock.Step(deletionStep)
		w.reconcile(w.backups, "nightly")
	}
	if w.isDeleted(b) {
		t.Fatal("it is deleted while the pod may still write")
	}
	w.clock.Step(transfer.DeleteDeadlineSeconds * time.Second)
	w.reconcile(w.backups, "nightly")
	if !w.isDeleted(b) {
		t.Error("it is not deleted")
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotRetained, "has not stopped")
}

const deletionStep = 10 * time.Second

func TestSuspendedBackupFailsAtItsDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toGo)
	w.reconcile(w.backups, "nightly")
	w.suspend(w.job(transfer.Backup, w.backup("nightly")))
	w.reconcile(w.backups, "nightly")
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferRunning, v1alpha1.ReasonJobCannotStart, "spec.suspend")
	w.clock.Step(6 * time.Hour)
	w.reconcile(w.backups, "nightly")
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonJobCannotStart, "spec.suspend")
}

// Without its Secret, no container ran, so that there is nothing to delete.
func TestBackupThatNeverRanIsDeletedAtOnce(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]func(*world){
		"while it waits": func(*world) {},
		"after it failed": func(w *world) {
			w.clock.Step(transfer.StuckTimeout)
			w.converge()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.jobs.stuck = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "minio" not found`}
			b := w.toBeDeleted()
			given(w)
			w.delete(b)
			w.converge()
			if !w.isDeleted(b) || w.jobs.created["delete"] != 0 {
				t.Errorf("deleted: %t, pods %v", w.isDeleted(b), w.jobs.created)
			}
		})
	}
}

func TestDeletionJobHasPullSecretsOfDeletedMemcached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("cache", 1, func(m *v1alpha1.Memcached) {
		m.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	})
	w.create("MemcachedBackup", "nightly", toGo)
	w.converge()
	w.must(admin.Delete(w.ctx, m))
	b := w.backup("nightly")
	w.delete(b)
	w.reconcile(w.backups, "nightly")
	if got := w.job(transfer.Delete, b).Spec.Template.Spec.ImagePullSecrets; len(got) != 1 || got[0].Name != "registry" {
		t.Errorf("the pull secrets are %v", got)
	}
}

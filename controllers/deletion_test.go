package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

const toGo = "{memcached: {name: cache}, deletionPolicy: Delete, store: {persistentVolumeClaim: {claimName: snapshots, folder: cache}}}"

// toBeDeleted makes a backup whose snapshot goes with it, and settles it.
func (w *world) toBeDeleted() *v1alpha1.MemcachedBackup {
	w.Helper()
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toGo)
	w.settle()
	w.recorded()
	return w.backup("nightly")
}

// delete deletes a backup as a person would.
func (w *world) delete(b *v1alpha1.MemcachedBackup) {
	w.Helper()
	w.must(admin.Delete(w.ctx, b))
}

func (w *world) isGone(b *v1alpha1.MemcachedBackup) bool {
	w.Helper()
	return !w.exists(b.Name, &v1alpha1.MemcachedBackup{})
}

func TestTheSnapshotGoesWithItsBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	if len(w.jobs.snapshots) != 1 {
		t.Fatalf("the store holds %v", w.jobs.snapshots)
	}
	w.delete(b)
	w.settle()
	if !w.isGone(b) || len(w.jobs.snapshots) != 0 || w.jobs.made["delete"] != 1 {
		t.Errorf("gone: %t, the store holds %v, %d pods deleted", w.isGone(b), w.jobs.snapshots, w.jobs.made["delete"])
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotDeleted, "folder cache/"+b.Status.Snapshot.Path)
}

func TestARetainedSnapshotStaysAndNothingHoldsItsBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backedUp(1)
	w.delete(b)
	if !w.isGone(b) || len(w.jobs.snapshots) != 1 {
		t.Errorf("gone: %t, the store holds %v", w.isGone(b), w.jobs.snapshots)
	}
}

func TestTheFinalizerStandsBeforeTheBackupBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toGo)
	w.lives.Store(1)
	w.reconcile(w.backups, "nightly")
	b := w.backup("nightly")
	if !controllerutil.ContainsFinalizer(b, v1alpha1.FinalizerSnapshot) || b.Status.Phase != "" {
		t.Errorf("finalizers %v in phase %q", b.Finalizers, b.Status.Phase)
	}
	w.delete(b) // before it began
	w.settle()
	if !w.isGone(b) || w.jobs.made["delete"] != 0 || w.jobs.made["save"] != 0 {
		t.Errorf("gone: %t, pods %v", w.isGone(b), w.jobs.made)
	}
}

func TestABackupThatRunsEndsBeforeItsSnapshotIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.jobs.hang = map[snapshotapi.Action]bool{snapshotapi.ActionSave: true}
	b := w.toBeDeleted()
	w.delete(b)
	w.reconcile(w.backups, "nightly")
	if job := w.job(snapshotjob.Backup, b); job == nil || job.DeletionTimestamp == nil {
		t.Fatal("its Job does not end")
	}
	for range 3 { // the pod takes its time
		w.reconcile(w.backups, "nightly")
	}
	if w.job(snapshotjob.Delete, b) != nil {
		t.Error("the snapshot is deleted while the pod may still write")
	}
	w.settle()
	if !w.isGone(b) || w.jobs.made["delete"] != 1 {
		t.Errorf("gone: %t, pods %v", w.isGone(b), w.jobs.made)
	}
}

func TestADeletionWaitsForRestoresThatReadTheSnapshot(t *testing.T) {
	t.Parallel()
	for name, restores := range map[string]func(*v1alpha1.MemcachedBackup) string{
		"by the backup's name": func(*v1alpha1.MemcachedBackup) string { return fromBackup },
		"by its path": func(b *v1alpha1.MemcachedBackup) string {
			return "{memcached: {name: cache}, snapshot: {path: " + b.Status.Snapshot.Path + ", store: {persistentVolumeClaim: {claimName: snapshots, folder: cache}}}}"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.toBeDeleted()
			w.jobs.hang = map[snapshotapi.Action]bool{snapshotapi.ActionLoad: true}
			w.create("MemcachedRestore", "again", restores(b))
			w.settle()
			w.delete(b)
			w.settle()
			if w.isGone(b) || w.job(snapshotjob.Delete, b) != nil || len(w.jobs.snapshots) != 1 {
				t.Fatal("the snapshot is deleted while it is read")
			}
			s := w.backup("nightly").Status
			w.wantEnd(s.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "MemcachedRestore again reads it")
			w.wantEvent(w.recorded(), v1alpha1.EventDeletionWaits, "MemcachedRestore again")
			w.jobs.hang = nil
			w.settle()
			w.wantEnd(w.restore("again").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
			if !w.isGone(b) || len(w.jobs.snapshots) != 0 {
				t.Errorf("gone: %t, the store holds %v", w.isGone(b), w.jobs.snapshots)
			}
		})
	}
}

func TestARestoreThatHasNotBegunYieldsToADeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.create("MemcachedRestore", "again", fromBackup)
	w.reconcile(w.restores, "again") // Running, and no Job yet
	if r := w.restore("again"); r.Status.Phase != v1alpha1.RunRunning || w.job(snapshotjob.Restore, r) != nil {
		t.Fatalf("the restore is %+v", r.Status)
	}
	w.delete(b)
	w.settle()
	w.wantEnd(w.restore("again").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonBackupDeleting, "")
	if !w.isGone(b) || w.jobs.made["load"] != 0 {
		t.Errorf("gone: %t, pods %v", w.isGone(b), w.jobs.made)
	}
}

func TestASnapshotThatCannotBeDeletedStaysAndIsToldOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.jobs.ends = map[snapshotapi.Action][]end{snapshotapi.ActionDelete: {failed(snapshotapi.ExitFinal, v1alpha1.ReasonStoreAccessDenied, "no")}}
	w.delete(b)
	w.settle()
	if !w.isGone(b) || len(w.jobs.snapshots) != 1 || w.jobs.made["delete"] != 11 {
		t.Errorf("gone: %t, pods %v", w.isGone(b), w.jobs.made)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotKept, "PersistentVolumeClaim snapshots", v1alpha1.ReasonStoreAccessDenied)
}

func TestADeletionThatHangsIsGivenUpAfterTenMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.jobs.stuck = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "minio" not found`}
	w.delete(b)
	w.settle()
	if w.isGone(b) {
		t.Fatal("it is gone at once")
	}
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, `secret "minio" not found`)
	w.clock.Step(9 * time.Minute)
	if w.settle(); w.isGone(b) {
		t.Fatal("it is gone after nine minutes")
	}
	w.clock.Step(time.Minute)
	w.settle()
	if !w.isGone(b) {
		t.Error("it is not gone")
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotKept, "PersistentVolumeClaim snapshots")
}

func TestANamespaceThatEndsIsNotHeldUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	namespace := &corev1.Namespace{}
	w.must(admin.Get(w.ctx, client.ObjectKey{Name: w.namespace}, namespace))
	w.must(admin.Delete(w.ctx, namespace))
	w.delete(b)
	w.settle()
	if !w.isGone(b) {
		t.Errorf("it is held by %v", w.backup("nightly").Finalizers)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotKept, "is being terminated")
}

func TestAnUnfinishedSnapshotOfAFailedBackupIsDeletedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.jobs.ends = map[snapshotapi.Action][]end{snapshotapi.ActionSave: {failed(snapshotapi.ExitFinal, v1alpha1.ReasonStoreFull, "full")}}
	b := w.toBeDeleted()
	w.delete(b)
	w.settle()
	if !w.isGone(b) || w.jobs.made["delete"] != 1 {
		t.Errorf("gone: %t, pods %v", w.isGone(b), w.jobs.made)
	}
}

func TestABackupThatWasRefusedIsNotHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("MemcachedBackup", "nightly", toGo)
	w.settle()
	b := w.backup("nightly")
	w.wantEnd(b.Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonMemcachedNotFound, "")
	if w.delete(b); !w.isGone(b) {
		t.Errorf("it is held by %v", b.Finalizers)
	}
}

func TestADeletionWhoseJobMayNotBeMadeIsToldOfAndGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.toBeDeleted()
	w.must(admin.Delete(w.ctx, w.job(snapshotjob.Backup, b), client.PropagationPolicy("Background")))
	w.forbid("count/jobs.batch")
	w.delete(b)
	w.reconcile(w.backups, "nightly")
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "exceeded quota")
	w.clock.Step(snapshotjob.EraseDeadline)
	w.settle()
	if !w.isGone(b) || len(w.jobs.snapshots) != 1 {
		t.Errorf("gone: %t, the store holds %v", w.isGone(b), w.jobs.snapshots)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventSnapshotKept, "exceeded quota")
}

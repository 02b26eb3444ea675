package controllers

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// backedUp creates a Memcached of that size and a Complete backup of it, whose snapshot is deleted with it.
func (w *world) backedUp(size int) *v1beta1.MemcachedBackup {
	w.Helper()
	w.memcached("cache", size)
	w.create("MemcachedBackup", "nightly", toGo)
	w.converge()
	w.recorded()
	return w.backup("nightly")
}

// delete deletes a backup as a user would.
func (w *world) delete(b *v1beta1.MemcachedBackup) {
	w.Helper()
	w.must(w.admin.Delete(w.ctx, b))
}

func (w *world) isDeleted(b *v1beta1.MemcachedBackup) bool {
	return simtest.Get[*v1beta1.MemcachedBackup](w.admin, b.Name) == nil
}

func TestRestoreRunsOnceAndReportsItems(t *testing.T) {
	w := newWorld(t)
	b := w.backedUp(2)
	w.create("MemcachedRestore", "again", fromBackup)
	w.converge()
	r := w.restore("again")
	w.wantEnd(r.Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	if s := r.Status; s.Restored != 90 || s.Kept != 5 || s.Expired != 4 || s.Rejected != 1 || s.Progress.Percent != 100 {
		t.Errorf("the status is %+v", s)
	}
	if r.Status.Snapshot == nil || r.Status.Snapshot.Path != b.Status.Snapshot.Path {
		t.Errorf("the snapshot is %+v", r.Status.Snapshot)
	}
	events := w.recorded()
	w.wantEvent(events, v1beta1.EventRestoreStarted)
	w.wantEvent(events, v1beta1.EventRestoreComplete, "restored 90 items")
	if w.jobs.Created["load"] != 1 || len(events) != 4 {
		t.Errorf("%d pods were created, and these events recorded: %q", w.jobs.Created["load"], events)
	}
}

// An update that is announced goes first: it waits for restores that are Running, and this
// one isn't any more.
func TestRunningRestoreWithoutJobWithdrawsForReplacement(t *testing.T) {
	w := newWorld(t)
	m := w.memcached("fresh", 2)
	w.create("MemcachedRestore", "fill", fromClaim)
	w.killAfter(1)
	w.reconcile(w.restores, "fill") // Running, and no Job yet
	if r := w.restore("fill"); !r.IsActive(w.clock.Now()) {
		t.Fatalf("the restore is %+v", r.Status)
	}
	m.Status.Update = &v1beta1.UpdateStatus{Revision: "r", Shard: "fresh-1", Method: v1beta1.UpdateReplace, Gate: v1beta1.GateRestoreRunning, LastTransitionTime: metav1.NewTime(w.clock.Now())}
	w.must(w.admin.Status().Update(w.ctx, m))
	w.converge()
	r := w.restore("fill")
	w.wantEnd(r.Status.TransferStatus, v1beta1.TransferPending, v1beta1.ReasonShardReplaced, "")
	if r.IsActive(w.clock.Now()) || r.Status.JobName != "" || r.Status.StartTime != nil || w.job(transfer.Restore, r) != nil {
		t.Errorf("the restore is %+v", r.Status)
	}
	m.Status.Update = nil
	w.must(w.admin.Status().Update(w.ctx, m))
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	if w.jobs.Created["load"] != 1 {
		t.Errorf("pods %v", w.jobs.Created)
	}
}

func TestRestoresIntoCommonShardsRunOneAfterTheOther(t *testing.T) {
	w := newWorld(t)
	w.memcached("fresh", 3)
	w.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
	for name, shards := range map[string]string{"first": "0, 1", "disjoint": "2"} {
		w.create("MemcachedRestore", name, strings.Replace(fromClaim, "{", "{shards: ["+shards+"], ", 1))
	}
	w.converge()
	w.create("MemcachedRestore", "second", strings.Replace(fromClaim, "{", "{shards: [1], ", 1))
	w.create("MemcachedRestore", "third", fromClaim)
	w.converge()
	for name, reason := range map[string]string{"first": v1beta1.ReasonCopying, "disjoint": v1beta1.ReasonCopying,
		"second": v1beta1.ReasonRestoreRunning, "third": v1beta1.ReasonRestoreRunning} {
		if s := w.restore(name).Status; s.Reason() != reason {
			t.Errorf("%s is %s (%s): %s", name, s.Phase, s.Reason(), s.Message())
		}
	}
	w.jobs.Hang = nil
	w.converge()
	for _, name := range []string{"first", "disjoint", "second", "third"} {
		w.wantEnd(w.restore(name).Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	}
}

// Two restores that say Running at once, as by caches that lag, both withdraw, and the older runs first.
func TestRestoresThatStartTogetherRunOneAfterAnother(t *testing.T) {
	w := newWorld(t)
	w.memcached("fresh", 1)
	names := []string{"a", "b"}
	for _, name := range names {
		w.create("MemcachedRestore", name, fromClaim)
		r := w.restore(name)
		now := metav1.NewTime(w.clock.Now())
		r.Status.Phase, r.Status.StartTime, r.Status.JobName = v1beta1.TransferRunning, &now, transfer.JobName(transfer.Restore, r.UID)
		r.Status.Conditions = []metav1.Condition{}
		w.must(w.admin.Status().Update(w.ctx, r))
	}
	w.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
	w.converge()
	running := 0
	for _, name := range names {
		if w.job(transfer.Restore, w.restore(name)) != nil {
			running++
		}
	}
	if running != 1 {
		t.Errorf("%d of two run at once", running)
	}
	w.jobs.Hang = nil
	w.converge()
	for _, name := range names {
		w.wantEnd(w.restore(name).Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	}
}

// kubectl apply -f of a directory and GitOps tools create objects in any order.
func TestObjectsMayBeCreatedInAnyOrder(t *testing.T) {
	w := newWorld(t)
	w.create("MemcachedRestore", "again", fromBackup)
	w.converge()
	if s := w.restore("again").Status; s.Phase != v1beta1.TransferPending || s.Reason() != v1beta1.ReasonMemcachedNotFound {
		t.Errorf("without a Memcached, it is %s (%s)", s.Phase, s.Reason())
	}
	w.create("MemcachedBackup", "nightly", toGo)
	w.converge()
	w.memcached("cache", 1)
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	w.wantEnd(w.restore("again").Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
}

func TestDeletionWaitsForActiveRestores(t *testing.T) {
	for name, restores := range map[string]func(*v1beta1.MemcachedBackup) string{
		"by the backup's name": func(*v1beta1.MemcachedBackup) string { return fromBackup },
		"by its path": func(b *v1beta1.MemcachedBackup) string {
			return "{memcachedRef: {name: cache}, snapshot: {path: " + b.Status.Snapshot.Path + ", store: {persistentVolumeClaim: {claimName: snapshots, subPath: cache}}}}"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			b := w.backedUp(1)
			w.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
			w.create("MemcachedRestore", "again", restores(b))
			w.converge()
			w.delete(b)
			w.converge()
			if w.isDeleted(b) || w.job(transfer.Delete, b) != nil || len(w.jobs.Snapshots) != 1 {
				t.Fatal("the snapshot is deleted while it is read")
			}
			ready := meta.FindStatusCondition(w.backup("nightly").Status.Conditions, v1beta1.ConditionReady)
			if ready.Status != metav1.ConditionFalse || ready.Reason != v1beta1.ReasonDeleting || ready.Message != "waiting until MemcachedRestore again has read the snapshot" {
				t.Errorf("the condition is %+v", ready)
			}
			w.wantEvent(w.recorded(), v1beta1.EventDeletionBlocked, "MemcachedRestore again")
			w.jobs.Hang = nil
			w.converge()
			w.wantEnd(w.restore("again").Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
			if !w.isDeleted(b) || len(w.jobs.Snapshots) != 0 {
				t.Errorf("deleted: %t, the store contains %v", w.isDeleted(b), w.jobs.Snapshots)
			}
		})
	}
}

func TestRestoreWithoutJobYieldsToDeletion(t *testing.T) {
	w := newWorld(t)
	b := w.backedUp(1)
	w.create("MemcachedRestore", "again", fromBackup)
	w.killAfter(1)
	w.reconcile(w.restores, "again") // Running, and no Job yet
	if r := w.restore("again"); r.Status.Phase != v1beta1.TransferRunning || w.job(transfer.Restore, r) != nil {
		t.Fatalf("the restore is %+v", r.Status)
	}
	w.delete(b)
	w.converge()
	w.wantEnd(w.restore("again").Status.TransferStatus, v1beta1.TransferFailed, v1beta1.ReasonBackupDeleting, "")
	if !w.isDeleted(b) || w.jobs.Created["load"] != 0 {
		t.Errorf("deleted: %t, pods %v", w.isDeleted(b), w.jobs.Created)
	}
}

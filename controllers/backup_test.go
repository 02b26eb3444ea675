package controllers

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestBackupRunsOnceAndReportsSnapshot(t *testing.T) {
	w := newWorld(t)
	w.memcached("cache", 2)
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	b := w.backup("nightly")
	w.wantEnd(b.Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	path := transfer.SnapshotPath(b)
	want := &v1beta1.SnapshotStatus{Path: path, SnapshotTime: b.Status.Snapshot.SnapshotTime, Shards: 2, Items: 100, Bytes: 5000, StoredBytes: 3000, FormatVersion: 1}
	if diff := cmp.Diff(want, b.Status.Snapshot); diff != "" {
		t.Errorf("the snapshot (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&v1beta1.TransferProgress{Items: 100, TotalItems: 100, Bytes: 5000, Percent: 100, ItemsPerSecond: 50}, b.Status.Progress); diff != "" {
		t.Errorf("the progress (-want +got):\n%s", diff)
	}
	job := w.job(transfer.Backup, b)
	if job == nil || job.Spec.TTLSecondsAfterFinished == nil || string(job.UID) != b.Status.JobUID || job.Name != b.Status.JobName {
		t.Errorf("the status reports Job %s with the UID %s, and the Job is %+v", b.Status.JobName, b.Status.JobUID, job)
	}
	events := w.recorded()
	w.wantEvent(events, v1beta1.EventBackupStarted)
	w.wantEvent(events, v1beta1.EventBackupComplete, "100 items of 2 shards", path)
	w.wantEvent(events, v1beta1.EventBackupComplete, "backup nightly")
	if w.jobs.Created["save"] != 1 || len(events) != 4 {
		t.Errorf("%d pods were created, and these events recorded: %q", w.jobs.Created["save"], events)
	}
}

// A mesh may inject a container that runs forever: a Job is never finished by itself then.
func TestTransfersFinishBesideContainersThatDoNot(t *testing.T) {
	w := newWorld(t)
	w.jobs.Sidecar = true
	failure := simtest.End{Exit: 1, Outcome: &snapshotwire.Outcome{Reason: v1beta1.ReasonShardUnreachable, Message: "shard 1 does not answer"}}
	w.jobs.Ends = map[snapshotwire.Action][]simtest.End{
		snapshotwire.ActionSave:   {failure, {Outcome: &snapshotwire.Outcome{Reason: snapshotwire.ReasonSucceeded, Snapshot: &snapshotwire.Snapshot{Shards: 1}}}},
		snapshotwire.ActionDelete: {failure, {Outcome: &snapshotwire.Outcome{Reason: snapshotwire.ReasonSucceeded}}},
	}
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toGo)
	w.converge()
	b := w.backup("nightly")
	w.wantEnd(b.Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	if w.jobs.Created["save"] != 2 {
		t.Errorf("%d pods were created, want one for each try", w.jobs.Created["save"])
	}
	if job := w.job(transfer.Backup, b); job != nil {
		t.Error("the Job still runs")
	}
	w.create("MemcachedRestore", "again", fromBackup)
	w.converge()
	r := w.restore("again")
	w.wantEnd(r.Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	w.delete(b)
	w.converge()
	if !w.isDeleted(b) || w.jobs.Created["delete"] != 2 || len(w.jobs.Snapshots) > 0 {
		t.Errorf("deleted: %t, with %d pods; snapshots %v", w.isDeleted(b), w.jobs.Created["delete"], w.jobs.Snapshots)
	}
	w.jobs.Ends[snapshotwire.ActionSave] = []simtest.End{{Exit: snapshotwire.ExitFinal, Outcome: failure.Outcome}}
	w.create("MemcachedBackup", "weekly", toClaim)
	w.converge()
	b = w.backup("weekly")
	w.wantEnd(b.Status.TransferStatus, v1beta1.TransferFailed, v1beta1.ReasonShardUnreachable, "shard 1 does not answer")
	if job := w.job(transfer.Backup, b); job != nil || w.jobs.Created["save"] != 3 {
		t.Errorf("%d pods were created; the Job still runs: %t", w.jobs.Created["save"], job != nil)
	}
}

// recreate deletes a transfer and creates it again, without its status, as Velero and GitOps tools do from an export.
func (w *world) recreate(o client.Object, edits ...func(client.Object)) {
	w.Helper()
	again := o.DeepCopyObject().(client.Object)
	again.SetUID("")
	again.SetResourceVersion("")
	switch again := again.(type) {
	case *v1beta1.MemcachedBackup:
		again.Status = v1beta1.MemcachedBackupStatus{}
	case *v1beta1.MemcachedRestore:
		again.Status = v1beta1.MemcachedRestoreStatus{}
	}
	for _, edit := range edits {
		edit(again)
	}
	o.SetFinalizers(nil)
	w.must(w.admin.Update(w.ctx, o))
	w.must(w.admin.Delete(w.ctx, o))
	w.must(w.admin.Create(w.ctx, again))
	w.converge()
}

func TestTransferThatIsRecreatedDoesNotRunTwice(t *testing.T) {
	w := newWorld(t)
	b := w.backedUp(1)
	w.create("MemcachedRestore", "again", fromBackup)
	w.converge()
	r := w.restore("again")
	w.recorded()
	w.recreate(r)
	w.recreate(b)
	b2, r2 := w.backup("nightly"), w.restore("again")
	if b2.UID == b.UID || r2.UID == r.UID {
		t.Fatal("they weren't recreated")
	}
	b.Status.JobName, b.Status.JobUID, r.Status.JobName, r.Status.JobUID = "", "", "", ""
	ignoreTime := cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")
	if diff := cmp.Diff(b.Status, b2.Status, ignoreTime); diff != "" {
		t.Errorf("the status of the backup (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(r.Status, r2.Status, ignoreTime); diff != "" {
		t.Errorf("the status of the restore (-want +got):\n%s", diff)
	}
	if events := w.recorded(); len(events) != 0 {
		t.Errorf("the events are %q", events)
	}
	if diff := cmp.Diff(map[string]int{"save": 1, "load": 1}, w.jobs.Created); diff != "" {
		t.Errorf("the pods (-want +got):\n%s", diff)
	}
	w.create("MemcachedRestore", "third", fromBackup)
	w.converge()
	w.wantEnd(w.restore("third").Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	w.recorded()
	w.delete(b2) // another cluster may have the object that wrote the snapshot
	w.converge()
	w.wantEvent(w.recorded(), v1beta1.EventSnapshotRetained, b.Status.Snapshot.Path, "another object wrote it")
	if !w.isDeleted(b2) || len(w.jobs.Snapshots) != 1 {
		t.Errorf("deleted: %t, the store contains %v", w.isDeleted(b2), w.jobs.Snapshots)
	}
}

// A copy under another name is another backup, which its record must not keep from running.
func TestCopyOfTransferRuns(t *testing.T) {
	w := newWorld(t)
	w.recreate(w.backedUp(1), func(o client.Object) { o.SetName("second") })
	b := w.backup("second")
	w.wantEnd(b.Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	if b.Status.Snapshot.Path != transfer.SnapshotPath(b) || w.jobs.Created["save"] != 2 {
		t.Errorf("its snapshot is at %s, and %d pods saved", b.Status.Snapshot.Path, w.jobs.Created["save"])
	}
}

// A spec can't change, so users recreate a backup from an export that they have edited.
func TestTransferThatIsRecreatedWithAnotherSpecRuns(t *testing.T) {
	w := newWorld(t)
	w.memcached("other", 1)
	w.recreate(w.backedUp(1), func(o client.Object) { o.(*v1beta1.MemcachedBackup).Spec.MemcachedRef.Name = "other" })
	b := w.backup("nightly")
	w.wantEnd(b.Status.TransferStatus, v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "")
	if b.Status.Snapshot.Path != transfer.SnapshotPath(b) || w.jobs.Created["save"] != 2 {
		t.Errorf("its snapshot is at %s, and %d pods saved", b.Status.Snapshot.Path, w.jobs.Created["save"])
	}
}

func TestDecisionsAreLoggedOnce(t *testing.T) {
	w := newWorld(t)
	var lines []string
	w.ctx = log.IntoContext(w.ctx, funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}))
	w.memcached("cache", 2)
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	for _, words := range []string{`"phase":"Running","reason":"Starting"`, `Created Job`, `"reason":"Copying"`, `"phase":"Complete","reason":"Succeeded"`} {
		if n := len(slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.Contains(line, words) })); n != 1 {
			t.Errorf("%d lines with %s in:\n%s", n, words, strings.Join(lines, "\n"))
		}
	}
	before := len(lines)
	if w.reconcileAll(); len(lines) != before {
		t.Errorf("an idle reconcile logs %s", lines[before:])
	}
}

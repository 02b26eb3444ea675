package controllers

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
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

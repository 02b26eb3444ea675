package controllers

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// soon returns the time of a run in one to two minutes, and the schedule of it.
func (w *world) soon(more string) (run time.Time, spec string) {
	run = w.clock.Now().Truncate(time.Minute).Add(2 * time.Minute)
	return run, fmt.Sprintf(`{schedule: "%d %d * * *", %s backupTemplate: {spec: %s}}`, run.Minute(), run.Hour(), more, toClaim)
}

func (w *world) schedule(name string) *v1alpha1.MemcachedScheduledBackup {
	w.Helper()
	return w.named(name, &v1alpha1.MemcachedScheduledBackup{}).(*v1alpha1.MemcachedScheduledBackup)
}

func runName(schedule string, run time.Time) string {
	return schedule + "-" + strconv.FormatInt(run.Unix()/60, 10)
}

func TestScheduleCreatesBackupOnTime(t *testing.T) {
	w := newWorld(t)
	w.memcached("cache", 1)
	run, spec := w.soon("retention: {successfulBackupsHistoryLimit: 2},")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	if result := w.reconcile(w.schedules, "nightly"); result.RequeueAfter != run.Sub(w.clock.Now()) {
		t.Errorf("it is requeued after %s, and the run is due in %s", result.RequeueAfter, run.Sub(w.clock.Now()))
	}
	if s := w.schedule("nightly"); !s.Status.NextScheduleTime.Time.Equal(run) || s.Status.LastScheduleTime != nil {
		t.Errorf("the status is %+v", s.Status)
	}
	w.clock.SetTime(run)
	w.converge()
	b := w.backup(runName("nightly", run))
	w.wantEnd(b.Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	if b.Spec.DeletionPolicy != v1alpha1.SnapshotDelete || b.Labels[v1alpha1.LabelSchedule] != "nightly" || len(b.OwnerReferences) != 0 {
		t.Errorf("the backup is %+v", b)
	}
	s := w.schedule("nightly").Status
	if !s.LastScheduleTime.Time.Equal(run) || s.LastBackupName != b.Name || !s.LastSuccessfulTime.Equal(b.Status.CompletionTime) || len(s.Active) != 0 {
		t.Errorf("the status is %+v", s)
	}
	w.must(w.admin.Delete(w.ctx, w.schedule("nightly")))
	w.converge()
	if w.backup(b.Name).DeletionTimestamp != nil || len(w.jobs.Snapshots) != 1 {
		t.Error("the backups of a deleted schedule were deleted with it")
	}
}

func TestScheduleDeletesExpiredBackups(t *testing.T) {
	w := newWorld(t)
	w.memcached("cache", 1)
	run, spec := w.soon("retention: {successfulBackupsHistoryLimit: 1},")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	for day := range 2 {
		name := runName("nightly", run.Add(time.Duration(day-3)*24*time.Hour))
		w.create("MemcachedBackup", name, toGo, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{v1alpha1.LabelSchedule: "nightly"}) })
	}
	w.converge()
	w.clock.SetTime(run)
	w.converge()
	if names := w.admin.Names(simtest.KindBackup); !slices.Equal(names, []string{runName("nightly", run)}) || len(w.jobs.Snapshots) != 1 {
		t.Errorf("there are the backups %v and the snapshots %v", names, w.jobs.Snapshots)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventBackupPruned)
}

func TestRunReplacesRunningBackup(t *testing.T) {
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	run, spec := w.soon("concurrencyPolicy: Replace,")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	w.clock.SetTime(run)
	w.converge()
	first := w.backup(runName("nightly", run))
	w.must(w.admin.Patch(w.ctx, w.schedule("nightly"), client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"schedule":"%d %d * * *"}}`, run.Add(time.Minute).Minute(), run.Add(time.Minute).Hour()))))
	w.clock.SetTime(run.Add(time.Minute))
	w.converge()
	if !w.isDeleted(first) {
		t.Error("the first one still exists")
	}
	if second := w.backup(runName("nightly", run.Add(time.Minute))); second.Status.Phase != v1alpha1.TransferRunning {
		t.Errorf("the second one is %+v", second.Status)
	}
}

package controllers

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// soon returns a turn in one to two minutes, and a schedule that has it.
func (w *world) soon(more string) (turn time.Time, spec string) {
	turn = w.clock.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)
	return turn, fmt.Sprintf(`{schedule: "%d %d * * *", %s backupTemplate: {spec: %s}}`, turn.Minute(), turn.Hour(), more, toClaim)
}

func (w *world) schedule(name string) *v1alpha1.MemcachedScheduledBackup {
	w.Helper()
	s := &v1alpha1.MemcachedScheduledBackup{}
	w.read(name, s)
	return s
}

func turnName(schedule string, turn time.Time) string {
	return schedule + "-" + strconv.FormatInt(turn.Unix()/60, 10)
}

func TestAScheduleMakesABackupAtItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	turn, spec := w.soon("retention: {count: 2},")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	if result := w.reconcile(w.schedules, "nightly"); result.RequeueAfter != turn.Sub(w.clock.Now()) {
		t.Errorf("it is looked at again in %s, and the turn is in %s", result.RequeueAfter, turn.Sub(w.clock.Now()))
	}
	if s := w.schedule("nightly"); !s.Status.NextScheduleTime.Time.Equal(turn) || s.Status.LastScheduleTime != nil {
		t.Errorf("the status is %+v", s.Status)
	}
	w.clock.SetTime(turn)
	w.settle()
	b := w.backup(turnName("nightly", turn))
	w.wantEnd(b.Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	if b.Spec.DeletionPolicy != v1alpha1.SnapshotDelete || b.Labels[v1alpha1.LabelSchedule] != "nightly" || len(b.OwnerReferences) != 0 {
		t.Errorf("the backup is %+v", b)
	}
	s := w.schedule("nightly").Status
	if !s.LastScheduleTime.Time.Equal(turn) || s.LastBackup != b.Name || !s.LastSuccessfulTime.Equal(b.Status.CompletionTime) || len(s.Active) != 0 {
		t.Errorf("the status is %+v", s)
	}
	w.must(admin.Delete(w.ctx, w.schedule("nightly")))
	w.settle()
	if w.backup(b.Name).DeletionTimestamp != nil || len(w.jobs.snapshots) != 1 {
		t.Error("the backups of a deleted schedule went with it")
	}
}

func TestAScheduleDeletesWhatItDoesNotKeep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	turn, spec := w.soon("retention: {count: 1},")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	for day := range 2 {
		// by the API server's clock they are as old as they are
		name := turnName("nightly", turn.Add(time.Duration(day-3)*24*time.Hour))
		w.create("MemcachedBackup", name, "{memcached: {name: cache}, deletionPolicy: Delete, store: {persistentVolumeClaim: {claimName: snapshots}}}")
		w.must(admin.Patch(w.ctx, w.backup(name), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelSchedule+`":"nightly"}}}`))))
	}
	w.settle()
	w.clock.SetTime(turn)
	w.settle()
	var backups v1alpha1.MemcachedBackupList
	w.must(admin.List(w.ctx, &backups, client.InNamespace(w.namespace)))
	if len(backups.Items) != 1 || backups.Items[0].Name != turnName("nightly", turn) || len(w.jobs.snapshots) != 1 {
		t.Errorf("there are %d backups and the snapshots %v", len(backups.Items), w.jobs.snapshots)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventBackupPruned)
}

func TestATurnReplacesABackupThatStillRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotapi.Action]bool{snapshotapi.ActionSave: true}
	turn, spec := w.soon("concurrencyPolicy: Replace,")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	w.clock.SetTime(turn)
	w.settle()
	first := w.backup(turnName("nightly", turn))
	w.must(admin.Patch(w.ctx, w.schedule("nightly"), client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"schedule":"%d %d * * *"}}`, turn.Add(time.Minute).Minute(), turn.Add(time.Minute).Hour()))))
	w.clock.SetTime(turn.Add(time.Minute))
	w.settle()
	if w.exists(first.Name, &v1alpha1.MemcachedBackup{}) {
		t.Error("the first one is still there")
	}
	if second := w.backup(turnName("nightly", turn.Add(time.Minute))); second.Status.Phase != v1alpha1.RunRunning {
		t.Errorf("the second one is %+v", second.Status)
	}
}

func TestAScheduleThatCannotBeReadSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("MemcachedScheduledBackup", "nightly", `{schedule: "at night", backupTemplate: {spec: `+toClaim+`}}`)
	w.settle()
	c := meta.FindStatusCondition(w.schedule("nightly").Status.Conditions, v1alpha1.ConditionScheduled)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonScheduleInvalid {
		t.Errorf("the condition is %+v", c)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventScheduleInvalid, "five fields")
}

func TestAStaleScheduleDoesNotTakeATurnAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	turn, spec := w.soon("")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	w.settle()
	before := w.schedule("nightly")
	w.clock.SetTime(turn)
	w.settle()
	b := w.backup(turnName("nightly", turn))
	w.delete(b) // a person did
	w.lag(stale{schedules: map[string]*v1alpha1.MemcachedScheduledBackup{"nightly": before}})
	w.reconcile(w.schedules, "nightly")
	if !w.isGone(b) {
		t.Error("the turn is taken again")
	}
	w.catchUp()
	if w.settle(); !w.isGone(b) {
		t.Error("the turn is taken again")
	}
}

func TestABackupThatMayNotBeMadeAtItsTurnIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	allow := w.forbid("count/memcachedbackups.cache.memcached-operator.io")
	turn, spec := w.soon("")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	w.settle()
	w.clock.SetTime(turn)
	if result := w.reconcile(w.schedules, "nightly"); result.RequeueAfter != 30*time.Second {
		t.Errorf("it is tried again in %s", result.RequeueAfter)
	}
	c := meta.FindStatusCondition(w.schedule("nightly").Status.Conditions, v1alpha1.ConditionScheduled)
	if c == nil || c.Reason != v1alpha1.ReasonRetrying || !strings.Contains(c.Message, "exceeded quota") {
		t.Errorf("the condition is %+v", c)
	}
	allow()
	w.clock.Step(time.Minute)
	eventually := 0
	for !w.exists(turnName("nightly", turn), &v1alpha1.MemcachedBackup{}) && eventually < 100 { // the quota's cache lags
		w.reconcile(w.schedules, "nightly")
		eventually++
	}
	w.settle()
	w.wantEnd(w.backup(turnName("nightly", turn)).Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
}

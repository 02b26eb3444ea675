package controllers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/schedule"
	"github.com/memcached-operator/memcached-operator/internal/index"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// soon returns the time of a run in one to two minutes, and the schedule of it.
func (w *world) soon(more string) (run time.Time, spec string) {
	run = w.clock.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)
	return run, fmt.Sprintf(`{schedule: "%d %d * * *", %s backupTemplate: {spec: %s}}`, run.Minute(), run.Hour(), more, toClaim)
}

func (w *world) schedule(name string) *v1alpha1.MemcachedScheduledBackup {
	w.Helper()
	s := &v1alpha1.MemcachedScheduledBackup{}
	w.read(name, s)
	return s
}

func runName(schedule string, run time.Time) string {
	return schedule + "-" + strconv.FormatInt(run.Unix()/60, 10)
}

func TestScheduleCreatesBackupOnTime(t *testing.T) {
	t.Parallel()
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
	w.must(admin.Delete(w.ctx, w.schedule("nightly")))
	w.converge()
	if w.backup(b.Name).DeletionTimestamp != nil || len(w.jobs.snapshots) != 1 {
		t.Error("the backups of a deleted schedule were deleted with it")
	}
}

func TestScheduleDeletesExpiredBackups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	run, spec := w.soon("retention: {successfulBackupsHistoryLimit: 1},")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	for day := range 2 {
		// by the API server's clock they are as old as they are
		name := runName("nightly", run.Add(time.Duration(day-3)*24*time.Hour))
		w.create("MemcachedBackup", name, "{memcachedRef: {name: cache}, deletionPolicy: Delete, store: {persistentVolumeClaim: {claimName: snapshots}}}")
		w.must(admin.Patch(w.ctx, w.backup(name), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelSchedule+`":"nightly"}}}`))))
	}
	w.converge()
	w.clock.SetTime(run)
	w.converge()
	var backups v1alpha1.MemcachedBackupList
	w.must(admin.List(w.ctx, &backups, client.InNamespace(w.namespace)))
	if len(backups.Items) != 1 || backups.Items[0].Name != runName("nightly", run) || len(w.jobs.snapshots) != 1 {
		t.Errorf("there are %d backups and the snapshots %v", len(backups.Items), w.jobs.snapshots)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventBackupPruned)
}

func TestRunReplacesRunningBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	run, spec := w.soon("concurrencyPolicy: Replace,")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	w.clock.SetTime(run)
	w.converge()
	first := w.backup(runName("nightly", run))
	w.must(admin.Patch(w.ctx, w.schedule("nightly"), client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"schedule":"%d %d * * *"}}`, run.Add(time.Minute).Minute(), run.Add(time.Minute).Hour()))))
	w.clock.SetTime(run.Add(time.Minute))
	w.converge()
	if w.exists(first.Name, &v1alpha1.MemcachedBackup{}) {
		t.Error("the first one still exists")
	}
	if second := w.backup(runName("nightly", run.Add(time.Minute))); second.Status.Phase != v1alpha1.TransferRunning {
		t.Errorf("the second one is %+v", second.Status)
	}
}

func TestRunReplacesManyRunningBackups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	run, spec := w.soon("concurrencyPolicy: Replace,")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	for day := range 12 {
		name := runName("nightly", run.Add(time.Duration(day-20)*24*time.Hour))
		w.create("MemcachedBackup", name, toClaim)
		w.must(admin.Patch(w.ctx, w.backup(name), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelSchedule+`":"nightly"}}}`))))
	}
	w.converge()
	w.clock.SetTime(run)
	w.converge()
	var backups v1alpha1.MemcachedBackupList
	w.must(admin.List(w.ctx, &backups, client.InNamespace(w.namespace)))
	if len(backups.Items) != 1 || backups.Items[0].Name != runName("nightly", run) {
		t.Errorf("there are %d backups", len(backups.Items))
	}
	if s := w.schedule("nightly").Status; !s.LastScheduleTime.Time.Equal(run) || !slices.Equal(s.Active, []string{runName("nightly", run)}) {
		t.Errorf("the status is %+v", s)
	}
}

// hangs is a client in which reads of a schedule of one namespace hang until it is released.
type hangs struct {
	client.Client
	namespace string
	release   <-chan struct{}
}

func (c hangs) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if _, ok := o.(*v1alpha1.MemcachedScheduledBackup); ok && key.Namespace == c.namespace {
		<-c.release
	}
	return c.Client.Get(ctx, key, o, options...)
}

func TestSchedulesOfOneNamespaceDoNotDelayThoseOfAnother(t *testing.T) {
	t.Parallel()
	loud, quiet := newWorld(t), newWorld(t)
	mgr, err := ctrl.NewManager(rest.CopyConfig(asSelf), ctrl.Options{Scheme: scheme, Cache: CacheOptions(loud.namespace + "," + quiet.namespace), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}})
	quiet.must(err)
	quiet.must(index.Setup(quiet.ctx, mgr.GetFieldIndexer()))
	release := make(chan struct{})
	quiet.must((&schedule.Reconciler{Client: hangs{mgr.GetClient(), loud.namespace, release}, APIReader: mgr.GetAPIReader(), Recorder: quiet.events, Clock: clock.RealClock{}}).SetupWithManager(mgr))
	_, spec := loud.soon("")
	for i := range 20 {
		loud.create("MemcachedScheduledBackup", fmt.Sprintf("s%d", i), spec)
	}
	ctx, stop := context.WithCancel(quiet.ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	defer func() {
		close(release)
		stop()
		quiet.must(<-stopped)
	}()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache doesn't sync")
	}
	quiet.create("MemcachedScheduledBackup", "nightly", spec)
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return quiet.schedule("nightly").Status.NextScheduleTime != nil, nil
	})
	if err != nil {
		t.Errorf("the schedule of another namespace waits: %v", err)
	}
}

func TestInvalidScheduleIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("MemcachedScheduledBackup", "nightly", `{schedule: "at night", backupTemplate: {spec: `+toClaim+`}}`)
	w.converge()
	c := meta.FindStatusCondition(w.schedule("nightly").Status.Conditions, v1alpha1.ConditionScheduled)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonScheduleInvalid {
		t.Errorf("the condition is %+v", c)
	}
	w.wantEvent(w.recorded(), v1alpha1.EventScheduleInvalid, "five fields")
}

func TestStaleScheduleDoesNotRunTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	run, spec := w.soon("")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	w.converge()
	before := w.schedule("nightly")
	w.clock.SetTime(run)
	w.converge()
	b := w.backup(runName("nightly", run))
	w.delete(b) // as a user would
	w.lag(stale{schedules: map[string]*v1alpha1.MemcachedScheduledBackup{"nightly": before}})
	w.reconcile(w.schedules, "nightly")
	if !w.isDeleted(b) {
		t.Error("the run creates another backup")
	}
	w.catchUp()
	if w.converge(); !w.isDeleted(b) {
		t.Error("the run creates another backup")
	}
}

func TestRejectedBackupIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	allow := w.forbid("count/memcachedbackups.cache.memcached-operator.io")
	run, spec := w.soon("")
	w.create("MemcachedScheduledBackup", "nightly", spec)
	w.converge()
	w.clock.SetTime(run)
	if result := w.reconcile(w.schedules, "nightly"); result.RequeueAfter != 30*time.Second {
		t.Errorf("it is requeued after %s", result.RequeueAfter)
	}
	c := meta.FindStatusCondition(w.schedule("nightly").Status.Conditions, v1alpha1.ConditionScheduled)
	if c == nil || c.Reason != v1alpha1.ReasonRetrying || !strings.Contains(c.Message, "exceeded quota") {
		t.Errorf("the condition is %+v", c)
	}
	allow()
	w.clock.Step(time.Minute)
	eventually := 0
	for !w.exists(runName("nightly", run), &v1alpha1.MemcachedBackup{}) && eventually < 100 { // the quota's cache lags
		w.reconcile(w.schedules, "nightly")
		eventually++
	}
	w.converge()
	w.wantEnd(w.backup(runName("nightly", run)).Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}

package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// fixture is a Reconciler on an API server in memory, half an hour after the run of a daily schedule.
type fixture struct {
	t *testing.T
	*Reconciler
	server   *simtest.Server
	clock    *testclock.FakeClock
	recorder *events.FakeRecorder
	cache    *cache
}

// cache is the Reconciler's client, whose reads may be out of date and whose writes may fail.
type cache struct {
	client.Client
	schedule *v1beta1.MemcachedScheduledBackup
	backups  []v1beta1.MemcachedBackup
	fails    error
}

func (c *cache) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if s, ok := o.(*v1beta1.MemcachedScheduledBackup); ok && c.schedule != nil {
		c.schedule.DeepCopyInto(s)
		return nil
	}
	return c.Client.Get(ctx, key, o, options...)
}

func (c *cache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if c.backups != nil {
		list.(*v1beta1.MemcachedBackupList).Items = c.backups
		return nil
	}
	return c.Client.List(ctx, list, options...)
}

func (c *cache) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if c.fails != nil {
		return c.fails
	}
	return c.Client.Create(ctx, o, options...)
}

func newFixture(t *testing.T, edits ...func(*v1beta1.MemcachedScheduledBackup)) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: testclock.NewFakeClock(at(t, "2026-05-01T03:00:00Z")), recorder: events.NewFakeRecorder(100)}
	created, uids := at(t, "2026-04-20T00:00:00Z"), 0
	f.server = simtest.NewServer(func() time.Time { return created }, func() types.UID {
		uids++
		return types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", uids))
	})
	s := scheduled(created, edits...)
	s.Namespace = simtest.InMemory
	s.Spec.BackupTemplate.Spec.Store.PersistentVolumeClaim = &v1beta1.PersistentVolumeClaimStore{ClaimName: "snapshots"}
	f.must(f.server.Create(t.Context(), s))
	created = f.clock.Now()
	f.cache = &cache{Client: simtest.Indexed(f.server)}
	f.Reconciler = &Reconciler{Client: f.cache, APIReader: f.server, Recorder: f.recorder, Clock: f.clock}
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) reconcile() (ctrl.Result, error) {
	return f.Reconcile(f.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: simtest.InMemory, Name: "nightly"}})
}

func (f *fixture) schedule() *v1beta1.MemcachedScheduledBackup {
	return simtest.Get[*v1beta1.MemcachedScheduledBackup](f.server, "nightly")
}

func (f *fixture) condition() *metav1.Condition {
	return meta.FindStatusCondition(f.schedule().Status.Conditions, v1beta1.ConditionReady)
}

func (f *fixture) wantBackups(want ...string) {
	f.t.Helper()
	if got := f.server.Names(simtest.KindBackup); !slices.Equal(got, want) {
		f.t.Errorf("there are the backups %v, want %v", got, want)
	}
}

const dueName = "nightly-29626710" // of the run at 2:30

func TestRunIsWrittenAfterItsBackup(t *testing.T) {
	f := newFixture(t)
	result, err := f.reconcile()
	f.must(err)
	f.wantBackups(dueName)
	s := f.schedule().Status
	if next := at(t, "2026-05-02T02:30:00Z"); s.LastBackupName != dueName || !s.LastScheduleTime.Time.Equal(at(t, "2026-05-01T02:30:00Z")) || !s.NextScheduleTime.Time.Equal(next) || result.RequeueAfter != next.Sub(f.clock.Now()) {
		t.Errorf("it is requeued after %s, and the status is %+v", result.RequeueAfter, s)
	}
	versions := len(f.server.Past[simtest.KindSchedule])
	_, err = f.reconcile()
	f.must(err)
	if n := len(f.server.Past[simtest.KindSchedule]); n != versions || len(f.recorder.Events) != 0 {
		t.Errorf("without a change it is written %d times, with %d events", n-versions, len(f.recorder.Events))
	}
}

// A user may have deleted the backup of a run that the status in the cache doesn't contain.
func TestStaleScheduleDoesNotRunTwice(t *testing.T) {
	f := newFixture(t)
	before := f.schedule()
	_, err := f.reconcile()
	f.must(err)
	f.must(f.server.Delete(t.Context(), simtest.Get[*v1beta1.MemcachedBackup](f.server, dueName)))
	for _, old := range []*v1beta1.MemcachedScheduledBackup{before, nil} {
		f.cache.schedule = old
		result, err := f.reconcile()
		f.must(err)
		if stale := old != nil; stale != (result.RequeueAfter < time.Second) {
			t.Errorf("it is requeued after %s", result.RequeueAfter)
		}
		f.wantBackups()
	}
}

func TestRejectedBackupIsRetried(t *testing.T) {
	f := newFixture(t, func(s *v1beta1.MemcachedScheduledBackup) {
		s.Spec.Retention = &v1beta1.BackupRetention{FailedBackupsHistoryLimit: new(int32(0))}
	})
	failed := backupOf(f.schedule(), "nightly-1")
	f.must(f.server.Create(t.Context(), failed))
	failed.Status.Phase = v1beta1.TransferFailed
	f.must(f.server.Status().Update(t.Context(), failed))
	f.cache.fails = apierrors.NewForbidden(schema.GroupResource{Resource: "memcachedbackups"}, dueName, errors.New("exceeded quota"))
	result, err := f.reconcile()
	f.must(err)
	if c := f.condition(); result.RequeueAfter != apiserver.RejectionRecheck || c == nil || c.Reason != v1beta1.ReasonRetrying || !strings.Contains(c.Message, "exceeded quota") || f.schedule().Status.LastScheduleTime != nil {
		t.Errorf("it is requeued after %s, and the condition is %+v", result.RequeueAfter, c)
	}
	if f.wantBackups(); len(f.recorder.Events) != 1 { // the retention makes room in the quota
		t.Errorf("there are %d events", len(f.recorder.Events))
	}
	f.cache.fails = nil
	_, err = f.reconcile()
	f.must(err)
	f.wantBackups(dueName)
	if c := f.condition(); c.Reason != v1beta1.ReasonWaitingForSchedule {
		t.Errorf("the condition is %+v", c)
	}
}

func TestRunWhoseBackupIsRejectedUntilItsDeadlineIsMissedForThat(t *testing.T) {
	const quota, late = "; the API server rejected its backup: creating MemcachedBackup " + dueName + ": exceeded quota", "it is 1h0m1s late, which exceeds spec.startingDeadlineSeconds"
	for name, c := range map[string]struct {
		days int // in which the operator doesn't run
		want string
	}{
		"its run":      {0, "Warning MissedSchedule missed the run at 2026-05-01T02:30:00Z: " + late + quota},
		"a former one": {1, "Warning MissedSchedule missed the run at 2026-05-02T02:30:00Z: " + late},
	} {
		f := newFixture(t)
		f.cache.fails = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Message: "exceeded quota"}}
		_, err := f.reconcile()
		f.must(err)
		f.clock.SetTime(at(t, "2026-05-01T03:30:01Z").AddDate(0, 0, c.days))
		_, err = f.reconcile()
		f.must(err)
		if got := <-f.recorder.Events; got != c.want || len(f.recorder.Events) > 0 {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if c := f.condition(); c.Reason != v1beta1.ReasonWaitingForSchedule {
			t.Errorf("the condition is %+v", c)
		}
	}
}

func TestScheduleStopsWithItsNamespace(t *testing.T) {
	f := newFixture(t)
	terminating := apierrors.NewForbidden(schema.GroupResource{}, dueName, errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	f.cache.fails = terminating
	if result, err := f.reconcile(); err != nil || result.RequeueAfter != 0 || f.condition() != nil {
		t.Errorf("%v: it is requeued after %s, and the condition is %+v", err, result.RequeueAfter, f.condition())
	}
}

func TestFailedRequestsAreRetried(t *testing.T) {
	f := newFixture(t)
	f.cache.fails = errors.New("the server is busy")
	if _, err := f.reconcile(); !errors.Is(err, f.cache.fails) || f.condition() != nil {
		t.Errorf("the error is %v, and the condition %+v", err, f.condition())
	}
}

func TestInvalidScheduleIsReported(t *testing.T) {
	f := newFixture(t, func(s *v1beta1.MemcachedScheduledBackup) { s.Spec.Schedule = "at night" })
	for range 2 {
		if result, err := f.reconcile(); err != nil || result.RequeueAfter != 0 {
			t.Errorf("%v: it is requeued after %s", err, result.RequeueAfter)
		}
	}
	if c := f.condition(); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1beta1.ReasonScheduleInvalid || len(f.recorder.Events) != 1 {
		t.Errorf("the condition is %+v, with %d events", c, len(f.recorder.Events))
	}
	f.wantBackups()
}

// A backup that takes the name of a deleted one has another UID, and those of users aren't the schedule's.
func TestRetentionDeletesOnlyBackupsOfTheSchedule(t *testing.T) {
	f := newFixture(t, func(s *v1beta1.MemcachedScheduledBackup) {
		s.Spec.Retention = &v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: new(int32(1))}
	})
	create := func(name string, labels map[string]string) *v1beta1.MemcachedBackup {
		b := backupOf(f.schedule(), name)
		b.Labels = labels
		f.must(f.server.Create(t.Context(), b))
		b.Status.Phase, b.Status.CompletionTime = v1beta1.TransferComplete, &metav1.Time{Time: f.clock.Now()}
		f.must(f.server.Status().Update(t.Context(), b))
		return b
	}
	own := map[string]string{v1beta1.LabelSchedule: "nightly"}
	first := create("nightly-1", own)
	create("nightly-2", own)
	create("nightly-3", nil)
	create("nightly-copy", own)
	f.cache.backups = []v1beta1.MemcachedBackup{*first, *create(dueName, own)}
	f.must(f.server.Delete(t.Context(), first))
	create("nightly-1", nil)
	_, err := f.reconcile()
	f.must(err)
	f.wantBackups("nightly-1", "nightly-2", dueName, "nightly-3", "nightly-copy")
	f.cache.backups = nil
	_, err = f.reconcile()
	f.must(err)
	f.wantBackups("nightly-1", dueName, "nightly-3", "nightly-copy")
}

func TestRunReplacesRunningBackup(t *testing.T) {
	f := newFixture(t, func(s *v1beta1.MemcachedScheduledBackup) { s.Spec.ConcurrencyPolicy = v1beta1.ConcurrencyReplace })
	running := backupOf(f.schedule(), "nightly-1")
	f.must(f.server.Create(t.Context(), running))
	_, err := f.reconcile()
	f.must(err)
	f.wantBackups(dueName)
}

// A Failed backup would raise an alert when the Memcached has shards again.
func TestRunsWhileTheMemcachedHasNoShardsAreSkipped(t *testing.T) {
	for size, want := range map[int32][]string{0: nil, 1: {dueName}} {
		f := newFixture(t)
		m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: simtest.InMemory, Name: "cache"}, Spec: v1beta1.MemcachedSpec{Size: &size}}
		f.must(f.server.Create(t.Context(), m))
		_, err := f.reconcile()
		f.must(err)
		f.wantBackups(want...)
	}
}

func TestDeletedScheduleRunsNothing(t *testing.T) {
	f := newFixture(t, func(s *v1beta1.MemcachedScheduledBackup) { s.Finalizers = []string{"example.com/x"} })
	f.must(f.server.Delete(t.Context(), f.schedule().DeepCopy()))
	for _, exists := range []bool{true, false} {
		if result, err := f.reconcile(); err != nil || result.RequeueAfter != 0 || (f.schedule() != nil) != exists {
			t.Errorf("%v: it is requeued after %s", err, result.RequeueAfter)
		}
		f.wantBackups()
		if exists {
			s := f.schedule().DeepCopy()
			s.Finalizers = nil
			f.must(f.server.Update(t.Context(), s))
		}
	}
}

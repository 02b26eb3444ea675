package upgradeable

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	operatorconditions "github.com/operator-framework/operator-lib/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// memcached returns one whose status says so.
func memcached(name string, edit ...func(*v1alpha1.Memcached)) v1alpha1.Memcached {
	m := v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Generation: 2}}
	m.Status.ObservedGeneration = 2
	for _, e := range edit {
		e(&m)
	}
	return m
}

func is(condition string) func(*v1alpha1.Memcached) {
	return func(m *v1alpha1.Memcached) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue})
	}
}

const upToDate = "no Memcached is being changed, and no backup or restore is running"

// conditionOf returns the condition of a cluster with these objects.
func conditionOf(t *testing.T, memcacheds []v1alpha1.Memcached, backups []v1alpha1.MemcachedBackup, restores []v1alpha1.MemcachedRestore) metav1.Condition {
	t.Helper()
	condition := &fakeCondition{}
	if _, _, err := reconciled(t, condition, &v1alpha1.MemcachedList{Items: memcacheds}, &v1alpha1.MemcachedBackupList{Items: backups},
		&v1alpha1.MemcachedRestoreList{Items: restores}); err != nil {
		t.Fatal(err)
	}
	return *condition.current
}

func TestUpgradeIsBlockedWhileMemcachedIsBeingChanged(t *testing.T) {
	progressing, degraded := is(v1alpha1.ConditionProgressing), is(v1alpha1.ConditionDegraded)
	deleted := func(m *v1alpha1.Memcached) {
		m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/x"}
	}
	paused := func(m *v1alpha1.Memcached) { m.Spec.Paused = true }
	unseen := func(m *v1alpha1.Memcached) { m.Generation++ }
	for name, test := range map[string]struct {
		memcacheds []v1alpha1.Memcached
		status     metav1.ConditionStatus
		message    string
	}{
		"there is none":                    {nil, metav1.ConditionTrue, upToDate},
		"all are up to date":               {[]v1alpha1.Memcached{memcached("a"), memcached("b")}, metav1.ConditionTrue, upToDate},
		"one progresses":                   {[]v1alpha1.Memcached{memcached("a"), memcached("b", progressing)}, metav1.ConditionFalse, "being changed: Memcached team/b"},
		"three progress":                   {[]v1alpha1.Memcached{memcached("c", progressing), memcached("b", progressing), memcached("a", progressing)}, metav1.ConditionFalse, "being changed: Memcached team/a and 2 more"},
		"a change is not observed yet":     {[]v1alpha1.Memcached{memcached("a", unseen)}, metav1.ConditionFalse, "being changed: Memcached team/a"},
		"one requires manual intervention": {[]v1alpha1.Memcached{memcached("a", progressing, degraded)}, metav1.ConditionTrue, upToDate},
		"one is being deleted":             {[]v1alpha1.Memcached{memcached("a", progressing, deleted)}, metav1.ConditionTrue, upToDate},
		"a paused one has a change":        {[]v1alpha1.Memcached{memcached("a", paused, unseen)}, metav1.ConditionTrue, upToDate},
	} {
		t.Run(name, func(t *testing.T) {
			got := conditionOf(t, test.memcacheds, nil, nil)
			if got.Status != test.status || got.Message != test.message || got.Reason == "" {
				t.Errorf("it is %s (%s): %s", got.Status, got.Reason, got.Message)
			}
		})
	}
}

func TestUpgradeIsBlockedWhileBackupOrRestoreRuns(t *testing.T) {
	backup := func(name string, phase v1alpha1.TransferPhase, deleted bool) v1alpha1.MemcachedBackup {
		b := v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		b.Status.Phase = phase
		if deleted {
			b.DeletionTimestamp, b.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/x"}
		}
		return b
	}
	restore := v1alpha1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "again"}}
	restore.Status.Phase = v1alpha1.TransferRunning
	for name, test := range map[string]struct {
		memcacheds []v1alpha1.Memcached
		backups    []v1alpha1.MemcachedBackup
		restores   []v1alpha1.MemcachedRestore
		reason     string
		message    string
	}{
		"a backup runs":        {nil, []v1alpha1.MemcachedBackup{backup("nightly", v1alpha1.TransferRunning, false)}, nil, ReasonTransfersRunning, "running: MemcachedBackup team/nightly"},
		"a restore runs":       {nil, nil, []v1alpha1.MemcachedRestore{restore}, ReasonTransfersRunning, "running: MemcachedRestore team/again"},
		"both run":             {nil, []v1alpha1.MemcachedBackup{backup("nightly", v1alpha1.TransferRunning, false)}, []v1alpha1.MemcachedRestore{restore}, ReasonTransfersRunning, "running: MemcachedBackup team/nightly and 1 more"},
		"all have finished":    {nil, []v1alpha1.MemcachedBackup{backup("a", v1alpha1.TransferComplete, false), backup("b", v1alpha1.TransferFailed, false)}, nil, ReasonMemcachedsUpToDate, upToDate},
		"one is pending":       {nil, []v1alpha1.MemcachedBackup{backup("a", v1alpha1.TransferPending, false)}, nil, ReasonMemcachedsUpToDate, upToDate},
		"one is being deleted": {nil, []v1alpha1.MemcachedBackup{backup("a", v1alpha1.TransferRunning, true)}, nil, ReasonMemcachedsUpToDate, upToDate},
		"a Memcached changes too": {[]v1alpha1.Memcached{memcached("a", is(v1alpha1.ConditionProgressing))}, []v1alpha1.MemcachedBackup{backup("nightly", v1alpha1.TransferRunning, false)}, nil,
			ReasonMemcachedsChanging, "being changed: Memcached team/a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := conditionOf(t, test.memcacheds, test.backups, test.restores)
			if got.Reason != test.reason || got.Message != test.message || (got.Status == metav1.ConditionTrue) != (test.reason == ReasonMemcachedsUpToDate) {
				t.Errorf("it is %s (%s): %s", got.Status, got.Reason, got.Message)
			}
		})
	}
}

// fakeCondition is an OperatorCondition that counts requests. The tests on a cluster with
// OLM have a real one.
type fakeCondition struct {
	current       *metav1.Condition
	reads, writes int
	fails         error
}

func (c *fakeCondition) Get(context.Context) (*metav1.Condition, error) {
	c.reads++
	if c.current == nil {
		return nil, errors.New("conditionType Upgradeable not found")
	}
	return c.current, nil
}

func (c *fakeCondition) Set(_ context.Context, status metav1.ConditionStatus, options ...operatorconditions.Option) error {
	if c.fails != nil {
		return c.fails
	}
	c.writes++
	c.current = &metav1.Condition{Type: "Upgradeable", Status: status}
	for _, option := range options {
		option(c.current)
	}
	return nil
}

// reconciled returns a reconciler that ran once over these objects.
func reconciled(t *testing.T, condition *fakeCondition, lists ...client.ObjectList) (*Reconciler, ctrl.Result, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithLists(lists...).Build()
	r := &Reconciler{Client: client.Reader(reader), Condition: condition}
	result, err := r.Reconcile(t.Context(), ctrl.Request{})
	return r, result, err
}

// readyNow is the answer to a probe that does not wait.
func readyNow(t *testing.T, r *Reconciler) error {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return r.Ready(httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
}

// A failed probe would be an event, each time the operator starts.
func TestProbeWaitsUntilTheOperatorIsReady(t *testing.T) {
	r := &Reconciler{}
	answered := make(chan error, 1)
	go func() {
		answered <- r.Ready(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	}()
	select {
	case err := <-answered:
		t.Fatalf("the probe is answered before the operator is ready: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	r.ready.Store(true)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestOperatorIsReadyOnceOperatorConditionIsWritten(t *testing.T) {
	condition := &fakeCondition{}
	if err := readyNow(t, &Reconciler{}); err == nil {
		t.Error("it is ready before the first report")
	}
	r, _, err := reconciled(t, condition, &v1alpha1.MemcachedList{Items: []v1alpha1.Memcached{memcached("a", is(v1alpha1.ConditionProgressing))}})
	if err != nil || readyNow(t, r) != nil {
		t.Errorf("it is not ready after the first report: %v, %v", err, readyNow(t, r))
	}
	if condition.current.Status != metav1.ConditionFalse || condition.current.Reason != ReasonMemcachedsChanging {
		t.Errorf("the condition is %+v", condition.current)
	}
}

func TestUnchangedConditionIsNotWrittenAgain(t *testing.T) {
	condition := &fakeCondition{}
	for range 3 {
		r, _, err := reconciled(t, condition, &v1alpha1.MemcachedList{Items: []v1alpha1.Memcached{memcached("a")}})
		if err != nil || readyNow(t, r) != nil {
			t.Fatal(err, readyNow(t, r))
		}
		reads := condition.reads
		if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || condition.reads != reads {
			t.Errorf("an unchanged condition was read %d times more (%v)", condition.reads-reads, err)
		}
	}
	if condition.writes != 1 {
		t.Errorf("it was written %d times", condition.writes)
	}
}

func TestOperatorIsReadyWithoutOperatorCondition(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "operatorconditions"}, "memcached-operator.v1.0.0")
	r, result, err := reconciled(t, &fakeCondition{fails: gone})
	if err != nil || readyNow(t, r) != nil || result.RequeueAfter != missingRecheck {
		t.Errorf("%v, %v, requeued after %s", err, readyNow(t, r), result.RequeueAfter)
	}
}

func TestOperatorIsNotReadyAfterFailedWrite(t *testing.T) {
	r, _, err := reconciled(t, &fakeCondition{fails: errors.New("the server is busy")})
	if err == nil || readyNow(t, r) == nil {
		t.Errorf("the error is %v, ready: %v", err, readyNow(t, r))
	}
}

// Each reconcile lists all objects.
func TestOnlyRelevantChangesTriggerReconcile(t *testing.T) {
	at := func(version string, m v1alpha1.Memcached) *v1alpha1.Memcached {
		m.ResourceVersion = version
		return &m
	}
	idle, busy := memcached("a"), memcached("a", is(v1alpha1.ConditionProgressing))
	running := &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	running.Status.Phase = v1alpha1.TransferRunning
	further := running.DeepCopy()
	further.ResourceVersion, further.Status.Progress = "2", &v1alpha1.TransferProgress{Percent: 1}
	finished := running.DeepCopy()
	finished.ResourceVersion, finished.Status.Phase = "3", v1alpha1.TransferComplete
	for name, test := range map[string]struct {
		was, is client.Object
		want    bool
	}{
		"one starts changing":          {at("1", idle), at("2", busy), true},
		"one is up to date again":      {at("1", busy), at("2", idle), true},
		"one continues":                {at("1", busy), at("2", busy), false},
		"one stays up to date":         {at("1", idle), at("2", idle), false},
		"the cache resyncs":            {at("1", idle), at("1", idle), false},
		"a backup reports progress":    {running, further, false},
		"a backup finishes":            {further, finished, true},
		"a changing one appears":       {nil, at("1", busy), true},
		"an up-to-date one appears":    {nil, at("1", idle), false},
		"a changing one is deleted":    {at("1", busy), nil, true},
		"an up-to-date one is deleted": {at("1", idle), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got bool
			switch {
			case test.was == nil:
				got = relevantChange().Create(event.CreateEvent{Object: test.is})
			case test.is == nil:
				got = relevantChange().Delete(event.DeleteEvent{Object: test.was})
			default:
				got = relevantChange().Update(event.UpdateEvent{ObjectOld: test.was, ObjectNew: test.is})
			}
			if got != test.want {
				t.Errorf("it triggers a reconcile: %t", got)
			}
		})
	}
}

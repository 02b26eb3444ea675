package upgradeable

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	operatorconditions "github.com/operator-framework/operator-lib/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// memcached returns one whose status says so.
func memcached(name string, edit ...func(*v1beta1.Memcached)) v1beta1.Memcached {
	m := v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Generation: 2}}
	m.Status.ObservedGeneration = 2
	for _, e := range edit {
		e(&m)
	}
	return m
}

func is(condition string) func(*v1beta1.Memcached) {
	return func(m *v1beta1.Memcached) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)})
	}
}

const upToDate = "no Memcached is being changed"

func TestUpgradeIsBlockedWhileMemcachedIsBeingChanged(t *testing.T) {
	progressing, degraded := is(v1beta1.ConditionProgressing), is(v1beta1.ConditionDegraded)
	deleted := func(m *v1beta1.Memcached) {
		m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/x"}
	}
	paused := func(m *v1beta1.Memcached) { m.Spec.Paused = true }
	for name, test := range map[string]struct {
		memcacheds []v1beta1.Memcached
		status     metav1.ConditionStatus
		message    string
	}{
		"there is none":                    {nil, metav1.ConditionTrue, upToDate},
		"all are up to date":               {[]v1beta1.Memcached{memcached("a"), memcached("b")}, metav1.ConditionTrue, upToDate},
		"one progresses":                   {[]v1beta1.Memcached{memcached("a"), memcached("b", progressing)}, metav1.ConditionFalse, "Memcached team/b is being changed"},
		"three progress":                   {[]v1beta1.Memcached{memcached("c", progressing), memcached("b", progressing), memcached("a", progressing)}, metav1.ConditionFalse, "Memcached team/a and 2 more are being changed"},
		"one requires manual intervention": {[]v1beta1.Memcached{memcached("a", progressing, degraded)}, metav1.ConditionTrue, upToDate},
		"one is being deleted":             {[]v1beta1.Memcached{memcached("a", progressing, deleted)}, metav1.ConditionTrue, upToDate},
		"a paused one progresses":          {[]v1beta1.Memcached{memcached("a", paused, progressing)}, metav1.ConditionTrue, upToDate},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := upgradeable(test.memcacheds, nil, noon)
			if got.Status != test.status || got.Message != test.message || got.Reason == "" {
				t.Errorf("it is %s (%s): %s", got.Status, got.Reason, got.Message)
			}
		})
	}
}

// An update may wait for something that never happens.
func TestMemcachedBlocksUpgradeForHalfAnHour(t *testing.T) {
	progressing := is(v1beta1.ConditionProgressing)
	started := func(ago time.Duration) func(*v1beta1.Memcached) {
		return func(m *v1beta1.Memcached) {
			m.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-ago))
		}
	}
	for name, test := range map[string]struct {
		memcacheds []v1beta1.Memcached
		message    string
		recheck    time.Duration
	}{
		"it has just started":        {[]v1beta1.Memcached{memcached("a", progressing, started(0))}, "Memcached team/a is being changed", maxBlock},
		"it takes long":              {[]v1beta1.Memcached{memcached("a", progressing, started(29*time.Minute))}, "Memcached team/a is being changed", time.Minute},
		"it takes too long":          {[]v1beta1.Memcached{memcached("a", progressing, started(maxBlock))}, upToDate, 0},
		"another one takes too long": {[]v1beta1.Memcached{memcached("a", progressing, started(time.Hour)), memcached("b", progressing, started(10*time.Minute))}, "Memcached team/b is being changed", 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got, recheck := upgradeable(test.memcacheds, nil, noon); got.Message != test.message || recheck != test.recheck {
				t.Errorf("it is %s (%s): %s, for %s", got.Status, got.Reason, got.Message, recheck)
			}
		})
	}
}

// Users may start a change before the previous one is complete, again and again.
func TestChangesOneAfterAnotherBlockUpgradeForHalfAnHour(t *testing.T) {
	var current *metav1.Condition
	changing := true
	after := func(d time.Duration) metav1.Condition {
		now := noon.Add(d)
		var all []v1beta1.Memcached
		if changing {
			all = append(all, memcached("a", is(v1beta1.ConditionProgressing), func(m *v1beta1.Memcached) {
				m.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
			}))
		}
		c, _ := upgradeable(all, current, now)
		current = &c
		return c
	}
	for minute := range 120 {
		want := reasonMemcachedsChanging
		if minute >= 30 {
			want = reasonChangesTakeTooLong
		}
		if c := after(time.Duration(minute) * time.Minute); c.Reason != want || (c.Status == metav1.ConditionTrue) != (minute >= 30) {
			t.Fatalf("after %d minutes it is %s (%s): %s", minute, c.Status, c.Reason, c.Message)
		}
	}
	changing = false
	if c := after(2 * time.Hour); c.Reason != reasonMemcachedsUpToDate {
		t.Errorf("without a change it is %s (%s): %s", c.Status, c.Reason, c.Message)
	}
	changing = true
	if c := after(3 * time.Hour); c.Status != metav1.ConditionFalse {
		t.Errorf("a later change doesn't block: %s (%s): %s", c.Status, c.Reason, c.Message)
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
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithLists(lists...).Build()
	r := &Reconciler{Client: client.Reader(reader), Condition: condition, Clock: testclock.NewFakePassiveClock(noon)}
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
	synctest.Test(t, func(t *testing.T) {
		r := &Reconciler{}
		answered := make(chan error, 1)
		go func() {
			answered <- r.Ready(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		}()
		time.Sleep(time.Minute) //nolint:forbidigo // the fake time of a bubble
		if len(answered) > 0 {
			t.Fatalf("the probe is answered before the operator is ready: %v", <-answered)
		}
		r.ready.Store(true)
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}

func TestOperatorIsReadyOnceOperatorConditionIsWritten(t *testing.T) {
	condition := &fakeCondition{}
	if err := readyNow(t, &Reconciler{}); err == nil {
		t.Error("it is ready before the first report")
	}
	r, _, err := reconciled(t, condition, &v1beta1.MemcachedList{Items: []v1beta1.Memcached{memcached("a", is(v1beta1.ConditionProgressing))}})
	if err != nil || readyNow(t, r) != nil {
		t.Errorf("it is not ready after the first report: %v, %v", err, readyNow(t, r))
	}
	if condition.current.Status != metav1.ConditionFalse || condition.current.Reason != reasonMemcachedsChanging {
		t.Errorf("the condition is %+v", condition.current)
	}
}

func TestUnchangedConditionIsNotWrittenAgain(t *testing.T) {
	condition := &fakeCondition{}
	for range 3 {
		r, _, err := reconciled(t, condition, &v1beta1.MemcachedList{Items: []v1beta1.Memcached{memcached("a")}})
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
	if err != nil || readyNow(t, r) != nil || result.RequeueAfter != apiserver.RejectionRecheck {
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
	at := func(version string, m v1beta1.Memcached) *v1beta1.Memcached {
		m.ResourceVersion = version
		return &m
	}
	idle, busy := memcached("a"), memcached("a", is(v1beta1.ConditionProgressing))
	for name, test := range map[string]struct {
		was, is client.Object
		want    bool
	}{
		"one starts changing":          {at("1", idle), at("2", busy), true},
		"one is up to date again":      {at("1", busy), at("2", idle), true},
		"one continues":                {at("1", busy), at("2", busy), false},
		"one stays up to date":         {at("1", idle), at("2", idle), false},
		"the cache resyncs":            {at("1", idle), at("1", idle), false},
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

package upgradeable

import (
	"context"
	"errors"
	"testing"

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

const settled = "no Memcached is being changed, and no backup or restore runs"

func TestOLMIsHeldBackWhileAMemcachedIsBeingChanged(t *testing.T) {
	progressing, degraded := is(v1alpha1.ConditionProgressing), is(v1alpha1.ConditionDegraded)
	deleted := func(m *v1alpha1.Memcached) { m.DeletionTimestamp = &metav1.Time{} }
	paused := func(m *v1alpha1.Memcached) { m.Spec.Paused = true }
	unseen := func(m *v1alpha1.Memcached) { m.Generation++ }
	for name, test := range map[string]struct {
		memcacheds []v1alpha1.Memcached
		status     metav1.ConditionStatus
		message    string
	}{
		"there is none":                    {nil, metav1.ConditionTrue, settled},
		"all are settled":                  {[]v1alpha1.Memcached{memcached("a"), memcached("b")}, metav1.ConditionTrue, settled},
		"one progresses":                   {[]v1alpha1.Memcached{memcached("a"), memcached("b", progressing)}, metav1.ConditionFalse, "being changed: Memcached team/b"},
		"three progress":                   {[]v1alpha1.Memcached{memcached("c", progressing), memcached("b", progressing), memcached("a", progressing)}, metav1.ConditionFalse, "being changed: Memcached team/a and 2 more"},
		"a change is not seen yet":         {[]v1alpha1.Memcached{memcached("a", unseen)}, metav1.ConditionFalse, "being changed: Memcached team/a"},
		"one progresses and needs someone": {[]v1alpha1.Memcached{memcached("a", progressing, degraded)}, metav1.ConditionTrue, settled},
		"one is being deleted":             {[]v1alpha1.Memcached{memcached("a", progressing, deleted)}, metav1.ConditionTrue, settled},
		"a paused one has a change":        {[]v1alpha1.Memcached{memcached("a", paused, unseen)}, metav1.ConditionTrue, settled},
	} {
		t.Run(name, func(t *testing.T) {
			got := upgradeable(test.memcacheds, nil, nil)
			if got.Status != test.status || got.Message != test.message || got.Reason == "" {
				t.Errorf("it is %s (%s): %s", got.Status, got.Reason, got.Message)
			}
		})
	}
}

func TestOLMIsHeldBackWhileABackupOrARestoreRuns(t *testing.T) {
	backup := func(name string, phase v1alpha1.RunPhase, deleted bool) v1alpha1.MemcachedBackup {
		b := v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		b.Status.Phase = phase
		if deleted {
			b.DeletionTimestamp = &metav1.Time{}
		}
		return b
	}
	restore := v1alpha1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "again"}}
	restore.Status.Phase = v1alpha1.RunRunning
	for name, test := range map[string]struct {
		memcacheds []v1alpha1.Memcached
		backups    []v1alpha1.MemcachedBackup
		restores   []v1alpha1.MemcachedRestore
		reason     string
		message    string
	}{
		"a backup runs":        {nil, []v1alpha1.MemcachedBackup{backup("nightly", v1alpha1.RunRunning, false)}, nil, ReasonSnapshotsRun, "running: MemcachedBackup team/nightly"},
		"a restore runs":       {nil, nil, []v1alpha1.MemcachedRestore{restore}, ReasonSnapshotsRun, "running: MemcachedRestore team/again"},
		"both run":             {nil, []v1alpha1.MemcachedBackup{backup("nightly", v1alpha1.RunRunning, false)}, []v1alpha1.MemcachedRestore{restore}, ReasonSnapshotsRun, "running: MemcachedBackup team/nightly and 1 more"},
		"all have ended":       {nil, []v1alpha1.MemcachedBackup{backup("a", v1alpha1.RunComplete, false), backup("b", v1alpha1.RunFailed, false)}, nil, ReasonMemcachedsSettled, settled},
		"one waits":            {nil, []v1alpha1.MemcachedBackup{backup("a", "", false)}, nil, ReasonMemcachedsSettled, settled},
		"one is being deleted": {nil, []v1alpha1.MemcachedBackup{backup("a", v1alpha1.RunRunning, true)}, nil, ReasonMemcachedsSettled, settled},
		"a Memcached changes too": {[]v1alpha1.Memcached{memcached("a", is(v1alpha1.ConditionProgressing))}, []v1alpha1.MemcachedBackup{backup("nightly", v1alpha1.RunRunning, false)}, nil,
			ReasonMemcachedsChanging, "being changed: Memcached team/a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := upgradeable(test.memcacheds, test.backups, test.restores)
			if got.Reason != test.reason || got.Message != test.message || (got.Status == metav1.ConditionTrue) != (test.reason == ReasonMemcachedsSettled) {
				t.Errorf("it is %s (%s): %s", got.Status, got.Reason, got.Message)
			}
		})
	}
}

// told is an OperatorCondition that counts how often it is written. The real one
// is in the tests on a cluster with OLM.
type told struct {
	now    *metav1.Condition
	writes int
	fails  error
}

func (c *told) Get(context.Context) (*metav1.Condition, error) {
	if c.now == nil {
		return nil, errors.New("conditionType Upgradeable not found")
	}
	return c.now, nil
}

func (c *told) Set(_ context.Context, status metav1.ConditionStatus, options ...operatorconditions.Option) error {
	if c.fails != nil {
		return c.fails
	}
	c.writes++
	c.now = &metav1.Condition{Type: "Upgradeable", Status: status}
	for _, option := range options {
		option(c.now)
	}
	return nil
}

// reconciled returns a reconciler that ran once over these Memcacheds.
func reconciled(t *testing.T, condition *told, memcacheds ...v1alpha1.Memcached) (*Reconciler, ctrl.Result, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithLists(&v1alpha1.MemcachedList{Items: memcacheds}).Build()
	r := &Reconciler{Client: client.Reader(reader), Condition: condition}
	result, err := r.Reconcile(t.Context(), ctrl.Request{})
	return r, result, err
}

func TestTheOperatorIsReadyOnceOLMWasTold(t *testing.T) {
	condition := &told{}
	if err := (&Reconciler{}).Told(nil); err == nil {
		t.Error("it is ready before OLM was told")
	}
	r, _, err := reconciled(t, condition, memcached("a", is(v1alpha1.ConditionProgressing)))
	if err != nil || r.Told(nil) != nil {
		t.Errorf("it is not ready after OLM was told: %v, %v", err, r.Told(nil))
	}
	if condition.now.Status != metav1.ConditionFalse || condition.now.Reason != ReasonMemcachedsChanging {
		t.Errorf("OLM was told %+v", condition.now)
	}
}

func TestWhatOLMKnowsIsNotWrittenAgain(t *testing.T) {
	condition := &told{}
	for range 3 {
		r, _, err := reconciled(t, condition, memcached("a"))
		if err != nil || r.Told(nil) != nil {
			t.Fatal(err, r.Told(nil))
		}
	}
	if condition.writes != 1 {
		t.Errorf("it was written %d times", condition.writes)
	}
}

func TestAnOperatorWhoseOLMIsGoneIsReadyAndLooksAgain(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "operatorconditions"}, "memcached-operator.v1.0.0")
	r, result, err := reconciled(t, &told{fails: gone})
	if err != nil || r.Told(nil) != nil || result.RequeueAfter != lookAgain {
		t.Errorf("%v, %v, looks again in %s", err, r.Told(nil), result.RequeueAfter)
	}
}

func TestARefusedWriteIsTriedAgainBeforeTheOperatorIsReady(t *testing.T) {
	r, _, err := reconciled(t, &told{fails: errors.New("the server is busy")})
	if err == nil || r.Told(nil) == nil {
		t.Errorf("the error is %v, ready: %v", err, r.Told(nil))
	}
}

// The condition is a thing of all that there is, so that each look is one at all of it.
func TestOnlyWhatMayChangeTheConditionIsLookedAt(t *testing.T) {
	at := func(version string, m v1alpha1.Memcached) *v1alpha1.Memcached {
		m.ResourceVersion = version
		return &m
	}
	idle, busy := memcached("a"), memcached("a", is(v1alpha1.ConditionProgressing))
	running := &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	running.Status.Phase = v1alpha1.RunRunning
	further := running.DeepCopy()
	further.ResourceVersion, further.Status.Progress = "2", &v1alpha1.RunProgress{Percent: 1}
	ended := running.DeepCopy()
	ended.ResourceVersion, ended.Status.Phase = "3", v1alpha1.RunComplete
	for name, test := range map[string]struct {
		was, is client.Object
		looks   bool
	}{
		"one begins":                      {at("1", idle), at("2", busy), true},
		"one ends":                        {at("1", busy), at("2", idle), true},
		"one goes on":                     {at("1", busy), at("2", busy), false},
		"one is settled":                  {at("1", idle), at("2", idle), false},
		"the cache tells again of it":     {at("1", idle), at("1", idle), true},
		"a backup tells how far it is":    {running, further, false},
		"a backup ends":                   {further, ended, true},
		"one appears that is changed":     {nil, at("1", busy), true},
		"one appears that is settled":     {nil, at("1", idle), false},
		"one goes that was being changed": {at("1", busy), nil, true},
		"one goes that was settled":       {at("1", idle), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var looks bool
			switch {
			case test.was == nil:
				looks = news().Create(event.CreateEvent{Object: test.is})
			case test.is == nil:
				looks = news().Delete(event.DeleteEvent{Object: test.was})
			default:
				looks = news().Update(event.UpdateEvent{ObjectOld: test.was, ObjectNew: test.is})
			}
			if looks != test.looks {
				t.Errorf("it is looked at: %t", looks)
			}
		})
	}
}

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/backup"
	"github.com/memcached-operator/memcached-operator/controllers/restore"
	"github.com/memcached-operator/memcached-operator/controllers/schedule"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/apiservertest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// The tests of this package talk to a real API server, with the permissions that the
// operator is installed with. What the Job controller and the kubelet would do is
// in jobs_test.go; the cluster tests have the real ones.
var (
	admin  client.Client // a user with all permissions
	asSelf *rest.Config  // the operator with its own permissions
	scheme = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	apiservertest.Main(m, func(server *apiservertest.Server) (err error) {
		ctrl.SetLogger(logr.Discard())
		utilruntime.Must(errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
		asSelf = server.Operator
		admin, err = client.New(server.Admin, client.Options{Scheme: scheme})
		return err
	})
}

// world is one test's namespace, the operator in it, and what runs its Jobs.
type world struct {
	*testing.T
	ctx       context.Context
	namespace string
	clock     *testclock.FakeClock
	events    *events.FakeRecorder
	backups   *backup.Reconciler
	restores  *restore.Reconciler
	schedules *schedule.Reconciler
	// writes counts the operator's requests that are not reads; lives is how many it
	// has left before it is killed.
	writes, lives *atomic.Int64
	killed        bool
	jobs          *jobs
}

var namespaces atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, namespace: fmt.Sprintf("test-%d", namespaces.Add(1)), clock: testclock.NewFakeClock(time.Now()),
		writes: &atomic.Int64{}, lives: &atomic.Int64{}}
	w.lives.Store(math.MaxInt64)
	// The API server rejects pods that do not meet it.
	restricted := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	w.must(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace, Labels: restricted}}))
	w.events = events.NewFakeRecorder(1000)
	w.jobs = &jobs{world: w, created: map[string]int{}, progress: map[string]snapshotwire.Progress{}}
	config := rest.CopyConfig(asSelf)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return killer{next, w.writes, w.lives} })
	direct, err := client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	w.use(unindexed{direct})
	return w
}

// use makes the operator read from a client as from its cache.
func (w *world) use(c client.Client) {
	live := c
	if w.backups != nil {
		live = w.backups.APIReader.(client.Client)
	}
	options := transfer.Options{Image: "ghcr.io/memcached-operator/memcached-operator:v1.0.0", OperatorNamespace: "memcached-operator-system"}
	engine := transfer.Engine{Client: c, APIReader: live, Progress: w.jobs, Recorder: w.events, Options: options, Clock: w.clock}
	w.backups = &backup.Reconciler{Engine: engine}
	w.restores = &restore.Reconciler{Engine: engine}
	w.schedules = &schedule.Reconciler{Client: c, APIReader: live, Recorder: w.events, Clock: w.clock}
}

// unindexed is a client without a cache. The API server has none of the cache's indexes,
// and the labels of a list select the same objects.
type unindexed struct{ client.Client }

func (c unindexed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	o.FieldSelector = nil
	return c.Client.List(ctx, list, o)
}

// killAfter kills the operator after so many writes.
func (w *world) killAfter(writes int64) { w.lives.Store(writes) }

// errKilled is the error of all requests after the operator was killed.
var errKilled = errors.New("the operator was killed")

// killer counts the requests that are not reads, and fails all requests after a number
// of them.
type killer struct {
	next          http.RoundTripper
	writes, lives *atomic.Int64
}

func (r killer) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.lives.Load() <= 0 {
		return nil, errKilled
	}
	response, err := r.next.RoundTrip(request)
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		r.writes.Add(1)
		r.lives.Add(-1)
	}
	return response, err
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// create creates an object as kubectl apply would, through the API server's defaults
// and rules.
func (w *world) create(kind, name, spec string, edits ...func(*unstructured.Unstructured)) {
	w.Helper()
	w.must(w.tryCreate(kind, name, spec, edits...))
}

func (w *world) tryCreate(kind, name, spec string, edits ...func(*unstructured.Unstructured)) error {
	w.Helper()
	o := map[string]any{}
	w.must(yaml.Unmarshal([]byte(spec), &o))
	u := &unstructured.Unstructured{Object: map[string]any{"spec": o}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetName(name)
	u.SetNamespace(w.namespace)
	for _, edit := range edits {
		edit(u)
	}
	err := admin.Create(w.ctx, u, client.FieldValidation(metav1.FieldValidationStrict))
	// The API server's clock runs on in the meantime, and nothing is created in the operator's future.
	if at := u.GetCreationTimestamp().Time; w.clock.Now().Before(at) {
		w.clock.SetTime(at)
	}
	return err
}

// memcached creates one of that size whose status lists its servers.
func (w *world) memcached(name string, size int, edits ...func(*v1alpha1.Memcached)) *v1alpha1.Memcached {
	w.Helper()
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	m.Spec.Size = new(int32(size)) //nolint:gosec // a few
	for _, edit := range edits {
		edit(m)
	}
	status := m.Status
	w.must(admin.Create(w.ctx, m))
	m.Status = status
	for ordinal := range size {
		m.Status.Servers = append(m.Status.Servers, fmt.Sprintf("%s-%d.%s.svc:11211", name, ordinal, w.namespace))
	}
	m.Status.Version, m.Status.Selector = "1.6.45", "app.kubernetes.io/instance="+name+",app.kubernetes.io/name=memcached"
	w.must(admin.Status().Update(w.ctx, m))
	return m
}

func (w *world) read(name string, o client.Object) {
	w.Helper()
	w.must(admin.Get(w.ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, o))
}

// exists reads an object, and reports whether it exists.
func (w *world) exists(name string, o client.Object) bool {
	w.Helper()
	err := admin.Get(w.ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, o)
	w.must(client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

func (w *world) backup(name string) *v1alpha1.MemcachedBackup {
	w.Helper()
	b := &v1alpha1.MemcachedBackup{}
	w.read(name, b)
	return b
}

func (w *world) restore(name string) *v1alpha1.MemcachedRestore {
	w.Helper()
	r := &v1alpha1.MemcachedRestore{}
	w.read(name, r)
	return r
}

// reconcile runs one reconcile of an object. An operator that was killed
// is started again.
func (w *world) reconcile(r reconcile.Reconciler, name string) ctrl.Result {
	w.Helper()
	result, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: name}})
	if w.lives.Load() <= 0 {
		w.lives.Store(math.MaxInt64)
		w.killed = true
		return ctrl.Result{RequeueAfter: time.Second}
	}
	w.must(err)
	return result
}

// converge reconciles all backups and restores, with a second between, until nothing
// is written any more and no Job has anything to do.
func (w *world) converge() {
	w.Helper()
	quiet := 0
	for range 100 {
		before := w.writes.Load()
		w.reconcileAll()
		moved := w.jobs.tick()
		w.clock.Step(time.Second)
		if w.writes.Load() != before || moved {
			quiet = 0
		} else if quiet++; quiet == 2 {
			return
		}
	}
	w.Fatal("the operator keeps writing")
}

func (w *world) reconcileAll() {
	w.Helper()
	var schedules v1alpha1.MemcachedScheduledBackupList
	w.must(admin.List(w.ctx, &schedules, client.InNamespace(w.namespace)))
	for i := range schedules.Items {
		w.reconcile(w.schedules, schedules.Items[i].Name)
	}
	var backups v1alpha1.MemcachedBackupList
	w.must(admin.List(w.ctx, &backups, client.InNamespace(w.namespace)))
	for i := range backups.Items {
		w.reconcile(w.backups, backups.Items[i].Name)
	}
	var restores v1alpha1.MemcachedRestoreList
	w.must(admin.List(w.ctx, &restores, client.InNamespace(w.namespace)))
	for i := range restores.Items {
		w.reconcile(w.restores, restores.Items[i].Name)
	}
}

// recorded returns the events since the last call.
func (w *world) recorded() []string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func (w *world) wantEvent(events []string, words ...string) {
	w.Helper()
	for _, e := range events {
		missing := false
		for _, word := range words {
			missing = missing || !strings.Contains(e, word)
		}
		if !missing {
			return
		}
	}
	w.Errorf("no event %q among %q", words, events)
}

// wantEnd compares the phase and the reason of a transfer.
func (w *world) wantEnd(s v1alpha1.TransferStatus, phase v1alpha1.TransferPhase, reason, words string) {
	w.Helper()
	if s.Phase != phase || s.Reason != reason || !strings.Contains(s.Message, words) {
		w.Errorf("it is %s (%s): %s; want %s (%s): %s", s.Phase, s.Reason, s.Message, phase, reason, words)
	}
	if s.IsFinished() != (s.CompletionTime != nil) {
		w.Errorf("%s at %v", s.Phase, s.CompletionTime)
	}
	for _, c := range s.Conditions {
		if want := c.Type == string(s.Phase); (c.Status == metav1.ConditionTrue) != want {
			w.Errorf("condition %s is %s while the phase is %s", c.Type, c.Status, s.Phase)
		}
	}
	if len(s.Conditions) != 2 {
		w.Errorf("the conditions are %v", s.Conditions)
	}
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

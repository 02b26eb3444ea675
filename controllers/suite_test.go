package controllers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/backup"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/restore"
	"github.com/memcached-operator/memcached-operator/controllers/schedule"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

const (
	toClaim    = "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}}}"
	toGo       = "{memcachedRef: {name: cache}, deletionPolicy: Delete, store: {persistentVolumeClaim: {claimName: snapshots, subPath: cache}}}"
	fromBackup = "{memcachedRef: {name: cache}, backupRef: {name: nightly}}"
	fromClaim  = "{memcachedRef: {name: fresh}, snapshot: {path: p, store: {persistentVolumeClaim: {claimName: snapshots}}}}"
)

// world is an API server in memory, the controllers of backups, restores and schedules on it, and what runs their Jobs.
type world struct {
	*testing.T
	ctx       context.Context
	admin     *simtest.Server
	clock     *testclock.FakeClock
	events    *events.FakeRecorder
	backups   *backup.Reconciler
	restores  *restore.Reconciler
	schedules *schedule.Reconciler
	// writes of the operator; lives is how many it has left before it is killed.
	writes, lives int
	killed        bool
	jobs          *simtest.Jobs
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), clock: testclock.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)), events: events.NewFakeRecorder(1000), lives: math.MaxInt}
	uids := 0
	w.admin = simtest.NewServer(w.clock.Now, func() types.UID {
		uids++
		return types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", uids))
	})
	w.jobs = simtest.NewJobs(w.admin, simtest.InMemory, w.clock.Now)
	direct := killer{w.admin, w}
	options := transfer.Options{Image: "ghcr.io/memcached-operator/memcached-operator:v1.0.0", OperatorNamespace: "memcached-operator-system"}
	engine := transfer.Engine{Client: simtest.Indexed(cachedClient{direct}), APIReader: direct, Progress: w.jobs, Recorder: w.events, Options: options, Clock: w.clock}
	w.backups = &backup.Reconciler{Engine: engine}
	w.restores = &restore.Reconciler{Engine: engine}
	w.schedules = &schedule.Reconciler{Client: engine.Client, APIReader: direct, Recorder: w.events, Clock: w.clock}
	return w
}

// cachedClient reads what the manager's cache would contain, so that tests fail when it lacks what the operator needs.
type cachedClient struct{ client.Client }

// Get implements client.Reader.
func (c cachedClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, o, options...); err != nil {
		return err
	}
	_, err := cache.Transform(o)
	return err
}

// killAfter kills the operator after so many writes.
func (w *world) killAfter(writes int) { w.lives = writes }

// errKilled is the error of all requests after the operator was killed.
var errKilled = errors.New("the operator was killed")

// killer is the operator's client, which counts its writes and fails all requests after a number of them.
type killer struct {
	client.Client
	w *world
}

func (k killer) write(do func() error) error {
	if k.w.lives <= 0 {
		return errKilled
	}
	k.w.writes++
	k.w.lives--
	return do()
}

func (k killer) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if k.w.lives <= 0 {
		return errKilled
	}
	return k.Client.Get(ctx, key, o, options...)
}

func (k killer) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return k.write(func() error { return k.Client.Create(ctx, o, options...) })
}

func (k killer) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return k.write(func() error { return k.Client.Patch(ctx, o, patch, options...) })
}

// Delete implements client.Writer. As in the API server, a Job that is deleted in the foreground stays until its pods are deleted.
func (k killer) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return k.write(func() error {
		how := (&client.DeleteOptions{}).ApplyOptions(options)
		if job, ok := o.(*batchv1.Job); ok && how.PropagationPolicy != nil && *how.PropagationPolicy == metav1.DeletePropagationForeground {
			job = job.DeepCopy()
			job.Finalizers = append(job.Finalizers, metav1.FinalizerDeleteDependents)
			if err := k.Client.Update(ctx, job); err != nil {
				return err
			}
		}
		return k.Client.Delete(ctx, o, options...)
	})
}

func (k killer) Status() client.SubResourceWriter { return killerOfStatus{k.Client.Status(), k} }

type killerOfStatus struct {
	client.SubResourceWriter
	by killer
}

func (k killerOfStatus) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return k.by.write(func() error { return k.SubResourceWriter.Patch(ctx, o, patch, options...) })
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// create creates an object as kubectl would, through the API server's defaults and rules.
func (w *world) create(kind, name, spec string, edits ...func(*unstructured.Unstructured)) {
	w.Helper()
	o := map[string]any{}
	w.must(yaml.Unmarshal([]byte(spec), &o))
	u := &unstructured.Unstructured{Object: map[string]any{"spec": o}}
	u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
	u.SetName(name)
	u.SetNamespace(simtest.InMemory)
	for _, edit := range edits {
		edit(u)
	}
	w.must(w.admin.Create(w.ctx, u))
}

// memcached creates one of that size with its Services, and with as many annotations as pods can have. Its status lists its servers.
func (w *world) memcached(name string, size int, edits ...func(*v1beta1.Memcached)) *v1beta1.Memcached {
	w.Helper()
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: simtest.InMemory, Name: name}}
	m.Spec.Size = new(int32(size)) //nolint:gosec // a few
	m.Spec.Pod.Metadata.Annotations = map[string]string{"large": strings.Repeat("x", 8192-len("large"))}
	for _, edit := range edits {
		edit(m)
	}
	status := m.Status
	w.must(w.admin.Create(w.ctx, m))
	m.Status = status
	for ordinal := range size {
		service := &corev1.Service{ObjectMeta: resources.OwnedMeta(m)}
		service.Name = resources.ShardName(name, ordinal)
		w.must(w.admin.Create(w.ctx, service))
		m.Status.Servers = append(m.Status.Servers, fmt.Sprintf("%s-%d.%s.svc.cluster.local:11211", name, ordinal, simtest.InMemory))
	}
	m.Status.Version, m.Status.Selector = "1.6.45", "app.kubernetes.io/instance="+name+",app.kubernetes.io/name=memcached"
	w.must(w.admin.Status().Update(w.ctx, m))
	return m
}

func (w *world) backup(name string) *v1beta1.MemcachedBackup {
	w.Helper()
	return w.named(name, &v1beta1.MemcachedBackup{}).(*v1beta1.MemcachedBackup)
}

func (w *world) restore(name string) *v1beta1.MemcachedRestore {
	w.Helper()
	return w.named(name, &v1beta1.MemcachedRestore{}).(*v1beta1.MemcachedRestore)
}

func (w *world) named(name string, o client.Object) client.Object {
	w.Helper()
	w.must(w.admin.Get(w.ctx, client.ObjectKey{Namespace: simtest.InMemory, Name: name}, o))
	return o
}

// job returns the Job of an object, or nil.
func (w *world) job(prefix transfer.Prefix, o client.Object) *batchv1.Job {
	return simtest.Get[*batchv1.Job](w.admin, transfer.JobName(prefix, o.GetUID()))
}

// reconcile runs one reconcile of an object. An operator that was killed is started again.
func (w *world) reconcile(r reconcile.Reconciler, name string) ctrl.Result {
	w.Helper()
	result, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: simtest.InMemory, Name: name}})
	if w.lives <= 0 {
		w.lives, w.killed = math.MaxInt, true
		return ctrl.Result{RequeueAfter: time.Second}
	}
	w.must(err)
	return result
}

// converge reconciles all objects, with a second between, until nothing is written any more and no Job has anything to do.
func (w *world) converge() {
	w.Helper()
	quiet := 0
	for range 100 {
		before := w.writes
		w.reconcileAll()
		moved, err := w.jobs.Tick()
		w.must(err)
		w.clock.Step(time.Second)
		if w.writes != before || moved {
			quiet = 0
		} else if quiet++; quiet == 2 {
			return
		}
	}
	w.Fatal("the operator keeps writing")
}

func (w *world) reconcileAll() {
	w.Helper()
	for _, of := range []struct {
		kind simtest.Kind
		by   reconcile.Reconciler
	}{{simtest.KindSchedule, w.schedules}, {simtest.KindBackup, w.backups}, {simtest.KindRestore, w.restores}} {
		for _, name := range w.admin.Names(of.kind) {
			w.reconcile(of.by, name)
		}
	}
}

// recorded returns the events since the last call.
func (w *world) recorded() (all []string) {
	for len(w.events.Events) > 0 {
		all = append(all, <-w.events.Events)
	}
	return all
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
func (w *world) wantEnd(s v1beta1.TransferStatus, phase v1beta1.TransferPhase, reason, words string) {
	w.Helper()
	if s.Phase != phase || s.Reason() != reason || !strings.Contains(s.Message(), words) {
		w.Errorf("it is %s (%s): %s; want %s (%s): %s", s.Phase, s.Reason(), s.Message(), phase, reason, words)
	}
}

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// transfers is one test's namespace, in which what the operator's controllers create passes the restricted Pod Security Standard.
type transfers struct {
	*simtest.Env
	jobs *simtest.Jobs
}

func newTransfers(t *testing.T) *transfers {
	t.Helper()
	name := fmt.Sprintf("transfers-%d", namespaces.Add(1))
	tr := &transfers{simtest.NewEnv(t, admin, name), simtest.NewJobs(admin, name, time.Now)}
	tr.Must(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}))
	return tr
}

const (
	toClaim    = "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}}}"
	toGo       = "{memcachedRef: {name: cache}, deletionPolicy: Delete, store: {persistentVolumeClaim: {claimName: snapshots}}}"
	fromBackup = "{memcachedRef: {name: cache}, backupRef: {name: nightly}}"
)

// create creates an object as kubectl apply would.
func (tr *transfers) create(kind, name, spec string) error {
	tr.Helper()
	return admin.Create(tr.Context(), tr.Object(kind, name, spec), client.FieldValidation(metav1.FieldValidationStrict))
}

func TestEventHasAtMost1024Bytes(t *testing.T) {
	t.Parallel()
	tr := newTransfers(t)
	create := func(name string, bytes int) error {
		return admin.Create(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: tr.Namespace, Name: name}, EventTime: metav1.NowMicro(), ReportingController: "c", ReportingInstance: "i",
			Action: "Reconcile", Reason: "R", Type: corev1.EventTypeNormal, Note: strings.Repeat("x", bytes), Regarding: corev1.ObjectReference{Namespace: tr.Namespace, Kind: "Memcached", Name: "cache"}})
	}
	if err := create("short", 1024); err != nil {
		t.Error(err)
	}
	if err := create("long", 1025); !apierrors.IsInvalid(err) {
		t.Errorf("a message of 1025 bytes: %v", err)
	}
}

// eventually looks at what the controllers of a manager have written until it is as expected.
func (tr *transfers) eventually(what string, o client.Object, name string, holds func() bool) {
	tr.Helper()
	tr.Must(cluster.Eventually(tr.Context(), what, func(ctx context.Context) error {
		_, err := tr.jobs.Tick()
		tr.Must(err)
		err = admin.Get(ctx, client.ObjectKey{Namespace: tr.Namespace, Name: name}, o)
		tr.Must(client.IgnoreNotFound(err))
		if apierrors.IsNotFound(err) {
			o.SetName("")
		}
		if !holds() {
			return fmt.Errorf("it is %+v", o)
		}
		return nil
	}))
}

// readiness has the checks of /readyz that a manager's controllers add.
type readiness struct {
	manager.Manager
	checks []healthz.Checker
}

func (r *readiness) AddReadyzCheck(_ string, check healthz.Checker) error {
	r.checks = append(r.checks, check)
	return nil
}

// check returns why the manager isn't ready until the context ends.
func (r *readiness) check(ctx context.Context) error {
	var err error
	for _, check := range r.checks {
		err = errors.Join(err, check(httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil)))
	}
	return err
}

// refusals is a transport of a client that reports when the API server rejects a request for lack of a permission.
type refusals struct {
	http.RoundTripper
	seen chan struct{}
}

func (r refusals) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusForbidden {
		select {
		case r.seen <- struct{}{}:
		default:
		}
	}
	return response, err
}

// TestManagerRunsAllControllers runs all controllers as main does, with their cache, and with permissions in two
// namespaces only: only watches trigger them. It is ready when it has the permissions in both.
func TestManagerRunsAllControllers(t *testing.T) {
	t.Parallel()
	tr, second, third := newTransfers(t), newTransfers(t), newTransfers(t)
	config, watched := rest.CopyConfig(server.Operator), []string{tr.Namespace, second.Namespace}
	config.Impersonate.UserName = "operator-of-two-namespaces"
	grant := func(namespace string) {
		tr.Must(admin.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator"}, RoleRef: ofOperator,
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: config.Impersonate.UserName}}}))
	}
	grant(tr.Namespace)
	refused := make(chan struct{}, 1)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return refusals{next, refused} })
	created, err := ctrl.NewManager(config, ctrl.Options{Scheme: simtest.Scheme(), Cache: cache.Options(watched...), Metrics: metricsserver.Options{BindAddress: "0"}})
	tr.Must(err)
	mgr := &readiness{Manager: created}
	tr.Must(controllers.SetupWithManager(mgr, controllers.Options{Image: "operator:1", DefaultImage: "docker.io/library/memcached:1.6.45", WatchNamespaces: watched, Clock: clock.RealClock{}}))
	start(t, mgr)
	<-refused
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	if mgr.check(expired) == nil {
		t.Error("the manager is ready without the permissions in one of its namespaces")
	}
	grant(second.Namespace)
	tr.Must(mgr.check(t.Context()))
	m := &v1beta1.Memcached{}
	tr.Must(third.create("Memcached", "cache", "{}"))
	tr.Must(second.create("Memcached", "cache", "{}"))
	second.eventually("the Memcached of the second namespace has a shard", m, "cache", func() bool { return m.Status.Size == 1 })
	var seen v1beta1.MemcachedList // by informers, which receive the changes in their order
	tr.Must(mgr.GetClient().List(t.Context(), &seen))
	tr.Must(admin.Get(t.Context(), client.ObjectKey{Namespace: third.Namespace, Name: "cache"}, m))
	if len(seen.Items) != 1 || m.Status.ObservedGeneration > 0 {
		t.Errorf("the operator sees %d Memcacheds, and that of the third namespace has the status %+v", len(seen.Items), m.Status)
	}
	b, r, s := &v1beta1.MemcachedBackup{}, &v1beta1.MemcachedRestore{}, &v1beta1.MemcachedScheduledBackup{}
	tr.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	tr.Must(tr.create("MemcachedRestore", "early", fromBackup))
	tr.eventually("a restore without a Memcached waits", r, "early", func() bool { return r.Status.Reason() == v1beta1.ReasonMemcachedNotFound })
	tr.Must(tr.create("Memcached", "cache", "{size: 2}"))
	tr.Must(tr.create("MemcachedBackup", "nightly", toGo))
	tr.eventually("the backup runs", b, "nightly", func() bool { return b.Status.Reason() == v1beta1.ReasonCopying })
	tr.Must(tr.create("MemcachedRestore", "again", fromBackup))
	tr.eventually("the restore waits for it", r, "again", func() bool { return r.Status.Reason() == v1beta1.ReasonBackupNotComplete })
	tr.jobs.Hang = nil
	tr.eventually("the backup is Complete", b, "nightly", func() bool { return b.Status.Phase == v1beta1.TransferComplete })
	tr.eventually("the restore is Complete", r, "again", func() bool { return r.Status.Phase == v1beta1.TransferComplete })
	tr.eventually("so is the one that was created first", r, "early", func() bool { return r.Status.Phase == v1beta1.TransferComplete })
	tr.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
	tr.Must(tr.create("MemcachedRestore", "first", fromBackup))
	tr.eventually("the first restore runs", r, "first", func() bool { return r.Status.Reason() == v1beta1.ReasonCopying })
	tr.Must(tr.create("MemcachedRestore", "second", fromBackup))
	tr.eventually("the second restore waits for it", r, "second", func() bool { return r.Status.Reason() == v1beta1.ReasonRestoreRunning })
	tr.jobs.Hang = nil
	tr.eventually("the second restore is Complete", r, "second", func() bool { return r.Status.Phase == v1beta1.TransferComplete })
	tr.Must(admin.Get(t.Context(), client.ObjectKey{Namespace: tr.Namespace, Name: "cache"}, m))
	tr.Must(admin.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`))))
	tr.eventually("the Memcached is paused", m, "cache", func() bool { return m.Status.ObservedGeneration == m.Generation })
	service := &corev1.Service{ObjectMeta: resources.OwnedMeta(m), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	service.Name = "cache-1"
	tr.Must(admin.Delete(t.Context(), service.DeepCopy()))
	tr.Must(cluster.Eventually(t.Context(), "the operator sees the deletion", func(ctx context.Context) error {
		if err := mgr.GetClient().Get(ctx, client.ObjectKeyFromObject(service), &corev1.Service{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Service is read with the error %v", err) //nolint:errorlint // err may be nil
		}
		return nil
	}))
	tr.Must(tr.create("MemcachedRestore", "third", fromBackup))
	tr.eventually("the third restore waits for the Service of a shard", r, "third", func() bool { return r.Status.Reason() == v1beta1.ReasonShardsStarting })
	tr.Must(admin.Create(t.Context(), service))
	tr.eventually("the third restore is Complete", r, "third", func() bool { return r.Status.Phase == v1beta1.TransferComplete })
	job := &batchv1.Job{}
	tr.eventually("the Job expires", job, b.Status.JobName, func() bool { return job.Spec.TTLSecondsAfterFinished != nil })
	families, err := metrics.Registry.Gather()
	tr.Must(err)
	found := false
	for _, family := range families {
		found = found || family.GetName() == "memcached_operator_backup_last_completion_timestamp_seconds"
	}
	if !found {
		t.Error("the metrics lack the backup")
	}
	tr.Must(tr.create("MemcachedScheduledBackup", "later", `{schedule: "@daily", backupTemplate: {spec: `+toClaim+`}}`))
	tr.eventually("the schedule reports its next run", s, "later", func() bool { return s.Status.NextScheduleTime != nil })
	tr.Must(admin.Delete(t.Context(), b))
	tr.eventually("the backup is deleted with its snapshot", b, "nightly", func() bool { return b.Name == "" })
	if len(tr.jobs.Snapshots) != 0 {
		t.Errorf("the store contains %v", tr.jobs.Snapshots)
	}
}

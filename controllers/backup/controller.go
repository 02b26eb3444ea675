package backup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/operator-framework/operator-lib/handler"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/index"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

const (
	// concurrency is how many backups are reconciled at once. A reconcile waits for the
	// API server, and two seconds for a Job's pod that does not answer: the others must
	// be asked in time all the same.
	concurrency = 16
	// kind of what is reconciled.
	kind = "MemcachedBackup"
	// lookAgain is how soon a backup that runs is asked how far it is.
	lookAgain = 5 * time.Second
)

// Reconciler runs backups.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Progress of Jobs is asked of it.
	Progress snapshotjob.Asker
	// Recorder of events.
	Recorder events.EventRecorder
	// Options for the Jobs.
	Options snapshotjob.Options
	// Clock tells the time.
	Clock clock.PassiveClock
}

// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedbackups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedbackups/status,verbs=update
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedrestores,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager has the manager call the reconciler whenever a backup, a Job of
// one or its pod changes, and when what it waits for may have. Changes of its own
// status do not count, as how far it is changes all the time.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("backup").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Watches(&v1alpha1.MemcachedBackup{}, &handler.InstrumentedEnqueueRequestForObject[client.Object]{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&batchv1.Job{}, ctrlhandler.EnqueueRequestsFromMapFunc(byAnnotation)).
		Watches(&corev1.Pod{}, ctrlhandler.EnqueueRequestsFromMapFunc(byAnnotation)).
		Watches(&v1alpha1.Memcached{}, ctrlhandler.EnqueueRequestsFromMapFunc(r.ofMemcached)).
		Watches(&v1alpha1.MemcachedRestore{}, ctrlhandler.EnqueueRequestsFromMapFunc(ofRestore)).
		Complete(r)
}

// byAnnotation leads from a Job or its pod to its backup.
func byAnnotation(_ context.Context, o client.Object) []reconcile.Request {
	name, ok := strings.CutPrefix(o.GetAnnotations()[v1alpha1.AnnotationRunOf], snapshotjob.RunOf(kind, ""))
	if !ok {
		return nil
	}
	return request(o.GetNamespace(), name)
}

// ofMemcached leads from a Memcached to the backups that wait for it.
func (r *Reconciler) ofMemcached(ctx context.Context, o client.Object) []reconcile.Request {
	var backups v1alpha1.MemcachedBackupList
	if err := r.Client.List(ctx, &backups, client.InNamespace(o.GetNamespace()), index.By(index.Memcached, o.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // from the cache, which does not fail
	}
	var all []reconcile.Request
	for i := range backups.Items {
		b := &backups.Items[i]
		if b.Spec.Memcached.Name == o.GetName() && b.Status.JobUID == "" && !snapshotjob.HasEnded(b.Status.RunStatus) {
			all = append(all, request(b.Namespace, b.Name)...)
		}
	}
	return all
}

// ofRestore leads from a restore to the backup that it reads, whose deletion may
// wait for it.
func ofRestore(_ context.Context, o client.Object) []reconcile.Request {
	restore, ok := o.(*v1alpha1.MemcachedRestore)
	if !ok || restore.Spec.Backup == nil {
		return nil
	}
	return request(restore.Namespace, restore.Spec.Backup.Name)
}

func request(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// Reconcile brings one backup closer to its end. It returns an error when it is
// worth trying again.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	b := &v1alpha1.MemcachedBackup{}
	if err := r.Client.Get(ctx, request.NamespacedName, b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	seen, err := r.observe(ctx, b)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing: %w", err)
	}
	return r.apply(ctx, seen, makePlan(seen))
}

package restore

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
	// concurrency is how many restores are reconciled at once. A reconcile waits for the
	// API server, and two seconds for a Job's pod that does not answer: the others must
	// be asked in time all the same.
	concurrency = 16
	// kind of what is reconciled.
	kind = "MemcachedRestore"
	// lookAgain is how soon a restore that runs is asked how far it is.
	lookAgain = 5 * time.Second
)

// Reconciler runs restores.
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

// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedrestores,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedrestores/status,verbs=update
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedbackups,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager has the manager call the reconciler whenever a restore, its Job or
// the Job's pod changes, and when what it waits for may have. Changes of its own
// status do not count, as how far it is changes all the time.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("restore").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Watches(&v1alpha1.MemcachedRestore{}, &handler.InstrumentedEnqueueRequestForObject[client.Object]{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&batchv1.Job{}, ctrlhandler.EnqueueRequestsFromMapFunc(byAnnotation)).
		Watches(&corev1.Pod{}, ctrlhandler.EnqueueRequestsFromMapFunc(byAnnotation)).
		Watches(&v1alpha1.Memcached{}, ctrlhandler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.waiting(ctx, o, index.Memcached, func(s v1alpha1.MemcachedRestoreSpec) bool { return s.Memcached.Name == o.GetName() })
		})).
		Watches(&v1alpha1.MemcachedBackup{}, ctrlhandler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.waiting(ctx, o, index.Backup, func(s v1alpha1.MemcachedRestoreSpec) bool {
				return s.Backup != nil && s.Backup.Name == o.GetName()
			})
		})).
		Complete(r)
}

// byAnnotation leads from a Job or its pod to its restore.
func byAnnotation(_ context.Context, o client.Object) []reconcile.Request {
	name, ok := strings.CutPrefix(o.GetAnnotations()[v1alpha1.AnnotationRunOf], snapshotjob.RunOf(kind, ""))
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// waiting returns the restores that have no Job yet and are of something that has
// changed.
func (r *Reconciler) waiting(ctx context.Context, o client.Object, of index.Index, are func(v1alpha1.MemcachedRestoreSpec) bool) []reconcile.Request {
	var restores v1alpha1.MemcachedRestoreList
	if err := r.Client.List(ctx, &restores, client.InNamespace(o.GetNamespace()), index.By(of, o.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // from the cache, which does not fail
	}
	var all []reconcile.Request
	for i := range restores.Items {
		if restore := &restores.Items[i]; are(restore.Spec) && restore.Status.JobUID == "" && !snapshotjob.HasEnded(restore.Status.RunStatus) {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(restore)})
		}
	}
	return all
}

// Reconcile brings one restore closer to its end. It returns an error when it is
// worth trying again.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	restore := &v1alpha1.MemcachedRestore{}
	if err := r.Client.Get(ctx, request.NamespacedName, restore); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if restore.DeletionTimestamp != nil { // the garbage collector ends what it has
		return ctrl.Result{}, nil
	}
	seen, err := r.observe(ctx, restore)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing: %w", err)
	}
	return r.apply(ctx, seen, makePlan(seen))
}

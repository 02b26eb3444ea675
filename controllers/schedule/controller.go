package schedule

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

// concurrency is how many schedules are reconciled at once. A reconcile makes a few short requests.
const concurrency = 4

// Reconciler runs MemcachedScheduledBackups.
type Reconciler struct {
	Client    client.Client // reads from the cache
	APIReader client.Reader
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
}

// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedscheduledbackups,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedscheduledbackups/status,verbs=patch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedbackups,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller to the manager. A backup triggers its schedule.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("schedule").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		For(&v1alpha1.MemcachedScheduledBackup{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.MemcachedBackup{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			name := o.GetLabels()[v1alpha1.LabelSchedule]
			if name == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
		})).
		Complete(r)
}

// Reconcile creates the backup that is due of one schedule, and deletes those that its
// retention doesn't keep.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s := &v1alpha1.MemcachedScheduledBackup{}
	if err := r.Client.Get(ctx, request.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if s.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	backups, err := r.backupsOf(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.apply(ctx, s, makePlan(s, backups, r.Clock.Now()))
}

func (r *Reconciler) backupsOf(ctx context.Context, s *v1alpha1.MemcachedScheduledBackup) ([]v1alpha1.MemcachedBackup, error) {
	var all v1alpha1.MemcachedBackupList
	if err := r.Client.List(ctx, &all, client.InNamespace(s.Namespace),
		client.MatchingLabels{v1alpha1.LabelSchedule: s.Name}, client.MatchingFields{index.Schedule: s.Name}); err != nil {
		return nil, fmt.Errorf("listing backups: %w", err)
	}
	var own []v1alpha1.MemcachedBackup
	for i := range all.Items {
		if belongsTo(&all.Items[i], s.Name) {
			own = append(own, all.Items[i])
		}
	}
	return own, nil
}

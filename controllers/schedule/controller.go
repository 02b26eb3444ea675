package schedule

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/enqueue"
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
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller to the manager. A backup triggers its schedule.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("schedule").
		WithOptions(apiserver.ControllerOptions(concurrency)).
		Watches(&v1beta1.MemcachedScheduledBackup{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1beta1.MemcachedBackup{}, enqueue.Named(func(o client.Object) string { return o.GetLabels()[v1beta1.LabelSchedule] })).
		Complete(r)
}

// Reconcile creates the backup that is due of one schedule, and deletes those that its
// retention doesn't keep. The status is last: the name of a backup shows a run that the status does not contain yet.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s := &v1beta1.MemcachedScheduledBackup{}
	if err := r.Client.Get(ctx, request.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if s.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	obs, err := observer{r.Client, r.Clock}.observe(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := makePlan(obs)
	if p.actions.startRun() {
		// A status from the cache may not contain the run yet, and its backup may have been deleted.
		if err := apiserver.EnsureFresh(ctx, r.APIReader, s); err != nil {
			return apiserver.Result(0, err)
		}
	}
	rejection, err := writer{r.Client}.apply(ctx, p.actions)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case apiserver.IsTerminating(rejection):
		return ctrl.Result{}, nil
	case rejection != nil:
		p = p.retried(obs, rejection)
	}
	if err := r.report(ctx, s, p); err != nil {
		return apiserver.Result(0, err)
	}
	return ctrl.Result{RequeueAfter: p.requeueAfter}, nil
}

// report writes the status, and then logs and records the events.
func (r *Reconciler) report(ctx context.Context, s *v1beta1.MemcachedScheduledBackup, p plan) error {
	was := readyCondition(s.Status)
	if _, err := apiserver.WriteStatus(ctx, r.Client, s, s.Status, p.status, func() { s.Status = p.status }); err != nil {
		return err
	}
	if is := readyCondition(p.status); is != nil && len(p.events) == 0 && (was == nil || was.Reason != is.Reason) {
		log.FromContext(ctx).Info("Updated the schedule", "reason", is.Reason, "message", is.Message)
	}
	for _, e := range p.events {
		r.Recorder.Eventf(s, nil, e.Type, e.Reason, "Reconcile", "%s", e.Message)
		log.FromContext(ctx).Info(e.Message, "reason", e.Reason)
	}
	return nil
}

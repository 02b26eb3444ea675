// Package upgradeable reports to the Operator Lifecycle Manager whether it may replace
// the operator now: not while a Memcached is being changed. A Memcached that requires
// manual intervention blocks nothing, as a newer operator may be the fix, and neither does
// a backup or a restore, whose Job continues without an operator. Nothing blocks forever.
package upgradeable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	operatorconditions "github.com/operator-framework/operator-lib/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/enqueue"
)

const (
	// nameVariable is set by OLM, and only by it, to the name of the OperatorCondition.
	nameVariable = "OPERATOR_CONDITION_NAME"
	// debounce is how long changes are collected: a thousand Memcacheds that change at
	// once are one reconcile, not a thousand that each list a thousand.
	debounce = time.Second
	// maxBlock is how long the changes of one Memcached block an upgrade, and how long those of all do.
	maxBlock = 30 * time.Minute
)

// Reasons of the condition Upgradeable.
const (
	reasonMemcachedsChanging = "MemcachedsChanging"
	reasonMemcachedsUpToDate = "MemcachedsUpToDate"
	reasonChangesTakeTooLong = "ChangesTakeTooLong"
)

// Reconciler writes the condition Upgradeable of the OperatorCondition.
type Reconciler struct {
	// Client reads Memcacheds.
	Client client.Reader
	// Condition is Upgradeable of the operator's own OperatorCondition.
	Condition operatorconditions.Condition
	// Clock is the time source.
	Clock clock.PassiveClock

	// current is the condition as it was last read or written; nil before that.
	current *metav1.Condition
	ready   atomic.Bool
}

// SetupWithManager adds the controller to the manager, which is ready only after the
// first report. Without OLM it does nothing.
func SetupWithManager(mgr ctrl.Manager, clock clock.PassiveClock) error {
	if os.Getenv(nameVariable) == "" {
		return nil
	}
	scheme := runtime.NewScheme()
	if err := operatorsv2.AddToScheme(scheme); err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	// Without a cache: OLM grants this one name, and a cache would list them all.
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: scheme, HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("creating a client for the OperatorCondition: %w", err)
	}
	condition, err := operatorconditions.InClusterFactory{Client: direct}.NewCondition(operatorsv2.ConditionType(operatorsv2.Upgradeable))
	if err != nil {
		return err
	}
	r := &Reconciler{Client: mgr.GetClient(), Condition: condition, Clock: clock}
	if err := mgr.AddReadyzCheck("upgradeable", r.Ready); err != nil {
		return err
	}
	debounced := enqueue.Delayed(handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	}), debounce, 0)
	options := apiserver.ControllerOptions(1)
	options.NeedLeaderElection = new(false) // in an upgrade the new operator is ready before the old one releases the lease
	return ctrl.NewControllerManagedBy(mgr).
		Named("upgradeable").
		WithOptions(options).
		Watches(&v1beta1.Memcached{}, debounced, builder.WithPredicates(relevantChange())).
		// There may be no Memcached at first.
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(reconcile.Request{})
			return nil
		})).
		Complete(r)
}

func relevantChange() predicate.Predicate {
	isChanging := func(o client.Object) bool {
		m, ok := o.(*v1beta1.Memcached)
		return ok && isChanging(m)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isChanging(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isChanging(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return isChanging(e.ObjectOld) != isChanging(e.ObjectNew) },
	}
}

// Ready waits until the condition was reported once. Every failed probe is an event of
// the operator's pod, and the first one comes before the caches are filled.
func (r *Reconciler) Ready(probe *http.Request) error {
	reported := func(context.Context) (bool, error) { return r.ready.Load(), nil }
	if err := wait.PollUntilContextCancel(probe.Context(), 50*time.Millisecond, true, reported); err != nil {
		return errors.New("the OperatorCondition is not written yet")
	}
	return nil
}

// Reconcile writes the condition if it differs from what the Memcacheds amount to.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var memcacheds v1beta1.MemcachedList
	if err := r.Client.List(ctx, &memcacheds, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Memcacheds: %w", err)
	}
	if r.current == nil {
		if current, err := r.Condition.Get(ctx); err == nil {
			r.current = current
		}
	}
	want, recheck := upgradeable(memcacheds.Items, r.current, r.Clock.Now())
	if c := r.current; c != nil && c.Status == want.Status && c.Reason == want.Reason && c.Message == want.Message {
		r.ready.Store(true)
		return ctrl.Result{RequeueAfter: recheck}, nil
	}
	err := r.Condition.Set(ctx, want.Status, operatorconditions.WithReason(want.Reason), operatorconditions.WithMessage(want.Message))
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		// OLM was removed, or has not created it yet. The operator must run all the same.
		log.FromContext(ctx).Info("The OperatorCondition is missing", "error", err.Error())
		r.ready.Store(true)
		return ctrl.Result{RequeueAfter: apiserver.RejectionRecheck}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("writing the OperatorCondition: %w", err)
	}
	log.FromContext(ctx).Info("Updated the OperatorCondition", "upgradeable", want.Status, "reason", want.Reason, "message", want.Message)
	r.current = &want
	r.ready.Store(true)
	return ctrl.Result{RequeueAfter: recheck}, nil
}

// upgradeable returns the condition that follows the current one, which may be nil, and when
// it changes without an event; 0 is never.
func upgradeable(memcacheds []v1beta1.Memcached, current *metav1.Condition, now time.Time) (metav1.Condition, time.Duration) {
	var (
		changing []string
		recheck  time.Duration
	)
	for i := range memcacheds {
		m := &memcacheds[i]
		left := maxBlock - now.Sub(changingSince(m))
		if !isChanging(m) || left <= 0 {
			continue
		}
		changing = append(changing, m.Namespace+"/"+m.Name)
		if recheck == 0 || left < recheck {
			recheck = left
		}
	}
	c := metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonMemcachedsUpToDate, Message: "no Memcached is being changed", LastTransitionTime: metav1.NewTime(now)}
	if len(changing) == 0 {
		return c, 0
	}
	if current != nil && current.Status == metav1.ConditionFalse {
		c.LastTransitionTime = current.LastTransitionTime
		recheck = min(recheck, maxBlock-now.Sub(c.LastTransitionTime.Time))
	}
	if recheck <= 0 || current != nil && current.Reason == reasonChangesTakeTooLong {
		c.Reason, c.Message = reasonChangesTakeTooLong, fmt.Sprintf("Memcacheds have been changing for %s, and no longer block an upgrade", maxBlock)
		return c, 0
	}
	slices.Sort(changing)
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonMemcachedsChanging, summarize(changing)
	return c, recheck
}

func summarize(names []string) string {
	if more := len(names) - 1; more > 0 {
		return fmt.Sprintf("Memcached %s and %d more are being changed", names[0], more)
	}
	return fmt.Sprintf("Memcached %s is being changed", names[0])
}

// isChanging reports whether the operator is changing a Memcached. Between a change of the
// spec and the first status after it, nothing has been done that two releases could share.
func isChanging(m *v1beta1.Memcached) bool {
	switch {
	case m.DeletionTimestamp != nil: // that is up to the garbage collector
		return false
	case m.Spec.Paused:
		return false
	}
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1beta1.ConditionProgressing) &&
		!meta.IsStatusConditionTrue(m.Status.Conditions, v1beta1.ConditionDegraded)
}

// changingSince returns when a Memcached that is changing began to.
func changingSince(m *v1beta1.Memcached) time.Time {
	c := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionProgressing)
	if c == nil {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}

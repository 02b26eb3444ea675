// Package upgradeable tells the Operator Lifecycle Manager whether it may replace
// the operator now: not while a Memcached is being changed, or a backup or restore
// runs. A Memcached that waits for a person holds nothing back, as a newer operator
// may be the cure.
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
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

const (
	// nameVariable is set by OLM, and by nobody else, to the OperatorCondition.
	nameVariable = "OPERATOR_CONDITION_NAME"
	// lookAgain is how soon an OperatorCondition that is not there is looked for.
	lookAgain = 30 * time.Second
	// gathers is how long changes are gathered before all is looked at: a thousand
	// Memcacheds that change at once are one look, not a thousand looks at a thousand.
	gathers = time.Second
)

// Reasons of the condition Upgradeable.
const (
	ReasonMemcachedsChanging = "MemcachedsChanging"
	ReasonMemcachedsSettled  = "MemcachedsSettled"
	ReasonSnapshotsRun       = "BackupsOrRestoresRun"
)

// Reconciler keeps the OperatorCondition's Upgradeable.
type Reconciler struct {
	// Client reads Memcacheds, backups and restores.
	Client client.Reader
	// Condition is Upgradeable of the operator's own OperatorCondition.
	Condition operatorconditions.Condition

	told atomic.Bool
}

// SetupWithManager has the manager tell OLM, and be ready only after it did for
// the first time. Where OLM did not install the operator it does nothing.
func SetupWithManager(mgr ctrl.Manager) error {
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
		return fmt.Errorf("making a client for the OperatorCondition: %w", err)
	}
	condition, err := operatorconditions.InClusterFactory{Client: direct}.NewCondition(operatorsv2.ConditionType(operatorsv2.Upgradeable))
	if err != nil {
		return err
	}
	r := &Reconciler{Client: mgr.GetClient(), Condition: condition}
	if err := mgr.AddReadyzCheck("upgradeable", r.Told); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("upgradeable").
		// The new operator is ready, and the old one ended, before the lease changes hands.
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		Watches(&v1alpha1.Memcached{}, soon(), builder.WithPredicates(news())).
		Watches(&v1alpha1.MemcachedBackup{}, soon(), builder.WithPredicates(news())).
		Watches(&v1alpha1.MemcachedRestore{}, soon(), builder.WithPredicates(news())).
		// There may be no Memcached to begin with.
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(reconcile.Request{})
			return nil
		})).
		Complete(r)
}

// news lets those changes through that may change the condition, and what the cache
// tells again without a change.
func news() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isAtWork(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isAtWork(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return isAtWork(e.ObjectOld) != isAtWork(e.ObjectNew) || e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
		},
	}
}

// soon has all be looked at once, after changes were gathered for a while.
func soon() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(q queue) { q.AddAfter(reconcile.Request{}, gathers) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { add(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { add(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { add(q) },
	}
}

// Told returns an error until OLM was told once whether it may replace the
// operator.
func (r *Reconciler) Told(*http.Request) error {
	if !r.told.Load() {
		return errors.New("the OperatorCondition is not written yet")
	}
	return nil
}

// Reconcile writes the condition if it is not what there is gives.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var (
		memcacheds v1alpha1.MemcachedList
		backups    v1alpha1.MemcachedBackupList
		restores   v1alpha1.MemcachedRestoreList
	)
	for _, list := range []client.ObjectList{&memcacheds, &backups, &restores} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return ctrl.Result{}, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	want := upgradeable(memcacheds.Items, backups.Items, restores.Items)
	if now, err := r.Condition.Get(ctx); err == nil && now.Status == want.Status && now.Reason == want.Reason && now.Message == want.Message {
		r.told.Store(true)
		return ctrl.Result{}, nil
	}
	err := r.Condition.Set(ctx, want.Status, operatorconditions.WithReason(want.Reason), operatorconditions.WithMessage(want.Message))
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		// OLM is gone, or not that far yet. Memcacheds need the operator all the same.
		log.FromContext(ctx).Info("There is no OperatorCondition to tell OLM by.", "error", err.Error())
		r.told.Store(true)
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("writing the OperatorCondition: %w", err)
	}
	r.told.Store(true)
	return ctrl.Result{}, nil
}

// upgradeable returns the condition that these give.
func upgradeable(memcacheds []v1alpha1.Memcached, backups []v1alpha1.MemcachedBackup, restores []v1alpha1.MemcachedRestore) metav1.Condition {
	var changing, running []string
	for i := range memcacheds {
		if m := &memcacheds[i]; isChanging(m) {
			changing = append(changing, "Memcached "+m.Namespace+"/"+m.Name)
		}
	}
	for i := range backups {
		if b := &backups[i]; runs(b, b.Status.RunStatus) {
			running = append(running, "MemcachedBackup "+b.Namespace+"/"+b.Name)
		}
	}
	for i := range restores {
		if s := &restores[i]; runs(s, s.Status.RunStatus) {
			running = append(running, "MemcachedRestore "+s.Namespace+"/"+s.Name)
		}
	}
	switch {
	case len(changing) > 0:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonMemcachedsChanging, Message: "being changed: " + first(changing)}
	case len(running) > 0:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonSnapshotsRun, Message: "running: " + first(running)}
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonMemcachedsSettled, Message: "no Memcached is being changed, and no backup or restore runs"}
}

// first returns the first name, in order, and how many more there are.
func first(names []string) string {
	slices.Sort(names)
	if more := len(names) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", names[0], more)
	}
	return names[0]
}

// isAtWork says whether the operator is at work on a Memcached, a backup or a restore.
func isAtWork(o client.Object) bool {
	switch o := o.(type) {
	case *v1alpha1.Memcached:
		return isChanging(o)
	case *v1alpha1.MemcachedBackup:
		return runs(o, o.Status.RunStatus)
	case *v1alpha1.MemcachedRestore:
		return runs(o, o.Status.RunStatus)
	default:
		return false
	}
}

// runs says whether the operator is at work on a backup or a restore.
func runs(o client.Object, s v1alpha1.RunStatus) bool {
	return o.GetDeletionTimestamp() == nil && s.Phase == v1alpha1.RunRunning
}

// isChanging says whether the operator is at work on a Memcached.
func isChanging(m *v1alpha1.Memcached) bool {
	switch {
	case m.DeletionTimestamp != nil: // the garbage collector's work
		return false
	case m.Spec.Paused:
		return false
	case m.Status.ObservedGeneration != m.Generation:
		return true
	}
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionProgressing) &&
		!meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDegraded)
}

package transfer

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
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
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/podquery"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/index"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// concurrency is how many transfers of a kind are reconciled at once. A reconcile waits
// for the API server.
const concurrency = 16

// Engine reconciles one kind of transfer.
type Engine struct {
	Client    client.Client // reads from the cache
	APIReader client.Reader
	// Progress reads the progress of a Job from its pod.
	Progress ProgressClient
	// Queries lets slow pods answer outside of a reconcile; nil waits for them.
	Queries  *podquery.Queries[snapshotwire.Progress]
	Recorder events.EventRecorder
	Options  Options
	Clock    clock.PassiveClock
}

// Planner reads what only one kind of transfer needs, and returns its plan.
type Planner func(context.Context, Observation) (Plan, error)

// NewController returns a builder of a controller for the kind of the object. Changes
// of the status do not trigger it, as the progress changes all the time.
func (e *Engine) NewController(mgr ctrl.Manager, object client.Object, list client.ObjectList) *builder.Builder {
	t := transferOf(object)
	byAnnotation := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		name, ok := strings.CutPrefix(o.GetAnnotations()[annotations.TransferOf], t.kind+"/")
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named(string(t.prefix)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		For(object, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&batchv1.Job{}, byAnnotation).
		Watches(&corev1.Pod{}, byAnnotation).
		Watches(&v1alpha1.Memcached{}, e.EnqueueWaiting(list, index.Memcached, client.Object.GetName))
}

// EnqueueWaiting enqueues the transfers of the list's kind that have no Job yet and that
// an index has under a name that the changed object contains.
func (e *Engine) EnqueueWaiting(list client.ObjectList, field string, nameOf func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, changed client.Object) (requests []reconcile.Request) {
		all := list.DeepCopyObject().(client.ObjectList)
		if err := e.Client.List(ctx, all, client.InNamespace(changed.GetNamespace()),
			client.MatchingFields{field: nameOf(changed)}, client.UnsafeDisableDeepCopy); err != nil {
			return nil // from the cache, which does not fail
		}
		_ = meta.EachListItem(all, func(item runtime.Object) error {
			o := item.(client.Object)
			if s := transferOf(o).status; s.JobUID == "" && !s.IsFinished() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
		return requests
	})
}

// Run reconciles one transfer. A change of the phase, a change of the finalizers or a
// rejection by the API server is followed by another plan at once.
func (e *Engine) Run(ctx context.Context, request ctrl.Request, object client.Object, plan Planner) (ctrl.Result, error) {
	if err := e.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var rejection error
	for {
		obs, err := e.observe(ctx, object)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("observing: %w", err)
		}
		obs.Rejection = rejection
		p, err := plan(ctx, obs)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("planning: %w", err)
		}
		again, err := e.apply(ctx, obs, p)
		object = p.Object
		switch {
		case apiserver.IsRejected(err) && rejection == nil:
			rejection = err
		case err != nil || !again:
			return apiserver.Result(p.RequeueAfter, err)
		}
	}
}

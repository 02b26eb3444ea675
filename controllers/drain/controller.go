package drain

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

// Reconciler requests that the shards of a node move.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Recorder of events.
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch

// SetupWithManager registers the reconciler for nodes whose future changes, and for those that host a pod of a Memcached
// whose spec changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("drain").
		WithOptions(apiserver.ControllerOptions(1)).
		For(&corev1.Node{}, builder.WithPredicates(predicate.Funcs{
			UpdateFunc:  changes,
			DeleteFunc:  func(event.DeleteEvent) bool { return false },
			GenericFunc: func(event.GenericEvent) bool { return false },
		})).
		Watches(&v1beta1.Memcached{}, handler.EnqueueRequestsFromMapFunc(r.nodesOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

func changes(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
	return was.Spec.Unschedulable != is.Spec.Unschedulable || !sameTaints(was.Spec.Taints, is.Spec.Taints)
}

// nodesOf requests the nodes of a Memcached's pods.
func (r *Reconciler) nodesOf(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(o.GetNamespace()), client.MatchingFields{index.Instance: o.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache of a kind that it contains has no errors
	}
	seen := map[string]bool{"": true}
	for _, pod := range pods.Items {
		if name := pod.Spec.NodeName; !seen[name] {
			seen[name] = true
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
		}
	}
	return requests
}

// Reconcile requests the moves of a node's shards, or withdraws the requests.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	obs, err := observer{r.Client}.observe(ctx, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	var all []error
	stale := false
	for _, m := range makePlan(obs) {
		switch err := (writer{r.Client}).apply(ctx, m); {
		case errors.Is(err, apiserver.ErrStale):
			stale = true
		case err != nil:
			all = append(all, err)
		case m.event != nil:
			r.Recorder.Eventf(m.pod.memcached, m.pod.Pod, m.event.Type, m.event.Reason, "Move", "%s", m.event.Message)
		}
	}
	if err := errors.Join(all...); err != nil || !stale {
		return ctrl.Result{}, err
	}
	return apiserver.Result(0, apiserver.ErrStale)
}

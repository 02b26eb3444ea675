package monitoring

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/enqueue"
)

const (
	// debounce is how long the changes of a namespace are collected.
	debounce = time.Second
	// recheck is how often the controller asks which CRDs exist.
	recheck = 3 * time.Minute
	// absentVersion is the resource version that no object has: a write with it only creates.
	absentVersion = "1"
)

// Reconciler creates the objects of a namespace, or of the operator.
type Reconciler struct {
	// Client reads Memcacheds.
	Client client.Reader
	// Objects reads and writes the objects, whose types the operator doesn't know.
	Objects dynamic.Interface
	// Options of the objects.
	Options Options

	kinds *kinds
}

// The rights in the operator's namespace, for its ServiceMonitor and the dashboards, are in
// config/rbac/monitoring_role.yaml.
//
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors;prometheusrules,verbs=get;list;watch;create;patch;delete

// SetupWithManager adds the controller to the manager. namespaces are those of the manager's cache;
// none is all.
func SetupWithManager(mgr ctrl.Manager, o Options, namespaces []string) error {
	objects, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("creating a client of the monitoring objects: %w", err)
	}
	watches, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("creating a client that watches the monitoring objects: %w", err)
	}
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("creating a client of the API's discovery: %w", err)
	}
	r := &Reconciler{Client: mgr.GetClient(), Objects: objects, Options: o}
	r.kinds = newKinds(api, watches, namespaces, recheck, r.namespaces)
	if err := mgr.Add(manager.RunnableFunc(r.kinds.run)); err != nil {
		return err
	}
	byNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace()}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("monitoring").
		WithOptions(apiserver.ControllerOptions(2)).
		Watches(&v1beta1.Memcached{}, enqueue.Delayed(byNamespace, debounce, 0), builder.WithPredicates(relevantChange())).
		WatchesRawSource(source.Channel(r.kinds.changes, byNamespace)).
		Complete(r)
}

// namespaces returns those that have a Memcached.
func (r *Reconciler) namespaces(ctx context.Context) (sets.Set[string], error) {
	var memcacheds v1beta1.MemcachedList
	if err := r.Client.List(ctx, &memcacheds, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Memcacheds: %w", err)
	}
	all := sets.New[string]()
	for i := range memcacheds.Items {
		all.Insert(memcacheds.Items[i].Namespace)
	}
	return all, nil
}

// relevantChange selects the changes of a Memcached that its namespace's objects depend on.
func relevantChange() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*v1beta1.Memcached)
		is, alsoOK := e.ObjectNew.(*v1beta1.Memcached)
		return ok && alsoOK && !apiequality.Semantic.DeepEqual(was.Spec.Monitoring, is.Spec.Monitoring)
	}}
}

// Reconcile applies or deletes the objects of a namespace, or those of the operator if the request
// names no namespace.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	targets := r.Options.operatorTargets()
	if request.Namespace != "" {
		var memcacheds v1beta1.MemcachedList
		if err := r.Client.List(ctx, &memcacheds, client.InNamespace(request.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return ctrl.Result{}, fmt.Errorf("listing Memcacheds: %w", err)
		}
		targets = r.Options.shardTargets(request.Namespace, memcacheds.Items)
	}
	var (
		all    []error // one that is rejected delays no other
		result ctrl.Result
	)
	for _, t := range targets {
		if !r.kinds.has(t.kind) {
			continue
		}
		switch err := r.ensure(ctx, t); {
		case errors.Is(err, errNotServed):
			r.kinds.discoverSoon()
			result.RequeueAfter = debounce // until the CRD is served, or known to be deleted
		case err != nil:
			all = append(all, fmt.Errorf("%s %s/%s: %w", t.kind.name, t.namespace, t.name, err))
		}
	}
	return result, errors.Join(all...)
}

// errNotServed is the error of a write of a kind whose CRD was deleted, or isn't served yet.
var errNotServed = errors.New("the API server doesn't serve the CRD")

// ensure applies an object with no more writes than necessary. An object of others
// stays as it is.
func (r *Reconciler) ensure(ctx context.Context, t target) error {
	objects := r.Objects.Resource(t.kind.resource).Namespace(t.namespace)
	live, err := objects.Get(ctx, t.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && t.object == nil:
		return nil
	case apierrors.IsNotFound(err):
		t.object.SetResourceVersion(absentVersion)
	case err != nil:
		return err
	case live.GetLabels()[v1beta1.LabelManagedBy] != v1beta1.ManagedByValue:
		if t.object != nil {
			log.FromContext(ctx).Info("An object that the operator doesn't manage has the name of one that it would create. Rename or delete it, "+
				"or set its label "+v1beta1.LabelManagedBy+" to "+v1beta1.ManagedByValue, "kind", t.kind.name, "name", t.name)
		}
		return nil
	case live.GetDeletionTimestamp() != nil:
		return nil
	case t.object == nil:
		log.FromContext(ctx).Info("Deleting an object of the monitoring", "kind", t.kind.name, "name", t.name)
		uid := live.GetUID()
		return client.IgnoreNotFound(objects.Delete(ctx, t.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
	case contains(live.Object, t.object.Object):
		return nil
	default:
		t.object.SetUID(live.GetUID())
	}
	log.FromContext(ctx).Info("Applying an object of the monitoring", "kind", t.kind.name, "name", t.name)
	_, err = objects.Apply(ctx, t.name, t.object, metav1.ApplyOptions{FieldManager: v1beta1.ManagedByValue, Force: true})
	if apiserver.IsTerminating(err) {
		return nil
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && apierrors.IsNotFound(err) && !isNamespace(status) {
		return errNotServed
	}
	return err
}

// isNamespace reports whether an error is about a namespace.
func isNamespace(s apierrors.APIStatus) bool {
	return s.Status().Details != nil && s.Status().Details.Kind == "namespaces"
}

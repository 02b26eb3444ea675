package memcached

import (
	"context"
	"fmt"
	"slices"

	"github.com/operator-framework/operator-lib/handler"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/internal/platform"
)

// concurrency is how many Memcacheds are reconciled at once. A reconcile computes
// for less than a millisecond and waits for the API server for tens of those, or two
// seconds for an agent that does not answer: 16 have the API server, not the operator,
// be what a thousand Memcacheds wait for.
const concurrency = 16

// Reconciler brings about what Memcacheds ask for.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server, for names that the cache does not hold: it
	// holds the operator's own objects only.
	Live client.Reader
	// Agents answers for shards.
	Agents Agents
	// Recorder of events.
	Recorder events.EventRecorder
	// Options for the objects that are made.
	Options manifests.Options
	// Clock tells the time.
	Clock clock.PassiveClock

	memo memo
}

// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedrestores,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedbackups,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager has the manager call the reconciler whenever a Memcached,
// anything that bears its label, or a restore or backup of it changes. The label and not the owner leads back,
// so that an object without its owner, or left by a deleted Memcached of the same
// name, is seen too. Changes of the status count: a reconcile may have compared
// with a status older than the one it wrote last, and this calls it once more.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	var err error
	if r.Options.AnyUser, err = platform.IsOpenShift(mgr.GetRESTMapper()); err != nil {
		return err
	}
	if r.Options.CanResize, err = canResize(mgr.GetConfig()); err != nil {
		return err
	}
	byLabel := ctrlhandler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		name := o.GetLabels()[v1alpha1.LabelInstance]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
	})
	byMemcached := ctrlhandler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: memcachedOf(o)}}}
	})
	b := ctrl.NewControllerManagedBy(mgr).
		Named("memcached").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Watches(&v1alpha1.Memcached{}, &handler.InstrumentedEnqueueRequestForObject[client.Object]{}).
		Watches(&corev1.Pod{}, urgently(byLabel)).
		Watches(&v1alpha1.MemcachedRestore{}, byMemcached).
		Watches(&v1alpha1.MemcachedBackup{}, byMemcached)
	for _, kind := range ownedKinds() {
		b = b.Watches(kind, gathered(byLabel))
	}
	return b.Complete(r)
}

// canResize says whether the API server takes a running pod's resources.
func canResize(config *rest.Config) (bool, error) {
	core, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, err
	}
	resources, err := core.ServerResourcesForGroupVersion(corev1.SchemeGroupVersion.String())
	if err != nil {
		return false, fmt.Errorf("asking whether pods can be resized: %w", err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/"+subresourceResize }), nil
}

// Reconcile brings one Memcached closer to what it asks for. It returns an error
// when it is worth trying again.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	m := &v1alpha1.Memcached{}
	if err := r.Client.Get(ctx, request.NamespacedName, m); err != nil {
		r.memo.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	known := r.memo.of(request.NamespacedName)
	if known.isOld(m, r.Clock.Now()) {
		return ctrl.Result{RequeueAfter: lookAtOnce}, nil
	}
	seen, err := r.observe(ctx, m)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing: %w", err)
	}
	version := m.ResourceVersion
	seen.found = known.found
	plan := makePlan(seen, r.Options)
	applied := r.apply(ctx, plan)
	if applied.isOver {
		return ctrl.Result{}, nil
	}
	next := makeStatus(seen, plan, applied, r.Clock.Now())
	if wait := gather(seen, plan, applied, next); wait > 0 {
		plan.lookAfter(wait)
	} else if outrun, err := r.writeStatus(ctx, m, next, plan.rewarmEvents(applied)...); err != nil {
		return ctrl.Result{}, err
	} else if outrun { // the watch tells, mostly
		plan.lookAfter(askAgain)
	}
	if known.found = plan.found; m.ResourceVersion != version {
		known.old, known.oldAt = version, r.Clock.Now()
	}
	r.memo.note(request.NamespacedName, known)
	if applied.outrun {
		plan.lookAfter(lookAtOnce)
	}
	return ctrl.Result{RequeueAfter: plan.requeueAfter}, applied.retry()
}

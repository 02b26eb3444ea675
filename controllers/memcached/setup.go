package memcached

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/enqueue"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

// concurrency is how many Memcacheds are reconciled at once. A reconcile computes for less
// than a millisecond and waits tens of milliseconds for the API server. With 16, a thousand
// Memcacheds wait for the API server and not for the operator (docs/bench-scale.md).
const concurrency = 16

// ownedEventDelay is how long events of owned objects are batched. Nearly all are caused by
// the operator's own writes and by the counts that a ReplicaSet maintains: a dozen for each new
// Memcached within a second. Changes by others are corrected that much later.
const ownedEventDelay = 200 * time.Millisecond

// podEventPriority is the priority of events of pods. A shard that is lost, or being updated,
// doesn't wait for thousands of new Memcacheds (ADR 13).
const podEventPriority = 1

// podEventDelay is how long events of pods are batched. A kubelet writes a pod's status several times within this time, and
// the pod's ReplicaSet counts it: without the delay, most patches of a ReplicaSet during an update came before that, and were
// rejected.
const podEventDelay = 100 * time.Millisecond

// Reconciler applies the specs of Memcacheds.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// APIReader reads from the API server, for names that the cache doesn't contain: it
	// contains only the operator's own objects.
	APIReader client.Reader
	// AgentClient queries the shards' agents.
	AgentClient AgentClient
	// AgentWait bounds how long a reconcile waits for agents in total; 0 does not.
	AgentWait time.Duration
	// Recorder of events.
	Recorder events.EventRecorder
	// Options of the objects that the operator creates.
	Options resources.Options
	// DefaultImageUpdates is how many Memcacheds follow another default image at a time.
	DefaultImageUpdates int
	// Clock is the time source.
	Clock clock.PassiveClock

	memories memories
}

// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedrestores,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=cache.memcached-operator.io,resources=memcachedbackups,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the reconciler for changes of a Memcached, of everything with
// its label, and of its restores and backups. Objects are mapped by label and not by owner,
// so that an object without its owner, or one left by a deleted Memcached of the same name,
// counts too. Changes of the status that enqueue.SaysMore selects count: a reconcile may have compared with an older status
// than the one that the operator wrote last.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	api, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return err
	}
	if r.Options.Resizing, err = Resizing(api); err != nil {
		return err
	}
	byMemcached := enqueue.Named(transferTarget)
	b := ctrl.NewControllerManagedBy(mgr).
		Named("memcached").
		WithOptions(apiserver.ControllerOptions(concurrency)).
		For(&v1beta1.Memcached{}, builder.WithPredicates(enqueue.SaysMore)).
		Watches(&corev1.Pod{}, podEvents()).
		Watches(&v1beta1.MemcachedRestore{}, byMemcached).
		Watches(&v1beta1.MemcachedBackup{}, byMemcached).
		Watches(&policyv1.PodDisruptionBudget{}, enqueue.Delayed(handler.EnqueueRequestsFromMapFunc(r.besideBudget), ownedEventDelay, 0),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: selectsOthers}))
	for _, kind := range resources.OwnedKinds() {
		b = b.Watches(kind.New(), enqueue.Delayed(enqueue.Named(instance), ownedEventDelay, 0))
	}
	return b.Complete(r)
}

// podEvents requests the Memcached of a pod before those that wait already.
func podEvents() handler.EventHandler {
	return enqueue.Delayed(enqueue.Named(instance), podEventDelay, podEventPriority)
}

// instance returns the name of the Memcached that an object with the operator's label belongs to.
func instance(o client.Object) string {
	if o.GetLabels()[v1beta1.LabelManagedBy] != v1beta1.ManagedByValue { // a PodDisruptionBudget of others
		return ""
	}
	return o.GetLabels()[v1beta1.LabelInstance]
}

// besideBudget requests the Memcacheds of the namespace of a PodDisruptionBudget that none of them controls. It may select their pods.
func (r *Reconciler) besideBudget(ctx context.Context, budget client.Object) (requests []reconcile.Request) {
	var memcacheds v1beta1.MemcachedList
	if !index.IsForeign(budget) || r.Client.List(ctx, &memcacheds, client.InNamespace(budget.GetNamespace()), client.UnsafeDisableDeepCopy) != nil {
		return nil // the cache of a kind that it contains has no errors
	}
	for i := range memcacheds.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&memcacheds.Items[i])})
	}
	return requests
}

// selectsOthers reports whether the selector of a PodDisruptionBudget has changed. Its status changes with each pod.
func selectsOthers(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*policyv1.PodDisruptionBudget), e.ObjectNew.(*policyv1.PodDisruptionBudget)
	return !equality.Semantic.DeepEqual(was.Spec.Selector, is.Spec.Selector)
}

// transferTarget returns the name of the Memcached of a restore or a backup.
func transferTarget(o client.Object) string {
	switch o := o.(type) {
	case *v1beta1.MemcachedRestore:
		return o.Spec.MemcachedRef.Name
	case *v1beta1.MemcachedBackup:
		return o.Spec.MemcachedRef.Name
	default:
		return ""
	}
}

// Resizing returns what the API server resizes of running pods.
func Resizing(api discovery.DiscoveryInterface) (resources.Resizing, error) {
	core, err := api.ServerResourcesForGroupVersion(corev1.SchemeGroupVersion.String())
	if err != nil {
		return resources.ResizeNothing, fmt.Errorf("discovering whether pods can be resized: %w", err)
	}
	if !slices.ContainsFunc(core.APIResources, func(a metav1.APIResource) bool { return a.Name == "pods/"+shard.ResizeSubresource }) {
		return resources.ResizeNothing, nil
	}
	info, err := api.ServerVersion()
	if err != nil {
		return resources.ResizeNothing, fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	if is, err := version.ParseGeneric(info.GitVersion); err == nil && is.LessThan(version.MajorMinor(1, 34)) {
		return resources.ResizeExceptLessMemory, nil
	}
	return resources.ResizeAll, nil
}

package scale

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// replicaSets replaces Kubernetes' controller of ReplicaSets, and its garbage collector for pods.
type replicaSets struct{ client.Client }

// StartReplicaSets starts it until ctx is done.
func StartReplicaSets(ctx context.Context, config *rest.Config) error {
	managed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1beta1.LabelManagedBy: v1beta1.ManagedByValue}), Transform: cache.TransformStripManagedFields()}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: managed, &appsv1.ReplicaSet{}: managed}},
	})
	if err != nil {
		return err
	}
	const controllerOf = "controller"
	err = errors.Join(
		manager.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, controllerOf, func(o client.Object) []string {
			return []string{ptr.Deref(metav1.GetControllerOf(o), metav1.OwnerReference{}).Name}
		}),
		ctrl.NewControllerManagedBy(manager).For(&appsv1.ReplicaSet{}).Owns(&corev1.Pod{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: workers, SkipNameValidation: new(true)}).
			Complete(reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
				return ctrl.Result{}, replicaSets{manager.GetClient()}.sync(ctx, request, client.MatchingFields{controllerOf: request.Name})
			})))
	if err != nil {
		return err
	}
	go func() { _ = manager.Start(ctx) }() // without a pod, nothing is ever ready
	return nil
}

// sync creates the pods of a ReplicaSet, with names that exist once, and deletes others.
func (r replicaSets) sync(ctx context.Context, request ctrl.Request, ofSet client.MatchingFields) error {
	set := &appsv1.ReplicaSet{}
	if err := r.Get(ctx, request.NamespacedName, set); client.IgnoreNotFound(err) != nil {
		return err
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(request.Namespace), ofSet); err != nil {
		return err
	}
	missing := int(ptr.Deref(set.Spec.Replicas, 0))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if set.UID != "" && metav1.IsControlledBy(pod, set) && missing > 0 {
			missing--
		} else if pod.DeletionTimestamp == nil {
			if err := client.IgnoreNotFound(r.Delete(ctx, pod)); err != nil {
				return err
			}
		}
	}
	for i := range missing {
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name = set.Namespace, fmt.Sprintf("%s-%s-%d", set.Name, set.UID[:5], len(pods.Items)+i)
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		if err := r.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

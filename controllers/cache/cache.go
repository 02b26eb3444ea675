// Package cache configures what the manager's cache contains.
package cache

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// Options returns what the manager's cache contains: of the kinds that the operator
// creates only its own objects, except for PodDisruptionBudgets, and of those only what it reads, in these
// namespaces, or in all if there are none.
func Options(namespaces ...string) crcache.Options {
	own := crcache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1beta1.LabelManagedBy: v1beta1.ManagedByValue})}
	options := crcache.Options{
		ByObject:         map[client.Object]crcache.ByObject{&corev1.Pod{}: own, &batchv1.Job{}: own},
		DefaultTransform: Transform,
		NewInformer: func(from toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return NewInformer(from, kind, resync, indexers, Transform)
		},
		// Reading a kind that isn't watched would cache all of its objects in the cluster,
		// such as Secrets.
		ReaderFailOnMissingInformer: true,
	}
	for _, kind := range resources.OwnedKinds() {
		if kind.Kind != resources.KindPodDisruptionBudget { // those of others may select a shard's pods
			options.ByObject[kind.New()] = own
		}
	}
	for _, name := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]crcache.Config{}
		}
		options.DefaultNamespaces[name] = crcache.Config{}
	}
	return options
}

// Transform trims an object before the cache stores it. Objects are written back as the difference
// of two copies, or their status alone, so nothing is lost.
func Transform(from any) (any, error) {
	o, ok := from.(client.Object)
	if !ok { // the tombstone of an object whose deletion the cache missed
		return from, nil
	}
	trim(o)
	trimMetadata(o)
	if sized, ok := o.(interface{ Size() int }); ok && sized.Size() > maxSize {
		reduce(o)
	}
	return o, nil
}

// keepsEntry reports whether the operator reads a managed fields entry: those of what it
// applied, of the resources that it set on a pod, and of a size that was written through /scale.
func keepsEntry(o client.Object, e metav1.ManagedFieldsEntry) bool {
	switch o.(type) {
	case *appsv1.ReplicaSet, *corev1.Service, *policyv1.PodDisruptionBudget, *networkingv1.NetworkPolicy:
		return e.Manager == v1beta1.ManagedByValue && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	case *corev1.Pod:
		return shard.IsOperatorResize(e)
	case *v1beta1.Memcached:
		return true // trim has left the one that is read
	default:
		return false
	}
}

// trim removes of an object what the operator doesn't read, such as most of its status. The CRDs bound the specs of the other custom
// resources than Memcacheds.
func trim(o client.Object) {
	switch o := o.(type) {
	case *v1beta1.Memcached:
		resources.ReduceSpec(o)
		o.ManagedFields = resources.ScaledBy(o)
	case *appsv1.ReplicaSet:
		// why it has no pod, and how many its controller knows
		o.Status = appsv1.ReplicaSetStatus{Conditions: o.Status.Conditions, Replicas: o.Status.Replicas}
		applied := appliedFields(o)
		o.Spec.Template.Labels = applied.only(o.Spec.Template.Labels)
		o.Spec.Template.Annotations = applied.only(o.Spec.Template.Annotations)
		sharePodSpec(&o.Spec.Template.Spec)
	case *corev1.Service:
		ingress := o.Status.LoadBalancer.Ingress
		o.Status = corev1.ServiceStatus{}
		if len(ingress) > 0 {
			o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ingress[0].IP, Hostname: ingress[0].Hostname}}
		}
	case *policyv1.PodDisruptionBudget:
		o.Status = policyv1.PodDisruptionBudgetStatus{}
		if o.Labels[v1beta1.LabelManagedBy] != v1beta1.ManagedByValue {
			*o = policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
				Spec:       policyv1.PodDisruptionBudgetSpec{Selector: o.Spec.Selector},
			}
		}
	case *batchv1.Job:
		o.Spec.Template = corev1.PodTemplateSpec{}
	case *corev1.Pod:
		trimPod(o)
	case *corev1.Node:
		o.Spec, o.Status = corev1.NodeSpec{Unschedulable: o.Spec.Unschedulable, Taints: o.Spec.Taints}, corev1.NodeStatus{}
	}
}

// trimPod keeps of a pod's spec where it runs, what its containers run with, and what a
// preflight pod on its node copies.
func trimPod(pod *corev1.Pod) {
	spec := pod.Spec
	pod.Spec = corev1.PodSpec{
		NodeName:          spec.NodeName,
		ImagePullSecrets:  spec.ImagePullSecrets,
		Tolerations:       spec.Tolerations,
		PriorityClassName: spec.PriorityClassName,
		// of which a deletion may have less
		TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,

		Volumes: slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return !resources.IsSecretVolume(v) && !resources.IsKeyVolume(v) }),
	}
	for i, v := range pod.Spec.Volumes {
		if resources.IsKeyVolume(v) { // without the name of its shard
			pod.Spec.Volumes[i].Secret = &corev1.SecretVolumeSource{SecretName: v.Secret.SecretName}
		}
	}
	for _, c := range spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image, ImagePullPolicy: c.ImagePullPolicy, Resources: c.Resources})
	}
	sharePodSpec(&pod.Spec)
	for i := range pod.Status.ContainerStatuses {
		share(&pod.Status.ContainerStatuses[i].Resources)
	}
}

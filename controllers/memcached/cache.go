package memcached

import (
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// CacheOptions returns what the manager's cache holds: of the kinds that the
// operator makes only what it made, and of that only what it reads, in the
// namespaces of a comma-separated list; an empty one is all.
func CacheOptions(namespaces string) cache.Options {
	options := cache.Options{
		ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: OnlyOurs(keepOfPod)},
		DefaultTransform: keep(func(client.Object) {}),
		// A read of a kind that is not watched would have all that there is of it in the
		// cluster held: Secrets, for one.
		ReaderFailOnMissingInformer: true,
	}
	for _, kind := range ownedKinds() {
		options.ByObject[kind] = OnlyOurs(keepOfOwned)
	}
	for name := range strings.SplitSeq(namespaces, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[name] = cache.Config{}
	}
	return options
}

// ownedKinds returns an empty object of each kind that a Memcached owns.
func ownedKinds() []client.Object {
	return []client.Object{&appsv1.ReplicaSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}}
}

// OnlyOurs has the cache hold of a kind what the operator made, and of each object
// what a function leaves.
func OnlyOurs(trim func(client.Object)) cache.ByObject {
	return cache.ByObject{
		Label:     labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}),
		Transform: keep(trim),
	}
}

// keep returns what the cache does to an object before it holds it: what a function
// does, and to take away what nobody reads of any object. Who manages which field is
// more than all else of a small object. What is written back to such an object is the
// difference of two of its copies, or its status alone, so that nothing is lost.
func keep(trim func(client.Object)) func(any) (any, error) {
	return func(from any) (any, error) {
		o, ok := from.(client.Object)
		if !ok { // what the cache has missed the end of
			return from, nil
		}
		trim(o)
		entries := slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return !isReadOf(o, e) })
		for i := range entries {
			entries[i].FieldsV1 = ownFields.shared(entries[i].FieldsV1)
		}
		o.SetManagedFields(entries)
		delete(o.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
		return o, nil
	}
}

// ownFields are the sets of fields that the operator owns.
var ownFields fieldSets

// fieldSets holds sets of fields once for objects that have the same one: those of a
// kind and of one Memcached, whose identity is a part of it. It is a quarter of what a
// ReplicaSet takes.
type fieldSets struct {
	lock sync.Mutex
	all  map[string]*metav1.FieldsV1
}

// maxFieldSets bounds how many are held to be compared with. Objects of one Memcached
// come one after the other, mostly.
const maxFieldSets = 64

// shared returns the set that equals one, and is not changed.
func (s *fieldSets) shared(set *metav1.FieldsV1) *metav1.FieldsV1 {
	s.lock.Lock()
	defer s.lock.Unlock()
	if same, ok := s.all[string(set.GetRawBytes())]; ok {
		return same
	}
	if s.all == nil {
		s.all = map[string]*metav1.FieldsV1{}
	}
	if len(s.all) == maxFieldSets {
		clear(s.all)
	}
	s.all[set.GetRawString()] = set
	return set
}

// isReadOf says whether it is read which fields of an object an entry tells of: those
// that the operator applied, of what it applies, and the resources that it gave a pod.
func isReadOf(o client.Object, e metav1.ManagedFieldsEntry) bool {
	switch o.(type) {
	case *appsv1.ReplicaSet, *corev1.Service, *policyv1.PodDisruptionBudget, *networkingv1.NetworkPolicy:
		return e.Manager == v1alpha1.ManagedByValue && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	case *corev1.Pod:
		return isOurResize(e)
	default:
		return false
	}
}

// keepOfOwned leaves out how an object is, but for what keeps a ReplicaSet from
// making its pod: what counts is how its pod is.
func keepOfOwned(o client.Object) {
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		o.Status = appsv1.ReplicaSetStatus{Conditions: o.Status.Conditions}
	case *corev1.Service:
		o.Status = corev1.ServiceStatus{}
	case *policyv1.PodDisruptionBudget:
		o.Status = policyv1.PodDisruptionBudgetStatus{}
	}
}

// keepOfPod leaves of what a pod was made of where it runs, what its containers run
// with, and what a proof on its node takes over from it.
func keepOfPod(o client.Object) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	spec := pod.Spec
	pod.Spec = corev1.PodSpec{
		NodeName:          spec.NodeName,
		ImagePullSecrets:  spec.ImagePullSecrets,
		Tolerations:       spec.Tolerations,
		PriorityClassName: spec.PriorityClassName,
	}
	for _, c := range spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image, ImagePullPolicy: c.ImagePullPolicy, Resources: c.Resources})
	}
}

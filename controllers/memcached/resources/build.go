package resources

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// Kind of an object that the operator creates.
type Kind string

// The kinds, as in the Kubernetes API.
const (
	KindNetworkPolicy       Kind = "NetworkPolicy"
	KindPodDisruptionBudget Kind = "PodDisruptionBudget"
	KindReplicaSet          Kind = "ReplicaSet"
	KindService             Kind = "Service"
)

// OwnedKinds returns an empty object of each kind that a Memcached owns.
func OwnedKinds() []client.Object {
	return []client.Object{&appsv1.ReplicaSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}}
}

// Key names an object within the namespace of its Memcached.
type Key struct {
	Kind Kind
	Name string
}

func (k Key) String() string { return fmt.Sprintf("%s %s", k.Kind, k.Name) }

// Object is a desired object.
type Object struct {
	Key   Key
	Apply runtime.ApplyConfiguration
}

// Options are the operator's own configuration.
type Options struct {
	// AgentImage contains the agent: the operator's own image.
	AgentImage string
	// DefaultImage of memcached; its tag is the default version.
	DefaultImage string
	// OperatorNamespace may reach the agents through the network policy; empty when the operator
	// runs outside the cluster.
	OperatorNamespace string
	// OmitRunAsUser leaves the user of a pod to the platform, which OpenShift's security context
	// constraints require.
	OmitRunAsUser bool
	// CanResize is whether Kubernetes can resize pods in place.
	CanResize bool
}

// Keys returns the keys of a Memcached's objects in the order of their creation: policies and
// Services before the shards that need them.
func Keys(memcached string, size int) []Key {
	keys := []Key{
		{KindNetworkPolicy, memcached},
		{KindService, memcached},
		{KindPodDisruptionBudget, memcached},
	}
	for ordinal := range size {
		shard := ShardName(memcached, ordinal)
		keys = append(keys, Key{KindService, shard}, Key{KindReplicaSet, shard})
	}
	return keys
}

// Build returns the objects of a Memcached in the order of Keys. The spec must have the API
// server's defaults.
func Build(m *v1alpha1.Memcached, shard func(ordinal int) Shard, options Options) ([]Object, error) {
	var objects []Object
	templates := map[string]func(ordinal int) *corev1ac.PodTemplateSpecApplyConfiguration{}
	for _, key := range Keys(m.Name, int(*m.Spec.Size)) {
		ordinal, isShard := Ordinal(m.Name, key.Name)
		object := Object{Key: key}
		switch {
		case key.Kind == KindNetworkPolicy:
			object.Apply = networkPolicy(m, options)
		case key.Kind == KindPodDisruptionBudget:
			object.Apply = podDisruptionBudget(m)
		case key.Kind == KindService && !isShard:
			object.Apply = headlessService(m)
		case key.Kind == KindService:
			object.Apply = shardService(m, ordinal)
		default:
			s := shard(ordinal)
			pod, ok := templates[s.Revision.String()]
			if !ok {
				var err error
				if pod, err = podTemplate(m, s.Revision, options); err != nil {
					return nil, err
				}
				templates[s.Revision.String()] = pod
			}
			object.Apply = replicaSet(m, ordinal, s, pod(ordinal))
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// owner returns the reference by which the garbage collector deletes an object with its Memcached.
func owner(m *v1alpha1.Memcached) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind("Memcached").
		WithName(m.Name).
		WithUID(m.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

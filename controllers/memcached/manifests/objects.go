package manifests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// Kind of an object that the operator makes.
type Kind string

// The kinds, each as the API names it.
const (
	KindNetworkPolicy       Kind = "NetworkPolicy"
	KindPodDisruptionBudget Kind = "PodDisruptionBudget"
	KindReplicaSet          Kind = "ReplicaSet"
	KindService             Kind = "Service"
)

// Key names an object within the namespace of its Memcached.
type Key struct {
	Kind Kind
	Name string
}

func (k Key) String() string { return fmt.Sprintf("%s %s", k.Kind, k.Name) }

// Object is an object as it should be.
type Object struct {
	Key   Key
	Apply runtime.ApplyConfiguration
}

// Options are what the operator was started with.
type Options struct {
	// AgentImage holds the agent: the operator's own image.
	AgentImage string
	// DefaultImage of memcached with its tag, the default version.
	DefaultImage string
	// OperatorNamespace may ask agents through the network policy; empty when the
	// operator runs outside the cluster.
	OperatorNamespace string
	// AnyUser leaves the user of a pod to the platform, as OpenShift's security
	// context constraints demand.
	AnyUser bool
	// CanResize: Kubernetes resizes pods in place.
	CanResize bool
}

// Keys returns what exists for a Memcached of that name and size, in the order
// in which it is made: what guards and names the shards before the shards.
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

// Build returns the objects of a Memcached, in the order of Keys, with their
// owner. The spec must carry the API server's defaults.
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
			pod, ok := templates[s.Asked.String()]
			if !ok {
				var err error
				if pod, err = podTemplate(m, s.Asked, options); err != nil {
					return nil, err
				}
				templates[s.Asked.String()] = pod
			}
			object.Apply = replicaSet(m, ordinal, s, pod(ordinal))
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// owner returns the reference that makes the garbage collector end an object
// with its Memcached.
func owner(m *v1alpha1.Memcached) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind("Memcached").
		WithName(m.Name).
		WithUID(m.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

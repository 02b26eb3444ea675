package e2e

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestDisabledNetworkPolicyIsDeletedWithoutARestart(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", suite.Small(1))
	s.Available("cache")
	before := s.Lives("cache")
	s.Apply("cache", suite.Small(1).WithNetworkPolicy(memcachedac.NetworkPolicy().WithMode(v1alpha1.NetworkPolicyDisabled)))
	s.Gone(&networkingv1.NetworkPolicy{}, "cache")
	s.Untouched("cache", before)
}

func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", suite.Small(2))
	s.Available("cache")
	before := s.Lives("cache")
	for _, object := range []struct {
		kind client.Object
		name string
	}{
		{&corev1.Service{}, "cache"},
		{&corev1.Service{}, "cache-0"},
		{&policyv1.PodDisruptionBudget{}, "cache"},
		{&networkingv1.NetworkPolicy{}, "cache"},
	} {
		o, err := s.get(object.kind, object.name)
		s.Must(err)
		s.Must(k.Delete(s.Ctx, o))
		s.madeAgain(o)
	}
	set, err := s.get(&appsv1.ReplicaSet{}, "cache-0")
	s.Must(err)
	s.Must(k.Patch(s.Ctx, set, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`)), suite.Owner))
	s.Eventually("the end of the second pod", func(context.Context) error {
		o, err := s.get(&appsv1.ReplicaSet{}, "cache-0")
		if err != nil {
			return err
		}
		if set := o.(*appsv1.ReplicaSet); *set.Spec.Replicas != 1 || set.Status.ObservedGeneration != set.Generation || set.Status.Replicas != 1 {
			return fmt.Errorf("the ReplicaSet has %d pods of %d", set.Status.Replicas, *set.Spec.Replicas)
		}
		return nil
	})
	s.Available("cache")
	s.Untouched("cache", before)
	s.Holds(s.Written("cache", 0, 100))
}

func TestDeletedReplicaSetIsRecreatedAndItsShardIsReportedEmpty(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", withoutHandover(suite.Small(2)))
	s.Available("cache")
	other := s.Lives("cache")
	delete(other, "cache-0")
	s.Written("cache", 0, 100)

	set, err := s.get(&appsv1.ReplicaSet{}, "cache-0")
	s.Must(err)
	pod := s.Pods("cache")["cache-0"]
	s.Must(k.Delete(s.Ctx, set, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	s.madeAgain(set)
	m := s.replaced("cache", 0, pod)
	if shard := s.Shard(m, 0); shard.Start != v1alpha1.StartCold || shard.Items != 0 {
		t.Errorf("the status of the shard in its new pod is %+v", shard)
	}
	s.Event("cache", v1alpha1.EventShardStartedEmpty, "cache-0")
	s.Untouched("cache", other)
}

func TestReplicaSetDeletedWithoutItsPodIsRecreatedAndAdoptsThePod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", suite.Small(1))
	s.Available("cache")
	before := s.Lives("cache")
	kept := s.Written("cache", 0, 1000)

	set, err := s.get(&appsv1.ReplicaSet{}, "cache-0")
	s.Must(err)
	s.Must(k.Delete(s.Ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	set = s.madeAgain(set)
	s.Eventually("the pod is the new ReplicaSet's", func(context.Context) error {
		owner := metav1.GetControllerOf(new(s.Pods("cache")["cache-0"]))
		if owner == nil || owner.UID != set.GetUID() {
			return fmt.Errorf("its owner is %v", owner)
		}
		return nil
	})
	s.Available("cache")
	s.Untouched("cache", before)
	s.Holds(kept)
}

// get reads an object of the kind of an empty one.
func (s *space) get(kind client.Object, name string) (client.Object, error) {
	o := kind.DeepCopyObject().(client.Object)
	err := k.Get(s.Ctx, s.Key(name), o)
	return o, err
}

// madeAgain waits until another object of the kind and name of one that was
// deleted is there, and returns it.
func (s *space) madeAgain(deleted client.Object) client.Object {
	s.Helper()
	kind := reflect.New(reflect.TypeOf(deleted).Elem()).Interface().(client.Object)
	var made client.Object
	s.Eventually(fmt.Sprintf("%T %s recreated", deleted, deleted.GetName()), func(context.Context) error {
		var err error
		if made, err = s.get(kind, deleted.GetName()); err != nil {
			return err
		}
		if made.GetUID() == deleted.GetUID() {
			return fmt.Errorf("it is still the old one")
		}
		return nil
	})
	return made
}

// replaced waits until a shard serves from another pod than before, the status
// describes how it started, and all is up to date.
func (s *space) replaced(name string, ordinal int, before corev1.Pod) *v1alpha1.Memcached {
	s.Helper()
	s.Await(name, fmt.Sprintf("shard %d in another pod", ordinal), func(m *v1alpha1.Memcached) error {
		if slices.Contains(m.Status.Nodes, before.Name) {
			return fmt.Errorf("pods are %v", m.Status.Nodes)
		}
		if id := s.Shard(m, ordinal).ContainerID; id == "" || id == shard.ContainerID(&before) {
			return fmt.Errorf("the status describes the start of container %q", id)
		}
		return nil
	})
	return s.Available(name)
}

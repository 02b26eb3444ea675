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
)

func TestADeletedObjectIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")
	before := s.lives("cache")
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
		s.must(err)
		s.must(k.Delete(s.ctx, o))
		s.madeAgain(o)
	}
	s.available("cache")
	s.untouched("cache", before)
	s.holds(s.written("cache", 0, 100))
}

func TestADeletedReplicaSetIsMadeAgainAndItsShardIsToldToBeEmpty(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")
	other := s.lives("cache")
	delete(other, "cache-0")
	s.written("cache", 0, 100)

	set, err := s.get(&appsv1.ReplicaSet{}, "cache-0")
	s.must(err)
	pod := s.pods("cache")["cache-0"]
	s.must(k.Delete(s.ctx, set, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	s.madeAgain(set)
	m := s.replaced("cache", 0, pod)
	if shard := s.shard(m, 0); shard.Start != v1alpha1.StartCold || shard.Items != 0 {
		t.Errorf("the shard in its new pod is told to be %+v", shard)
	}
	s.event("cache", v1alpha1.EventShardStartedEmpty, "cache-0")
	s.untouched("cache", other)
}

func TestAReplicaSetDeletedWithoutItsPodIsMadeAgainAndThePodKept(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(1))
	s.available("cache")
	before := s.lives("cache")
	kept := s.written("cache", 0, 1000)

	set, err := s.get(&appsv1.ReplicaSet{}, "cache-0")
	s.must(err)
	s.must(k.Delete(s.ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	set = s.madeAgain(set)
	s.eventually("the pod is the new ReplicaSet's", func(context.Context) error {
		owner := metav1.GetControllerOf(new(s.pods("cache")["cache-0"]))
		if owner == nil || owner.UID != set.GetUID() {
			return fmt.Errorf("its owner is %v", owner)
		}
		return nil
	})
	s.available("cache")
	s.untouched("cache", before)
	s.holds(kept)
}

func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(1))
	s.available("cache")
	before := s.lives("cache")
	for _, drift := range []struct {
		what   string
		kind   client.Object
		name   string
		patch  string
		mended func(client.Object) bool
	}{
		{"a Service that selects other pods", &corev1.Service{}, "cache-0",
			`{"spec":{"selector":{"app.kubernetes.io/instance":"other"}}}`,
			func(o client.Object) bool {
				return o.(*corev1.Service).Spec.Selector[v1alpha1.LabelInstance] == "cache"
			}},
		{"a Service without the operator's label", &corev1.Service{}, "cache-0",
			`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`,
			func(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue }},
		{"a Service without its owner", &corev1.Service{}, "cache-0",
			`{"metadata":{"ownerReferences":null}}`,
			func(o client.Object) bool { return metav1.GetControllerOf(o) != nil }},
		{"a budget that lets all shards go", &policyv1.PodDisruptionBudget{}, "cache",
			`{"spec":{"maxUnavailable":"100%"}}`,
			func(o client.Object) bool {
				return o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable.IntValue() == 1
			}},
		{"a policy that lets all in", &networkingv1.NetworkPolicy{}, "cache",
			`{"spec":{"ingress":[{}]}}`,
			func(o client.Object) bool { return len(o.(*networkingv1.NetworkPolicy).Spec.Ingress) == 2 }},
		{"a ReplicaSet whose next pod would be another", &appsv1.ReplicaSet{}, "cache-0",
			`{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":1}}}}`,
			func(o client.Object) bool {
				return *o.(*appsv1.ReplicaSet).Spec.Template.Spec.TerminationGracePeriodSeconds > 1
			}},
		{"a ReplicaSet with a second pod", &appsv1.ReplicaSet{}, "cache-0",
			`{"spec":{"replicas":2}}`,
			func(o client.Object) bool {
				set := o.(*appsv1.ReplicaSet)
				return *set.Spec.Replicas == 1 && set.Status.ObservedGeneration == set.Generation && set.Status.Replicas == 1
			}},
	} {
		o, err := s.get(drift.kind, drift.name)
		s.must(err)
		s.must(k.Patch(s.ctx, o, client.RawPatch("application/merge-patch+json", []byte(drift.patch)), owner))
		s.eventually(drift.what+" is mended", func(context.Context) error {
			o, err := s.get(drift.kind, drift.name)
			if err != nil {
				return err
			}
			if !drift.mended(o) {
				return fmt.Errorf("it is not: labels %v, owners %v", o.GetLabels(), o.GetOwnerReferences())
			}
			return nil
		})
	}
	s.available("cache")
	s.untouched("cache", before)
}

// get reads an object of the kind of an empty one.
func (s *space) get(kind client.Object, name string) (client.Object, error) {
	o := kind.DeepCopyObject().(client.Object)
	err := k.Get(s.ctx, s.key(name), o)
	return o, err
}

// madeAgain waits until another object of the kind and name of one that was
// deleted is there, and returns it.
func (s *space) madeAgain(deleted client.Object) client.Object {
	s.Helper()
	kind := reflect.New(reflect.TypeOf(deleted).Elem()).Interface().(client.Object)
	var made client.Object
	s.eventually(fmt.Sprintf("%T %s made again", deleted, deleted.GetName()), func(context.Context) error {
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

// replaced waits until a shard serves from another pod than before and all is
// settled.
func (s *space) replaced(name string, ordinal int, before corev1.Pod) *v1alpha1.Memcached {
	s.Helper()
	s.await(name, fmt.Sprintf("shard %d in another pod", ordinal), func(m *v1alpha1.Memcached) error {
		if slices.Contains(m.Status.Nodes, before.Name) {
			return fmt.Errorf("pods are %v", m.Status.Nodes)
		}
		return nil
	})
	return s.available(name)
}

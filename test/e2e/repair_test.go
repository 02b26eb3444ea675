package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestReplicaSetDeletedWithoutItsPodIsRecreatedAndAdoptsThePod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", suite.Small(1))
	s.Available("cache")
	before := s.Lives("cache")
	kept := s.Written("cache", 0, 1000)

	deleted := &appsv1.ReplicaSet{}
	s.Must(k.Get(s.Ctx, s.Key("cache-0"), deleted))
	s.Must(k.Delete(s.Ctx, deleted, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	s.Eventually("the pod belongs to a new ReplicaSet", func(ctx context.Context) error {
		set := &appsv1.ReplicaSet{}
		if err := k.Get(ctx, s.Key("cache-0"), set); err != nil {
			return err
		}
		owner := metav1.GetControllerOf(new(s.Pods("cache")["cache-0"]))
		if set.UID == deleted.UID || owner == nil || owner.UID != set.UID {
			return fmt.Errorf("the ReplicaSet is %s, was %s, and the pod's owner is %v", set.UID, deleted.UID, owner)
		}
		return nil
	})
	s.Available("cache")
	s.Untouched("cache", before)
	s.Holds(kept)
}

// replaced waits until a shard serves from another pod than before, the status
// describes how it started, and all is up to date.
func (s *space) replaced(name string, ordinal int, before corev1.Pod) *v1beta1.Memcached {
	s.Helper()
	s.Await(name, fmt.Sprintf("shard %d in another pod", ordinal), func(m *v1beta1.Memcached) error {
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

package e2e

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

func TestScalingChangesOnlyTheLastShards(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(3))
	s.available("cache")
	pods := s.pods("cache")
	before := cluster.LivesOf(pods)
	var kept []*items.Set
	for ordinal := range 3 {
		kept = append(kept, s.written("cache", ordinal, 1000))
	}

	s.scaleTo("cache", 5)
	m := s.available("cache")
	s.untouched("cache", before)
	if len(m.Status.Nodes) != 5 || len(m.Status.Servers) != 5 || m.Status.Ready != "5/5" {
		t.Errorf("after scaling out the status has nodes %v, servers %v, ready %s", m.Status.Nodes, m.Status.Servers, m.Status.Ready)
	}
	for _, ordinal := range []int{3, 4} {
		s.holds(s.written("cache", ordinal, 1000))
	}
	s.event("cache", v1alpha1.EventScaled, "to 5 shards")

	s.scaleTo("cache", 3)
	m = s.available("cache")
	s.untouched("cache", before)
	if len(m.Status.Nodes) != 3 || len(m.Status.Servers) != 3 || m.Status.Size != 3 {
		t.Errorf("after scaling in the status has nodes %v, servers %v, size %d", m.Status.Nodes, m.Status.Servers, m.Status.Size)
	}
	for _, shard := range []string{"cache-3", "cache-4"} {
		s.gone(&corev1.Service{}, shard)
		s.gone(&appsv1.ReplicaSet{}, shard)
	}
	for _, set := range kept {
		s.holds(set)
	}

	s.scaleTo("cache", 0)
	s.await("cache", "no shards", func(m *v1alpha1.Memcached) error {
		if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionAvailable); m.Status.Size != 0 || c == nil || c.Reason != v1alpha1.ReasonNoShards {
			return fmt.Errorf("size is %d, Available %+v", m.Status.Size, c)
		}
		return nil
	})
	s.gone(&appsv1.ReplicaSet{}, "cache-0")
	s.scaleTo("cache", 2)
	s.available("cache")
	for ordinal := range 2 {
		s.gone(new(pods[cluster.ShardName("cache", ordinal)]), pods[cluster.ShardName("cache", ordinal)].Name)
	}
	s.holds(s.written("cache", 1, 100))
}

// scale reads the scale subresource, as "kubectl scale" does.
func (s *space) scale(name string) (*autoscalingv1.Scale, error) {
	m := &v1alpha1.Memcached{}
	m.Namespace, m.Name = s.namespace, name
	scale := &autoscalingv1.Scale{}
	err := k.SubResource("scale").Get(s.ctx, m, scale)
	return scale, err
}

// scaleTo writes the scale subresource, as "kubectl scale" does.
func (s *space) scaleTo(name string, size int32) {
	s.Helper()
	s.eventually(fmt.Sprintf("scaling to %d", size), func(ctx context.Context) error {
		scale, err := s.scale(name)
		if err != nil {
			return err
		}
		scale.Spec.Replicas = size
		m := &v1alpha1.Memcached{}
		m.Namespace, m.Name = s.namespace, name
		return k.SubResource("scale").Update(ctx, m, client.WithSubResourceBody(scale))
	})
}

// gone waits until an object is no more.
func (s *space) gone(o client.Object, name string) {
	s.Helper()
	o.SetNamespace(s.namespace)
	o.SetName(name)
	s.must(k.Gone(s.ctx, o, soon))
}

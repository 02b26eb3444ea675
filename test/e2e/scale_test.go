package e2e

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

func TestScalingTouchesTheLastShardsOnly(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(3))
	s.available("cache")
	before := s.lives("cache")
	var kept []*items.Set
	for ordinal := range 3 {
		kept = append(kept, s.written("cache", ordinal, 1000))
	}

	s.scaleTo("cache", 5)
	m := s.available("cache")
	s.untouched("cache", before)
	if len(m.Status.Nodes) != 5 || len(m.Status.Servers) != 5 || m.Status.Ready != "5/5" {
		t.Errorf("after scaling out the status tells nodes %v, servers %v, ready %s", m.Status.Nodes, m.Status.Servers, m.Status.Ready)
	}
	for _, ordinal := range []int{3, 4} {
		s.holds(s.written("cache", ordinal, 1000))
	}
	s.event("cache", v1alpha1.EventScaled, "to 5 shards")

	s.scaleTo("cache", 3)
	m = s.available("cache")
	s.untouched("cache", before)
	if len(m.Status.Nodes) != 3 || len(m.Status.Servers) != 3 || m.Status.Size != 3 {
		t.Errorf("after scaling in the status tells nodes %v, servers %v, size %d", m.Status.Nodes, m.Status.Servers, m.Status.Size)
	}
	for _, shard := range []string{"cache-3", "cache-4"} {
		s.gone(&corev1.Service{}, shard)
		s.gone(&appsv1.ReplicaSet{}, shard)
	}
	for _, set := range kept {
		s.holds(set)
	}
}

func TestSizeZeroRunsNothingAndComesBack(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")

	s.scaleTo("cache", 0)
	s.await("cache", "no shards", func(m *v1alpha1.Memcached) error {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionAvailable)
		if m.Status.Size != 0 || c == nil || c.Reason != v1alpha1.ReasonNoShards {
			return fmt.Errorf("size is %d, Available %+v", m.Status.Size, c)
		}
		return nil
	})
	s.gone(&appsv1.ReplicaSet{}, "cache-0")
	s.must(k.Get(s.ctx, s.key("cache"), &corev1.Service{}))

	s.scaleTo("cache", 2)
	s.available("cache")
	// The former pods serve on until the new ones answer at their Services, and a node
	// may lead there a moment longer.
	s.eventually("the end of the former pods", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := k.List(ctx, &pods, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		if len(pods.Items) != 2 {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		return nil
	})
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
	s.eventually(fmt.Sprintf("%T %s gone", o, name), func(ctx context.Context) error {
		err := k.Get(ctx, s.key(name), o)
		if err == nil {
			return fmt.Errorf("it is there")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

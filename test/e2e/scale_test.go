package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestScalingChangesOnlyTheLastShards(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", suite.Small(3))
	s.Available("cache")
	pods := s.Pods("cache")
	before := cluster.LivesOf(pods)
	var kept []*items.Set
	for ordinal := range 3 {
		kept = append(kept, s.Written("cache", ordinal, 1000))
	}

	s.ScaleTo("cache", 5)
	m := s.Available("cache")
	s.Untouched("cache", before)
	if len(m.Status.Nodes) != 5 || len(m.Status.Servers) != 5 || m.Status.Ready != "5/5" {
		t.Errorf("after scaling out the status has nodes %v, servers %v, ready %s", m.Status.Nodes, m.Status.Servers, m.Status.Ready)
	}
	for _, ordinal := range []int{3, 4} {
		s.Holds(s.Written("cache", ordinal, 1000))
	}
	s.Event("cache", v1alpha1.EventScaled, "to 5 shards")

	s.ScaleTo("cache", 3)
	m = s.Available("cache")
	s.Untouched("cache", before)
	if len(m.Status.Nodes) != 3 || len(m.Status.Servers) != 3 || m.Status.Size != 3 {
		t.Errorf("after scaling in the status has nodes %v, servers %v, size %d", m.Status.Nodes, m.Status.Servers, m.Status.Size)
	}
	for _, shard := range []string{"cache-3", "cache-4"} {
		s.Gone(&corev1.Service{}, shard)
		s.Gone(&appsv1.ReplicaSet{}, shard)
	}
	for _, set := range kept {
		s.Holds(set)
	}

	s.ScaleTo("cache", 0)
	s.Await("cache", "no shards", func(m *v1alpha1.Memcached) error {
		if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionAvailable); m.Status.Size != 0 || c == nil || c.Reason != v1alpha1.ReasonNoShards {
			return fmt.Errorf("size is %d, Available %+v", m.Status.Size, c)
		}
		return nil
	})
	s.Gone(&appsv1.ReplicaSet{}, "cache-0")
	s.ScaleTo("cache", 2)
	s.Available("cache")
	for ordinal := range 2 {
		s.Gone(new(pods[cluster.ShardName("cache", ordinal)]), pods[cluster.ShardName("cache", ordinal)].Name)
	}
	s.Holds(s.Written("cache", 1, 100))
}

package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func TestRestartAnnotationRestartsInPlaceAndKeepsItems(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")
	set := s.written("cache", 1, size)
	before := s.lives("cache")
	for _, token := range []string{"first", "second"} {
		shard, err := k.Restart(s.ctx, s.key("cache"), 1, token, soon)
		s.must(err)
		if shard.Start != v1alpha1.StartWarm || shard.ItemsBefore < size*99/100 || shard.Items < shard.ItemsBefore*99/100 {
			t.Errorf("after restart %s the shard's status is %+v", token, shard)
		}
		kept, err := set.Keep(share)
		s.must(err)
		s.event("cache", v1alpha1.EventShardKeptItems, "cache-1", fmt.Sprintf("%d of %d items", shard.Items, shard.ItemsBefore))
		t.Logf("restart %s: %d of %d items kept", token, kept, size)
	}
	s.untouched("cache", before)
	s.available("cache")
}

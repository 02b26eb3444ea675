package e2e

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

func TestADeletedPodCostsNoConnectionAndItsShardIsToldToBeEmpty(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")
	s.written("cache", 0, 1000)
	kept := s.written("cache", 1, 1000)
	other := s.lives("cache")
	delete(other, "cache-0")

	stop := s.probes("cache", 2)
	pod := s.pods("cache")["cache-0"]
	s.must(k.Delete(s.ctx, &pod))
	m := s.replaced("cache", 0, pod)
	s.gone(&pod, pod.Name)
	stop()

	shard := s.shard(m, 0)
	if shard.Start != v1alpha1.StartCold || shard.Items != 0 || shard.Pod == pod.Name {
		t.Errorf("the shard in its new pod is told to be %+v", shard)
	}
	s.event("cache", v1alpha1.EventShardStartedEmpty, "cache-0")
	s.untouched("cache", other)
	s.holds(kept)
	s.holds(s.written("cache", 0, 1000))
}

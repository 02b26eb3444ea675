package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// available returns the spec with handovers in which both pods serve.
func available(spec *memcachedac.MemcachedSpecApplyConfiguration) *memcachedac.MemcachedSpecApplyConfiguration {
	return spec.WithHandover(memcachedac.Handover().WithMode(v1alpha1.HandoverAvailable))
}

// byHandover returns the spec with updates by a handover.
func byHandover(spec *memcachedac.MemcachedSpecApplyConfiguration) *memcachedac.MemcachedSpecApplyConfiguration {
	return spec.WithUpdateStrategy(memcachedac.UpdateStrategy().WithType(v1alpha1.UpdateHandover))
}

// In mode Available no new connection fails, whatever replaces a pod: an eviction, a deletion, another memory, or with
// updates by a handover another version.
func TestModeAvailableFailsNoNewConnection(t *testing.T) {
	t.Parallel()
	const (
		shards = 2
		size   = 10_000
	)
	s := newSpace(t)
	s.Apply("cache", available(suite.Small(shards)))
	s.Available("cache")
	sets := []*items.Set{s.Written("cache", 0, size), s.Written("cache", 1, size)}
	stop := s.Probes("cache", shards)

	pod := s.Pods("cache")["cache-0"]
	s.Must(k.Delete(s.Ctx, &pod))
	s.replaced("cache", 0, pod)
	s.Gone(&pod, pod.Name)
	m := s.Updated("cache")
	s.handedOver("deletion", m, 0, sets[0], size)
	s.Event("cache", v1alpha1.EventShardHandedOver, "cache-0", "no pod responded for 0s", "(mode Available)")

	newest := versions[len(versions)-1]
	for _, change := range []struct {
		what string
		spec *memcachedac.MemcachedSpecApplyConfiguration
	}{
		{"another memory", available(suite.Small(shards)).WithMemory(resource.MustParse("96Mi"))},
		{"another version", byHandover(available(suite.Small(shards))).WithMemory(resource.MustParse("96Mi")).WithVersion(versions[0])},
		{"another version and other threads", byHandover(available(suite.Small(shards))).WithMemory(resource.MustParse("96Mi")).WithVersion(newest).WithThreads(2)},
	} {
		before := s.Pods("cache")
		s.Apply("cache", change.spec)
		m := s.Updated("cache")
		for ordinal, set := range sets {
			name := cluster.ShardName("cache", ordinal)
			old := before[name]
			if s.Shard(m, ordinal).PodName == old.Name {
				t.Errorf("%s: the pod of shard %s is the same", change.what, name)
			}
			s.handedOver(change.what, m, ordinal, set, size)
		}
	}
	stop()
	s.NoPreflightPods()
}

// The first pod serves while the second one can't start, and keeps its items when the change is reverted.
func TestUpdateByHandoverToAnImageThatCannotBePulledKeepsThePod(t *testing.T) {
	t.Parallel()
	const size = 5000
	s := newSpace(t)
	s.Apply("cache", byHandover(suite.Small(1)))
	s.Available("cache")
	set, stop := s.Written("cache", 0, size), s.Probes("cache", 1)
	before := s.Lives("cache")
	s.Apply("cache", byHandover(suite.Small(1)).WithVersion("1.6.999"))
	s.Degraded("cache", v1alpha1.ReasonUpdateFailed)
	s.Untouched("cache", before)
	s.Apply("cache", byHandover(suite.Small(1)))
	s.Updated("cache")
	s.Untouched("cache", before)
	s.Holds(set)
	stop()
}

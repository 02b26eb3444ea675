package e2e

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// byHandover has updates by a handover.
func byHandover(spec *v1beta1.MemcachedSpec) {
	spec.UpdateStrategy.Type = v1beta1.UpdateHandover
}

// In mode Available no new connection fails, whatever replaces a pod: an eviction, a deletion, another memory, or with
// updates by a handover another version. While the operator replaces pods, this holds also through proxies that use no
// endpoint of a pod that terminates.
func TestModeAvailableFailsNoNewConnection(t *testing.T) {
	const (
		shards = 2
		size   = 10_000
	)
	s := newSpace(t)
	available := suite.Handover(v1beta1.HandoverAvailable)
	s.Serve("cache", suite.Small(shards, available))
	sets := []*items.Set{s.Written("cache", 0, size), s.Written("cache", 1, size)}
	stop := s.Probes("cache", shards)

	pod := s.Pods("cache")["cache-0"]
	s.Must(k.Delete(s.Ctx, &pod))
	s.Replaced("cache", 0, pod)
	s.Gone(&pod, pod.Name)
	m := s.Updated("cache")
	s.handedOver("deletion", m, 0, sets[0], size)
	s.Event("cache", v1beta1.EventShardHandedOver, "cache-0", "no pod responded for 0s", "(mode Available)")

	// Not while a pod is deleted by others: from then on its endpoint terminates.
	stopEndpoints := s.EndpointProbes("cache", shards)
	for _, change := range []struct {
		what string
		spec v1beta1.MemcachedSpec
	}{
		{"another memory", suite.Small(shards, available, suite.Memory("96Mi"))},
		{"another version and other threads", suite.Small(shards, available, suite.Memory("96Mi"), byHandover, suite.Version(versions[0]), suite.Threads(2))},
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
	stopEndpoints()
	stop()
	s.NoPreflightPods()
}

// The first pod serves while the second one can't start, and keeps its items when the change is reverted.
func TestUpdateByHandoverToAnImageThatCannotBePulledKeepsThePod(t *testing.T) {
	const size = 5000
	s := newSpace(t)
	s.Serve("cache", suite.Small(1, byHandover))
	set, stop := s.Written("cache", 0, size), s.Probes("cache", 1)
	before := s.Lives("cache")
	s.Apply("cache", suite.Small(1, byHandover, suite.Version("1.6.999")))
	s.Degraded("cache", v1beta1.ReasonUpdateFailed)
	s.Untouched("cache", before)
	s.Apply("cache", suite.Small(1, byHandover))
	s.Updated("cache")
	s.Untouched("cache", before)
	s.Holds(set)
	stop()
}

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
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
	seen := s.watchMove("cache", 0, pod)
	s.Must(k.Delete(s.Ctx, &pod))
	s.replaced("cache", 0, pod)
	s.Gone(&pod, pod.Name)
	m := s.Updated("cache")
	t.Logf("the Service: %s", seen())
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

// watchMove opens connections to a shard's Service, and returns which pod answered them while the shard moved.
func (s *space) watchMove(name string, ordinal int, from corev1.Pod) (result func() string) {
	s.Helper()
	address := s.Address(name, ordinal)
	ctx, cancel := context.WithCancel(s.Ctx)
	s.Cleanup(cancel)
	var ready, firstNew, lastOld time.Time
	var count int
	done, polled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var first time.Time
		for ctx.Err() == nil {
			time.Sleep(2 * time.Millisecond)
			uptime, err := uptimeOf(ctx, address)
			if err != nil {
				continue
			}
			now := time.Now()
			started := now.Add(-time.Duration(uptime) * time.Second)
			if count++; count == 1 {
				first = started
			}
			switch isNew := started.Sub(first) > 1500*time.Millisecond; {
			case !isNew:
				lastOld = now
			case firstNew.IsZero():
				firstNew = now
			}
		}
	}()
	go func() {
		defer close(polled)
		for ctx.Err() == nil && ready.IsZero() {
			pods, err := k.Pods(ctx, s.Key(name))
			pod, isThere := pods[cluster.ShardName(name, ordinal)]
			if err == nil && isThere && pod.Name != from.Name && suite.IsReady(pod) {
				ready = time.Now()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return func() string {
		cancel()
		<-done
		<-polled
		return fmt.Sprintf("%d connections, the first one to the new pod %s and the last one to the old one %s after the new one was ready",
			count, firstNew.Sub(ready).Round(time.Millisecond), lastOld.Sub(ready).Round(time.Millisecond))
	}
}

// uptimeOf returns for how many seconds the memcached runs that answers a new connection.
func uptimeOf(ctx context.Context, address string) (int64, error) {
	connection, err := protocol.At(address).Dial(ctx)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	general, err := connection.General(ctx)
	return general.Uptime, err
}

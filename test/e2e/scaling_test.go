package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// From two to four shards and back. Clients of both lists find all items while the lists differ, and at the end no shard has an item
// that belongs to another one.
func TestScalingKeepsTheItems(t *testing.T) {
	const size = 10_000
	s := newSpace(t)
	s.Apply("cache", suite.Small(2, modulo))
	s.Available("cache")
	set := func(shards int) *items.Set {
		var addresses []string
		for ordinal := range shards {
			addresses = append(addresses, s.Address("cache", ordinal))
		}
		set := items.New("scaled", size, addresses...)
		s.Cleanup(func() { _ = set.Close() })
		return set
	}
	s.Must(set(2).Write())
	for _, change := range []struct{ from, to int }{{2, 4}, {4, 2}} {
		if s.ScaleTo("cache", int32(change.to)); change.to < change.from {
			s.Event("cache", v1beta1.EventScaleInForbidden, "keeping 4 shards")
			s.Apply("cache", suite.Small(int32(change.to), modulo)) // its owner agrees
		}
		m := s.Await("cache", "the new list", func(m *v1beta1.Memcached) error {
			if scaling := m.Status.Scaling; scaling == nil || scaling.Step != v1beta1.ScalingWaiting || len(m.Status.Servers) != change.to {
				return fmt.Errorf("the status has the servers %v and %+v", m.Status.Servers, scaling)
			}
			return nil
		})
		s.Holds(set(change.to))
		s.Holds(set(change.from))
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1beta1.AnnotationScaled, m.Status.Scaling.ID)
		s.Must(k.Patch(s.Ctx, m, client.RawPatch(types.MergePatchType, []byte(patch))))
		s.Await("cache", "the end of the scaling", func(m *v1beta1.Memcached) error {
			if m.Status.Scaling != nil || int(m.Status.Size) != change.to {
				return fmt.Errorf("%d shards, %+v", m.Status.Size, m.Status.Scaling)
			}
			return nil
		})
		s.Available("cache")
		s.Holds(set(change.to))
		total := 0
		for _, pod := range s.Pods("cache") {
			status, err := cluster.AgentStatus(s.Ctx, pod)
			s.Must(err)
			total += int(status.Items)
		}
		if total != size {
			t.Errorf("the %d shards have %d items in all, want %d", change.to, total, size)
		}
	}
	s.Event("cache", v1beta1.EventScalingFinished)
}

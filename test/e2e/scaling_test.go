package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
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
			s.Event("cache", v1beta1.ReasonScaleInForbidden, "keeping 4 shards")
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
		stop := s.records("cache", change.to)
		s.Must(k.Annotate(s.Ctx, m, v1beta1.AnnotationScaled, m.Status.Scaling.ID))
		s.Await("cache", "the end of the scaling", func(m *v1beta1.Memcached) error {
			if m.Status.Scaling != nil || int(m.Status.Size) != change.to {
				return fmt.Errorf("%d shards, %+v", m.Status.Size, m.Status.Scaling)
			}
			return nil
		})
		s.Available("cache")
		stop()
		s.Holds(set(change.to))
		total := 0
		for _, status := range s.agents("cache") {
			total += int(status.Items)
		}
		if total != size {
			t.Errorf("the %d shards have %d items in all, want %d", change.to, total, size)
		}
	}
	s.Event("cache", v1beta1.EventScalingFinished)
}

// records waits until the records of the headless Service have the first shards only, and follows them from then on. The returned function
// fails the test if they had others.
func (s *space) records(name string, shards int) (stop func()) {
	s.Helper()
	var want []string
	for ordinal := range shards {
		want = append(want, cluster.ShardName(name, ordinal))
	}
	of := []client.ListOption{client.InNamespace(s.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name}}
	s.Eventually("the records of "+name, func(ctx context.Context) error {
		var all discoveryv1.EndpointSliceList
		if err := k.List(ctx, &all, of...); err != nil {
			return err
		}
		if got := readyHosts(all.Items...); !slices.Equal(got, want) {
			return fmt.Errorf("they have %v, and clients know %v", got, want)
		}
		return nil
	})
	changes, err := k.Changes(s.Ctx, &discoveryv1.EndpointSliceList{}, of...)
	s.Must(err)
	s.Cleanup(changes.Stop)
	return func() {
		s.Helper()
		last := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		last.Name, last.Namespace, last.Labels = "last", s.Namespace, map[string]string{discoveryv1.LabelServiceName: name}
		s.Must(k.Create(s.Ctx, last))
		for change := range changes.ResultChan() {
			slice, ok := change.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				s.Fatalf("the watch of the records failed: %v", change.Object)
			}
			if slice.Name == last.Name {
				s.Must(k.Delete(s.Ctx, last))
				return
			}
			for _, host := range readyHosts(*slice) {
				if !slices.Contains(want, host) {
					s.Errorf("the records have %s, and clients know %v", host, want)
				}
			}
		}
		s.Fatal("the watch of the records was closed early")
	}
}

// readyHosts returns the host names of ready endpoints.
func readyHosts(all ...discoveryv1.EndpointSlice) (hosts []string) {
	for _, slice := range all {
		for _, e := range slice.Endpoints {
			if e.Hostname != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				hosts = append(hosts, *e.Hostname)
			}
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

package suite

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

// endpoints is what a proxy knows of a Service that uses no endpoint of a pod that terminates: load balancers with pods as
// targets, DNS and some service meshes do so. kube-proxy uses such an endpoint if there is no other.
type endpoints struct {
	lock sync.Mutex
	// ready are the addresses by EndpointSlice.
	ready map[string][]string
	gaps  int
	// lost is whether the watch was closed, so that gaps may be missing.
	lost bool
}

// address returns that of a ready endpoint, or an empty one.
func (e *endpoints) address() string {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.first()
}

func (e *endpoints) first() string {
	for _, addresses := range e.ready {
		for _, a := range addresses {
			return net.JoinHostPort(a, strconv.Itoa(wire.MemcachedPort))
		}
	}
	return ""
}

// take takes the endpoints that an EndpointSlice has from now on, which may begin a gap.
func (e *endpoints) take(slice *discoveryv1.EndpointSlice) {
	e.lock.Lock()
	defer e.lock.Unlock()
	before := e.first()
	e.ready[slice.Name] = readyAddresses(slice)
	if before != "" && e.first() == "" {
		e.gaps++
	}
}

func readyAddresses(slice *discoveryv1.EndpointSlice) (ready []string) {
	for _, endpoint := range slice.Endpoints {
		if c := endpoint.Conditions; c.Ready != nil && *c.Ready {
			ready = append(ready, endpoint.Addresses...)
		}
	}
	return ready
}

// isOutdated returns whether an address is no longer that of a ready endpoint, by the API server.
func isOutdated(ctx context.Context, address string, of []client.ListOption) bool {
	var all discoveryv1.EndpointSliceList
	err := K.List(ctx, &all, of...)
	host, _, _ := net.SplitHostPort(address)
	return err == nil && !slices.ContainsFunc(all.Items, func(slice discoveryv1.EndpointSlice) bool { return slices.Contains(readyAddresses(&slice), host) })
}

// EndpointProbes opens connections to a ready endpoint of each shard until it is stopped. The returned function stops it,
// and fails the test if one was not answered, or if a shard had no ready endpoint at a moment.
func (s *Space) EndpointProbes(name string, shards int) (stop func()) {
	s.Helper()
	var running []*probe.Probe
	var all []*endpoints
	for ordinal := range shards {
		shard := cluster.ShardName(name, ordinal)
		e := &endpoints{ready: map[string][]string{}}
		of := []client.ListOption{client.InNamespace(s.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: shard}}
		changes, err := K.Changes(s.Ctx, &discoveryv1.EndpointSliceList{}, of...)
		s.Must(err)
		s.Cleanup(changes.Stop)
		go func() {
			for change := range changes.ResultChan() {
				if slice, ok := change.Object.(*discoveryv1.EndpointSlice); ok {
					e.take(slice)
				}
			}
			e.lock.Lock()
			defer e.lock.Unlock()
			e.lost = true
		}()
		s.Eventually("a ready endpoint of "+shard, func(context.Context) error {
			if e.address() == "" {
				return fmt.Errorf("there is none")
			}
			return nil
		})
		all, running = append(all, e), append(running, s.probed(probe.With("the ready endpoint of "+shard, func(ctx context.Context) error {
			address := e.address()
			err := probe.Ask(ctx, address)
			if err != nil && isOutdated(ctx, address, of) { // this test is late; a pod that stops while its endpoint is ready fails many connections
				return nil
			}
			return err
		})))
	}
	stopProbes := s.stopping(running)
	return func() {
		s.Helper()
		stopProbes()
		for ordinal, e := range all {
			e.lock.Lock()
			defer e.lock.Unlock()
			if e.gaps > 0 || e.lost {
				s.Errorf("shard %d had no ready endpoint %d times; the watch was closed early: %t", ordinal, e.gaps, e.lost)
			}
		}
	}
}

package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// balance returns the address of the load balancer of a shard, for which it sets one if the cluster has no controller for
// load balancers, and the address at which a load balancer reaches the shard: the port that Kubernetes has allocated on the
// nodes, of which it uses that of the shard's pod. It is the Service's only port.
func (s *space) balance(ctx context.Context, shard string) (external, backend string, err error) {
	service := &corev1.Service{}
	if err := k.Get(ctx, s.Key(shard+"-ext"), service); err != nil {
		return "", "", err
	}
	if len(service.Status.LoadBalancer.Ingress) == 0 {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: shard + ".example.com"}}
		if err := k.Status().Update(ctx, service); err != nil {
			return "", "", err
		}
	}
	if ports := service.Spec.Ports; len(ports) != 1 || ports[0].Port != 11211 || ports[0].NodePort == 0 {
		return "", "", fmt.Errorf("the Service has the ports %+v", ports)
	}
	ingress := service.Status.LoadBalancer.Ingress[0]
	if external = ingress.IP; external == "" {
		external = ingress.Hostname
	}
	node := &corev1.Node{}
	if err := k.Get(ctx, client.ObjectKey{Name: s.Pods("cache")[shard].Spec.NodeName}, node); err != nil {
		return "", "", err
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return net.JoinHostPort(external, "11211"), net.JoinHostPort(address.Address, strconv.Itoa(int(service.Spec.Ports[0].NodePort))), nil
		}
	}
	return "", "", fmt.Errorf("node %s has no address", node.Name)
}

// The test plays the part of a load balancer and of its controller.
func TestClientsOutsideTheClusterReachEachShard(t *testing.T) {
	s := newSpace(t)
	spec := func(mode v1beta1.ExternalMode) v1beta1.MemcachedSpec {
		return suite.Small(2, func(spec *v1beta1.MemcachedSpec) {
			spec.Access.External.Mode = mode
			spec.Access.NetworkPolicy.AllowedClients = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}}}
		})
	}
	before := s.Serve("cache", spec(v1beta1.ExternalDisabled))
	lives := s.Lives("cache")
	inside := []*items.Set{s.Written("cache", 0, 100), s.Written("cache", 1, 100)}

	s.Apply("cache", spec(v1beta1.ExternalLoadBalancer))
	for ordinal := range inside {
		shard, want, backend := cluster.ShardName("cache", ordinal), "", ""
		s.Eventually("the address of "+shard, func(ctx context.Context) (err error) {
			want, backend, err = s.balance(ctx, shard)
			return err
		})
		s.Await("cache", "the address of "+shard, func(m *v1beta1.Memcached) error {
			if e := m.Status.External; e == nil || len(e.Servers) <= ordinal || e.Servers[ordinal] != want {
				return fmt.Errorf("the status is %+v, want %s", e, want)
			}
			return nil
		})
		outside := items.New(shard, 100, backend)
		t.Cleanup(func() { _ = outside.Close() })
		s.Eventually("the items of "+shard+" at "+backend, func(context.Context) error { // the nodes' proxies learn of the port
			_, err := outside.Keep(1)
			return err
		})
	}
	if m := s.Available("cache"); m.Status.External.Message != "" || !slices.Equal(m.Status.Servers, before.Status.Servers) {
		t.Errorf("the status is %+v, and the addresses inside the cluster are %q", m.Status.External, m.Status.Servers)
	}

	s.Apply("cache", spec(v1beta1.ExternalDisabled))
	for ordinal, set := range inside {
		s.Gone(&corev1.Service{}, cluster.ShardName("cache", ordinal)+"-ext")
		s.Holds(set)
	}
	s.Untouched("cache", lives)
}

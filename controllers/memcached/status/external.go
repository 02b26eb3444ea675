package status

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// externalStatus returns where clients outside the cluster connect; nil if they don't. A client may choose the shard of a key by
// its place in the list, so the list stops before the first shard without an address.
func externalStatus(obs *observation.Observation) *v1beta1.ExternalStatus {
	if !resources.IsExternal(obs.Memcached) {
		return nil
	}
	s := &v1beta1.ExternalStatus{}
	var missing []string
	for _, name := range obs.Listed() {
		address := externalAddress(obs, name)
		if address == "" {
			missing = append(missing, name)
		} else if len(missing) == 0 {
			s.Servers = append(s.Servers, address)
		}
	}
	var messages []string
	if len(missing) > 0 {
		messages = append(messages, fmt.Sprintf("%d of %d shards have no external address, such as %s; check the events of the Service %s, and whether the cluster has a controller for load balancers",
			len(missing), len(obs.Listed()), missing[0], resources.ExternalKey(missing[0]).Name))
	}
	if !admitsAddresses(obs.Memcached.Spec.Access.NetworkPolicy) {
		messages = append(messages, "the NetworkPolicy admits no client outside the cluster; add an ipBlock to spec.access.networkPolicy.allowedClients")
	}
	s.Message = strings.Join(messages, ". ")
	return s
}

// externalAddress returns the address of a shard's load balancer, as host:port; empty if it has none.
func externalAddress(obs *observation.Observation, shard string) string {
	o := obs.Objects[resources.ExternalKey(shard)]
	service, ok := o.APIObject.(*corev1.Service)
	if !ok || o.Owner != observation.Ours || service.DeletionTimestamp != nil || len(service.Status.LoadBalancer.Ingress) == 0 {
		return ""
	}
	ingress := service.Status.LoadBalancer.Ingress[0]
	host := cmp.Or(ingress.IP, ingress.Hostname)
	if host == "" {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(agentwire.MemcachedPort))
}

// admitsAddresses reports whether a network policy can admit clients outside the cluster.
func admitsAddresses(p v1beta1.NetworkPolicySpec) bool {
	return p.Mode == v1beta1.NetworkPolicyOpen || p.Mode == v1beta1.NetworkPolicyDisabled ||
		slices.ContainsFunc(p.AllowedClients, func(peer networkingv1.NetworkPolicyPeer) bool { return peer.IPBlock != nil })
}

package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// servicePorts returns the ports of every Service. A terminating pod uses the agent's port to find
// out which pod its shard's Service leads to now.
func servicePorts() []*corev1ac.ServicePortApplyConfiguration {
	port := func(name string, number int32) *corev1ac.ServicePortApplyConfiguration {
		return corev1ac.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).
			WithPort(number).WithTargetPort(intstr.FromString(name))
	}
	return []*corev1ac.ServicePortApplyConfiguration{
		port(portMemcached, agentwire.MemcachedPort).WithAppProtocol("memcache"),
		port(portAgent, agentwire.Port).WithAppProtocol("http"),
	}
}

// headlessService returns the Service whose DNS name resolves to all shards, and that gives each
// pod a DNS name.
func headlessService(m *v1alpha1.Memcached) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(m.Name, m.Namespace).
		WithLabels(Labels(m.Name)).
		WithOwnerReferences(owner(m)).
		WithSpec(corev1ac.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(Labels(m.Name)).
			WithPorts(servicePorts()...))
}

// shardService returns the Service with the address of a shard, which outlives its pods.
func shardService(m *v1alpha1.Memcached, ordinal int) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(ShardName(m.Name, ordinal), m.Namespace).
		WithLabels(shardLabels(m.Name, ordinal)).
		WithOwnerReferences(owner(m)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(shardLabels(m.Name, ordinal)).
			WithPorts(servicePorts()...))
}

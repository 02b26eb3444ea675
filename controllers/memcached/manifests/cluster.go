package manifests

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// Names of ports and of the container.
const (
	// Container is the name of the container in which memcached runs.
	Container     = "memcached"
	initContainer = "agent"
	portMemcached = "memcached"
	portAgent     = "agent"
)

// servicePorts returns the ports of every Service. The agent's is there so that a
// pod that goes can ask its shard's Service which pod now answers.
func servicePorts() []*corev1ac.ServicePortApplyConfiguration {
	port := func(name string, number int32) *corev1ac.ServicePortApplyConfiguration {
		return corev1ac.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).
			WithPort(number).WithTargetPort(intstr.FromString(name))
	}
	return []*corev1ac.ServicePortApplyConfiguration{
		port(portMemcached, agentapi.MemcachedPort).WithAppProtocol("memcache"),
		port(portAgent, agentapi.Port).WithAppProtocol("http"),
	}
}

// headlessService returns the Service that gives each shard a name in DNS beside
// that of its own Service, and all shards one.
func headlessService(m *v1alpha1.Memcached) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(m.Name, m.Namespace).
		WithLabels(Labels(m.Name)).
		WithOwnerReferences(owner(m)).
		WithSpec(corev1ac.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(Labels(m.Name)).
			WithPorts(servicePorts()...))
}

// podDisruptionBudget returns the budget that lets a drain take one shard, and
// the next only when that one is back.
func podDisruptionBudget(m *v1alpha1.Memcached) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(m.Name, m.Namespace).
		WithLabels(Labels(m.Name)).
		WithOwnerReferences(owner(m)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Labels(m.Name))))
}

// networkPolicy returns the policy that opens memcached's port to every pod of
// the cluster, as a plain Service would, and the agent's to the operator and to
// the shards themselves. Other ports of the pods are closed.
func networkPolicy(m *v1alpha1.Memcached, options Options) *networkingv1ac.NetworkPolicyApplyConfiguration {
	port := func(number int32) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
		return networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(number))
	}
	askers := []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{
		networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(Labels(m.Name))),
	}
	if options.OperatorNamespace != "" {
		askers = append(askers, networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(
			metav1ac.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: options.OperatorNamespace})))
	}
	return networkingv1ac.NetworkPolicy(m.Name, m.Namespace).
		WithLabels(Labels(m.Name)).
		WithOwnerReferences(owner(m)).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(Labels(m.Name))).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(
				networkingv1ac.NetworkPolicyIngressRule().WithPorts(port(agentapi.MemcachedPort)),
				networkingv1ac.NetworkPolicyIngressRule().WithPorts(port(agentapi.Port)).WithFrom(askers...),
			))
}

package resources

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// networkPolicy returns the policy that opens memcached's port to every pod of the cluster, as
// without a policy, and the agent's port to the operator and to the shards. All other ports of
// the pods are closed.
func networkPolicy(m *v1alpha1.Memcached, options Options) *networkingv1ac.NetworkPolicyApplyConfiguration {
	port := func(number int32) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
		return networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(number))
	}
	agentPeers := []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{
		networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(Labels(m.Name))),
	}
	if options.OperatorNamespace != "" {
		agentPeers = append(agentPeers, networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(
			metav1ac.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: options.OperatorNamespace})))
	}
	return networkingv1ac.NetworkPolicy(m.Name, m.Namespace).
		WithLabels(Labels(m.Name)).
		WithOwnerReferences(owner(m)).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(Labels(m.Name))).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(
				networkingv1ac.NetworkPolicyIngressRule().WithPorts(port(agentwire.MemcachedPort)),
				networkingv1ac.NetworkPolicyIngressRule().WithPorts(port(agentwire.Port)).WithFrom(agentPeers...),
			))
}

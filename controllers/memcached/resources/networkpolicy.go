package resources

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func convertPeers(peers []networkingv1.NetworkPolicyPeer) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	var converted []*networkingv1ac.NetworkPolicyPeerApplyConfiguration
	for i := range peers {
		converted = append(converted, convert[networkingv1ac.NetworkPolicyPeerApplyConfiguration](peers[i]))
	}
	return converted
}

// networkPolicy returns the policy that opens memcached's port to the clients of the spec, the
// agent's port to the operator and to the shards, and the port of the metrics to the namespace and to
// Prometheus, or to the peers of the spec. Only the shards can connect to the port of the
// handover. It closes all other ports of the shards, and those of preflight pods, which listen on
// none of them.
func (b *Builder) networkPolicy() *networkingv1ac.NetworkPolicyApplyConfiguration {
	rule := func(port int32, from ...*networkingv1ac.NetworkPolicyPeerApplyConfiguration) *networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
		return networkingv1ac.NetworkPolicyIngressRule().WithFrom(from...).
			WithPorts(networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port)))
	}
	pods := func(labels map[string]string) *networkingv1ac.NetworkPolicyPeerApplyConfiguration {
		return networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(labels))
	}
	agentPeers := []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{pods(b.labels)}
	if b.options.OperatorNamespace != "" {
		agentPeers = append(agentPeers, pods(annotations.OperatorPodLabels()).WithNamespaceSelector(
			metav1ac.LabelSelector().WithMatchLabels(map[string]string{corev1.LabelMetadataName: b.options.OperatorNamespace})))
	}
	var clients []*networkingv1ac.NetworkPolicyPeerApplyConfiguration
	switch spec := b.memcached.Spec.Access.NetworkPolicy; {
	case spec.Mode == v1beta1.NetworkPolicyOpen: // a rule without peers admits everyone
	case len(spec.AllowedClients) == 0:
		clients = append(clients, pods(nil))
	default:
		clients = append(convertPeers(spec.AllowedClients), pods(map[string]string{
			v1beta1.LabelName: annotations.SnapshotName, v1beta1.LabelManagedBy: v1beta1.ManagedByValue}))
	}
	selected := metav1ac.LabelSelector().
		WithMatchLabels(map[string]string{v1beta1.LabelInstance: b.name, v1beta1.LabelManagedBy: v1beta1.ManagedByValue}).
		WithMatchExpressions(metav1ac.LabelSelectorRequirement().
			WithKey(v1beta1.LabelName).WithOperator(metav1.LabelSelectorOpIn).WithValues(v1beta1.NameValue, annotations.PreflightName))
	rules := []*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration{rule(agentwire.MemcachedPort, clients...), rule(agentwire.Port, agentPeers...)}
	if scrapers := b.scrapers(); len(scrapers) > 0 { // a rule without peers would admit everyone
		rules = append(rules, rule(agentwire.MetricsPort, scrapers...))
	}
	if b.memcached.Spec.Access.Discovery.IsEnabled() {
		rules = append(rules, rule(agentwire.DiscoveryPort, clients...))
	}
	if HandsOver(b.memcached) {
		rules = append(rules, rule(agentwire.HandoverPort, pods(b.labels)))
	}
	return networkingv1ac.NetworkPolicy(b.name, b.namespace).
		WithLabels(b.labels).
		WithOwnerReferences(b.owner).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(selected).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(rules...))
}

// scrapers returns who can connect to the port of the metrics; none if the Memcached isn't monitored. A flood of
// connections from others could keep Prometheus from reading them.
func (b *Builder) scrapers() []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	allowed := b.memcached.Spec.Access.NetworkPolicy.AllowedScrapers
	if len(allowed) > 0 || !b.memcached.Spec.Monitoring.IsEnabled() {
		return convertPeers(allowed)
	}
	peers := []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector())}
	if namespaces := b.options.MonitoringNamespaces; len(namespaces) > 0 {
		peers = append(peers, networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector().WithMatchExpressions(
			metav1ac.LabelSelectorRequirement().WithKey(corev1.LabelMetadataName).WithOperator(metav1.LabelSelectorOpIn).WithValues(namespaces...))))
	}
	return peers
}

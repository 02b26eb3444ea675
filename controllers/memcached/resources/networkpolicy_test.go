package resources

import (
	"encoding/json"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// peersByPort returns who may connect to each port of a Memcached's pods, as JSON.
func peersByPort(m *v1beta1.Memcached, options Options) map[int32]string {
	peers := map[int32]string{}
	for _, o := range build(m, upToDate(m, Image{Reference: fallback}), options) {
		if policy, ok := o.Apply.(*networkingv1ac.NetworkPolicyApplyConfiguration); ok {
			for _, rule := range policy.Spec.Ingress {
				raw, _ := json.Marshal(rule.From)
				peers[rule.Ports[0].Port.IntVal] = string(raw)
			}
		}
	}
	return peers
}

func selects(team string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
}

// Other pods could occupy the connections of the metrics, so that Prometheus can't read them.
func TestNetworkPolicyFollowsItsMode(t *testing.T) {
	const (
		noRule, everyone, namespace = "", `null`, `[{"podSelector":{}}]`
		clients                     = `[{"namespaceSelector":{"matchLabels":{"team":"shop"}}},{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16"]}},` +
			`{"podSelector":{"matchLabels":{"app.kubernetes.io/managed-by":"memcached-operator","app.kubernetes.io/name":"memcached-snapshot"}}}]`
		prometheus = `[{"podSelector":{}},{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":["monitoring","p8s"]}]}}]`
		named      = `[{"namespaceSelector":{"matchLabels":{"team":"sre"}}}]`
	)
	from := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: selects("sre")}}
	for name, c := range map[string]struct {
		policy           v1beta1.NetworkPolicySpec
		monitoring       v1beta1.MonitoringSpec
		namespaces       []string // of Prometheus
		clients, metrics string
	}{
		"the default":              {clients: namespace, metrics: namespace},
		"the default, written out": {policy: v1beta1.NetworkPolicySpec{Mode: v1beta1.NetworkPolicyRestricted}, clients: namespace, metrics: namespace},
		"allowed clients": {policy: v1beta1.NetworkPolicySpec{AllowedClients: []networkingv1.NetworkPolicyPeer{
			{NamespaceSelector: selects("shop")}, {IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8", Except: []string{"10.1.0.0/16"}}}}}, clients: clients, metrics: namespace},
		"open":                          {policy: v1beta1.NetworkPolicySpec{Mode: v1beta1.NetworkPolicyOpen}, clients: everyone, metrics: namespace},
		"disabled":                      {policy: v1beta1.NetworkPolicySpec{Mode: v1beta1.NetworkPolicyDisabled}, clients: noRule, metrics: noRule},
		"Prometheus is elsewhere":       {namespaces: []string{"monitoring", "p8s"}, clients: namespace, metrics: prometheus},
		"peers of the metrics":          {policy: v1beta1.NetworkPolicySpec{AllowedScrapers: from}, namespaces: []string{"monitoring"}, clients: namespace, metrics: named},
		"not monitored":                 {monitoring: v1beta1.MonitoringSpec{Mode: v1beta1.MonitoringDisabled}, namespaces: []string{"monitoring"}, clients: namespace, metrics: noRule},
		"not monitored by the operator": {policy: v1beta1.NetworkPolicySpec{AllowedScrapers: from}, monitoring: v1beta1.MonitoringSpec{Mode: v1beta1.MonitoringDisabled}, clients: namespace, metrics: named},
	} {
		m := memcached(1, func(s *v1beta1.MemcachedSpec) { s.Access.NetworkPolicy, s.Monitoring = c.policy, c.monitoring })
		peers := peersByPort(m, Options{OperatorNamespace: "operators", MonitoringNamespaces: c.namespaces})
		if peers[11211] != c.clients || peers[9150] != c.metrics {
			t.Errorf("%s: clients %s, want %s; metrics %s, want %s", name, peers[11211], c.clients, peers[9150], c.metrics)
		}
		const agents = `[{"podSelector":{"matchLabels":{"app.kubernetes.io/instance":"cache","app.kubernetes.io/managed-by":"memcached-operator","app.kubernetes.io/name":"memcached"}}},` +
			`{"podSelector":{"matchLabels":{"app.kubernetes.io/name":"memcached-operator","control-plane":"controller-manager"}},"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"operators"}}}]`
		if c.clients != noRule && peers[11212] != agents { // also in a namespace that operators share
			t.Errorf("%s: the agents are open to %s", name, peers[11212])
		}
	}
}

func TestPeerThatTheAPIServerRejectsIsAProblem(t *testing.T) {
	for name, peer := range map[string]networkingv1.NetworkPolicyPeer{
		"address":  {IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/33"}},
		"except":   {IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8", Except: []string{"ten"}}},
		"operator": {NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Is", Values: []string{"shop"}}}}},
		"label":    {PodSelector: selects("not a value")},
	} {
		for field, change := range map[string]func(*v1beta1.MemcachedSpec, []networkingv1.NetworkPolicyPeer){
			"spec.access.networkPolicy.allowedClients[1]": func(s *v1beta1.MemcachedSpec, peers []networkingv1.NetworkPolicyPeer) {
				s.Access.NetworkPolicy.AllowedClients = peers
			},
			"spec.access.networkPolicy.allowedScrapers[1]": func(s *v1beta1.MemcachedSpec, peers []networkingv1.NetworkPolicyPeer) {
				s.Access.NetworkPolicy.AllowedScrapers = peers
			},
		} {
			m := memcached(1, func(s *v1beta1.MemcachedSpec) {
				change(s, []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}, peer})
			})
			if problem := AccessProblem(m); !strings.Contains(problem, field) {
				t.Errorf("%s: %q, want %s", name, problem, field)
			}
		}
	}
}

package memcached

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// clientPeers returns who may connect to memcached's port.
func clientPeers(t *testing.T, policy *networkingv1.NetworkPolicy) string {
	t.Helper()
	peers, ok := peersOf(policy, 11211)
	if !ok {
		t.Fatalf("no rule for 11211: %+v", policy.Spec.Ingress)
	}
	raw, err := yaml.Marshal(peers)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestNetworkPolicyFollowsItsMode(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	const (
		everyone  = "null\n"
		namespace = "- podSelector: {}\n"
		jobs      = "- podSelector:\n    matchLabels:\n      app.kubernetes.io/managed-by: memcached-operator\n      app.kubernetes.io/name: memcached-snapshot\n"
		shop      = "- namespaceSelector:\n    matchLabels:\n      team: shop\n"
		network   = "- ipBlock:\n    cidr: 10.0.0.0/8\n    except:\n    - 10.1.0.0/16\n"
	)
	selects := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"team": value}}
	}
	for _, c := range []struct {
		name   string
		policy v1alpha1.NetworkPolicy
		want   string // empty: no policy
	}{
		{"the default", v1alpha1.NetworkPolicy{}, namespace},
		{"the default, written out", v1alpha1.NetworkPolicy{Mode: v1alpha1.NetworkPolicyRestricted}, namespace},
		{"allowed clients", v1alpha1.NetworkPolicy{AllowedClients: []networkingv1.NetworkPolicyPeer{
			{NamespaceSelector: selects("shop")}, {IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8", Except: []string{"10.1.0.0/16"}}}}}, shop + network + jobs},
		{"open", v1alpha1.NetworkPolicy{Mode: v1alpha1.NetworkPolicyOpen}, everyone},
		{"disabled", v1alpha1.NetworkPolicy{Mode: v1alpha1.NetworkPolicyDisabled}, ""},
		{"restricted again", v1alpha1.NetworkPolicy{}, namespace},
	} {
		env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.NetworkPolicy = c.policy })
		m := env.converge("cache")
		policy := &networkingv1.NetworkPolicy{}
		switch exists := env.exists("cache", policy); {
		case exists != (c.want != ""):
			t.Fatalf("%s: the policy exists: %t", c.name, exists)
		case exists:
			if diff := cmp.Diff(c.want, clientPeers(t, policy)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, diff)
			}
		}
		if m.Status.Update != nil {
			t.Errorf("%s: shards are updated: %+v", c.name, m.Status.Update)
		}
	}
}

// peersOf returns who may connect to a port; ok is false if there is no rule for it.
func peersOf(policy *networkingv1.NetworkPolicy, port int32) (peers []networkingv1.NetworkPolicyPeer, ok bool) {
	i := slices.IndexFunc(policy.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool { return r.Ports[0].Port.IntVal == port })
	if i < 0 {
		return nil, false
	}
	return policy.Spec.Ingress[i].From, true
}

// Other pods could occupy the connections, so that Prometheus can't read the metrics.
func TestMetricsAreOpenToTheNamespaceAndPrometheusOnly(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	namespace := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}
	prometheus := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{"monitoring", "p8s"}}}}}
	named := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "monitoring"}}}
	for _, c := range []struct {
		name    string
		setting []string
		spec    v1alpha1.Monitoring
		want    []networkingv1.NetworkPolicyPeer // none: the port is closed
	}{
		{"the default", []string{"monitoring", "p8s"}, v1alpha1.Monitoring{}, []networkingv1.NetworkPolicyPeer{namespace, prometheus}},
		{"peers in the spec", []string{"monitoring"}, v1alpha1.Monitoring{From: []networkingv1.NetworkPolicyPeer{named}}, []networkingv1.NetworkPolicyPeer{named}},
		{"not monitored", []string{"monitoring"}, v1alpha1.Monitoring{Enabled: new(false)}, nil},
		{"not by the operator", []string{"monitoring"}, v1alpha1.Monitoring{Enabled: new(false), From: []networkingv1.NetworkPolicyPeer{named}}, []networkingv1.NetworkPolicyPeer{named}},
		{"without the setting", nil, v1alpha1.Monitoring{}, []networkingv1.NetworkPolicyPeer{namespace}},
	} {
		env.reconciler.Options.MonitoringNamespaces = c.setting
		env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Monitoring = c.spec })
		m := env.converge("cache")
		policy := &networkingv1.NetworkPolicy{}
		env.read("cache", policy)
		got, ok := peersOf(policy, 9150)
		if diff := cmp.Diff(c.want, got); diff != "" || ok != (len(c.want) > 0) {
			t.Errorf("%s: there is a rule: %t (-want +got):\n%s", c.name, ok, diff)
		}
		if m.Status.Update != nil {
			t.Errorf("%s: shards are updated: %+v", c.name, m.Status.Update)
		}
	}
	env.change("cache", func(m *v1alpha1.Memcached) {
		m.Spec.Monitoring.From = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/33"}}}
	})
	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonApplyRejected, "spec.monitoring.from[0]")
}

func TestDisabledNetworkPolicyLeavesAnotherOwnersAlone(t *testing.T) {
	env := newEnv(t)
	others := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "cache", Labels: resources.Labels("sessions")}}
	env.must(env.admin.Create(env.ctx, others))
	env.create("cache", "{size: 1, networkPolicy: {mode: Disabled}}")
	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected, "")
	after := &networkingv1.NetworkPolicy{}
	env.read("cache", after)
	if after.ResourceVersion != others.ResourceVersion {
		t.Errorf("the policy was changed: %+v", after)
	}

	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.NetworkPolicy.Mode = v1alpha1.NetworkPolicyOpen })
	env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNameConflict, "NetworkPolicy cache")
}

func TestShardsAreNotCreatedWithoutTheirNetworkPolicy(t *testing.T) {
	env := newEnv(t)
	for name, client := range map[string]string{
		"cidr":     "{ipBlock: {cidr: 10.0.0.0/33}}",
		"except":   "{ipBlock: {cidr: 10.0.0.0/8, except: [ten]}}",
		"selector": "{namespaceSelector: {matchExpressions: [{key: team, operator: Is, values: [shop]}]}}",
		"label":    "{podSelector: {matchLabels: {team: not a value}}}",
	} {
		env.create(name, "{size: 1, networkPolicy: {allowedClients: [{podSelector: {}}, "+client+"]}}")
		m := env.converge(name)
		env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonApplyRejected, "spec.networkPolicy.allowedClients[1]")
		if len(m.Status.Shards) > 0 {
			t.Errorf("%s: there are shards: %+v", name, m.Status.Shards)
		}
	}
}

// In a namespace that operators share, other pods must not reach the agents.
func TestAgentsAreOpenToTheOperatorsPodsOnly(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "{size: 1, networkPolicy: {mode: Open}}")
	env.converge("cache")
	policy := &networkingv1.NetworkPolicy{}
	env.read("cache", policy)
	want := []networkingv1.NetworkPolicyPeer{
		{PodSelector: &metav1.LabelSelector{MatchLabels: resources.Labels("cache")}},
		{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "memcached-operator", "control-plane": "controller-manager"}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "memcached-operator-system"}}},
	}
	if diff := cmp.Diff(want, policy.Spec.Ingress[1].From); diff != "" || policy.Spec.Ingress[1].Ports[0].Port.IntVal != 11212 {
		t.Errorf("rule %+v (-want +got):\n%s", policy.Spec.Ingress[1], diff)
	}
}

func TestSpecThatTheSettingsDontAllowChangesNoShard(t *testing.T) {
	env := newEnv(t)
	var err error
	env.reconciler.Options.Restrictions, err = resources.ParseRestrictions(func(name string) string {
		return map[string]string{"ALLOWED_IMAGE_PREFIXES": "registry.example.com/"}[name]
	})
	env.must(err)
	env.create("cache", "{size: 1, image: registry.example.com/memcached:1.6.38}")
	env.converge("cache")
	before := env.get("cache")
	for _, name := range []string{"cache", "new"} {
		if name == "new" {
			env.create(name, "{size: 1, image: evil.example.com/memcached:1.6.38}")
		} else {
			env.change(name, func(m *v1alpha1.Memcached) { m.Spec.Image = "evil.example.com/memcached:1.6.38" })
		}
		m := env.converge(name)
		env.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNotAllowed, "ALLOWED_IMAGE_PREFIXES")
		var policies networkingv1.NetworkPolicyList
		env.must(env.admin.List(env.ctx, &policies, client.InNamespace(env.namespace), client.MatchingLabels(resources.Labels(name))))
		if existed := name == "cache"; (len(policies.Items) > 0) != existed || len(m.Status.Shards) > 0 != existed {
			t.Errorf("%s has %d policies and the shards %+v", name, len(policies.Items), m.Status.Shards)
		}
	}
	if m := env.get("cache"); m.Status.Image != before.Status.Image || m.Status.Update != nil && m.Status.Update.Gate == "" {
		t.Errorf("the image is %s, was %s; update %+v", m.Status.Image, before.Status.Image, m.Status.Update)
	}
}

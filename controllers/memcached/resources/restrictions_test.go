package resources

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

func TestSettingsRestrictTheSpec(t *testing.T) {
	type settings map[string]string
	image := func(image string) v1beta1.MemcachedSpec {
		return v1beta1.MemcachedSpec{Pod: v1beta1.MemcachedPod{Image: image}}
	}
	scheduling := func(s v1beta1.Scheduling) v1beta1.MemcachedSpec {
		return v1beta1.MemcachedSpec{Pod: v1beta1.MemcachedPod{Scheduling: s}}
	}
	labels := func(key string) v1beta1.MemcachedSpec {
		return v1beta1.MemcachedSpec{Pod: v1beta1.MemcachedPod{Metadata: v1beta1.Metadata{Labels: map[string]string{"example.com/a": "", key: ""}}}}
	}
	annotations := func(key string) v1beta1.MemcachedSpec {
		return v1beta1.MemcachedSpec{Pod: v1beta1.MemcachedPod{Metadata: v1beta1.Metadata{Annotations: map[string]string{"example.com/a": "", key: ""}}}}
	}
	everything := v1beta1.MemcachedSpec{
		Pod: v1beta1.MemcachedPod{Image: "evil.example.com/x", Metadata: v1beta1.Metadata{Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{"a": "b"}},
			Scheduling:         v1beta1.Scheduling{PriorityClassName: "high", Tolerations: []corev1.Toleration{{}}, Affinity: &corev1.Affinity{}, NodeSelector: map[string]string{"a": "b"}},
			ServiceAccountName: "admin"},
		Access: v1beta1.MemcachedAccess{External: v1beta1.ExternalSpec{Mode: v1beta1.ExternalLoadBalancer}, Binding: v1beta1.BindingSpec{Mode: v1beta1.BindingSecret}},
		TLS:    v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, SecretName: "other"}, Auth: v1beta1.AuthSpec{Mode: v1beta1.AuthRequired, SecretName: "other"},
	}
	account := func(name string) v1beta1.MemcachedSpec {
		return v1beta1.MemcachedSpec{Pod: v1beta1.MemcachedPod{ServiceAccountName: name}}
	}
	external := func(mode v1beta1.ExternalMode) v1beta1.MemcachedSpec {
		return v1beta1.MemcachedSpec{Access: v1beta1.MemcachedAccess{External: v1beta1.ExternalSpec{Mode: mode}}}
	}
	secrets := settings{"ALLOWED_SECRET_PREFIXES": "memcached-,shop-"}
	peers := func(mode v1beta1.NetworkPolicyMode, clients ...networkingv1.NetworkPolicyPeer) v1beta1.MemcachedSpec {
		return v1beta1.MemcachedSpec{Access: v1beta1.MemcachedAccess{NetworkPolicy: v1beta1.NetworkPolicySpec{Mode: mode, AllowedClients: clients}}}
	}
	scrapers := func(peer networkingv1.NetworkPolicyPeer) v1beta1.MemcachedSpec {
		return v1beta1.MemcachedSpec{Access: v1beta1.MemcachedAccess{NetworkPolicy: v1beta1.NetworkPolicySpec{AllowedScrapers: []networkingv1.NetworkPolicyPeer{peer}}}}
	}
	pods := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}
	all := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}}
	some := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}}
	world := networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}}
	clients := func(kinds string) settings { return settings{"ALLOWED_CLIENT_PEERS": kinds} }
	registry := settings{"ALLOWED_IMAGE_PREFIXES": "registry.example.com/caches/, docker.io/library/memcached"}
	for name, c := range map[string]struct {
		settings settings
		spec     v1beta1.MemcachedSpec
		want     []string // nothing: it is allowed
	}{
		"no settings":                       {nil, everything, nil},
		"an empty spec":                     {registry, v1beta1.MemcachedSpec{Version: "1.6.38"}, nil},
		"an image of an allowed registry":   {registry, image("registry.example.com/caches/memcached:1.6.45"), nil},
		"an allowed image with a tag":       {registry, image("docker.io/library/memcached:1.6.45"), nil},
		"an allowed image with a digest":    {registry, image("docker.io/library/memcached@sha256:0"), nil},
		"an allowed image alone":            {registry, image("docker.io/library/memcached"), nil},
		"an image of another registry":      {registry, image("registry.example.com.evil/caches/x"), []string{"spec.pod.image registry.example.com.evil/caches/x", "ALLOWED_IMAGE_PREFIXES", "docker.io/library/memcached"}},
		"an image with a longer name":       {registry, image("docker.io/library/memcached-evil:1"), []string{"spec.pod.image"}},
		"an image that a node would expand": {registry, image("memcached:1.6.45"), []string{"spec.pod.image memcached:1.6.45"}},
		"an allowed label":                  {settings{"ALLOWED_POD_LABEL_PREFIXES": "team,example.com/"}, labels("team"), nil},
		"another label":                     {settings{"ALLOWED_POD_LABEL_PREFIXES": "team,example.com/"}, labels("app"), []string{"pod.metadata.labels app", "ALLOWED_POD_LABEL_PREFIXES", "team,example.com/"}},
		"labels don't count as annotations": {settings{"ALLOWED_POD_ANNOTATION_PREFIXES": "-"}, labels("app"), nil},
		"no annotation is allowed":          {settings{"ALLOWED_POD_ANNOTATION_PREFIXES": "-"}, annotations("b"), []string{"pod.metadata.annotations b", "ALLOWED_POD_ANNOTATION_PREFIXES"}},
		"an allowed priority class":         {settings{"ALLOWED_PRIORITY_CLASSES": "low,high"}, scheduling(v1beta1.Scheduling{PriorityClassName: "high"}), nil},
		"another priority class":            {settings{"ALLOWED_PRIORITY_CLASSES": "low,high"}, scheduling(v1beta1.Scheduling{PriorityClassName: "higher"}), []string{"priorityClassName higher", "ALLOWED_PRIORITY_CLASSES"}},
		"tolerations":                       {settings{"ALLOW_TOLERATIONS": "false"}, scheduling(v1beta1.Scheduling{Tolerations: []corev1.Toleration{{}}}), []string{"pod.tolerations", "ALLOW_TOLERATIONS"}},
		"tolerations that are allowed":      {settings{"ALLOW_TOLERATIONS": "true"}, scheduling(v1beta1.Scheduling{Tolerations: []corev1.Toleration{{}}}), nil},
		"affinity":                          {settings{"ALLOW_AFFINITY": "false"}, scheduling(v1beta1.Scheduling{Affinity: &corev1.Affinity{}}), []string{"pod.affinity", "ALLOW_AFFINITY"}},
		"a node selector":                   {settings{"ALLOW_AFFINITY": "false"}, scheduling(v1beta1.Scheduling{NodeSelector: map[string]string{"a": "b"}}), []string{"pod.nodeSelector", "ALLOW_AFFINITY"}},
		"an allowed service account":        {settings{"ALLOWED_SERVICE_ACCOUNTS": "cache,mesh"}, account("mesh"), nil},
		"another service account":           {settings{"ALLOWED_SERVICE_ACCOUNTS": "cache,mesh"}, account("mesh-admin"), []string{"spec.pod.serviceAccountName mesh-admin", "ALLOWED_SERVICE_ACCOUNTS", "cache,mesh"}},
		"no service account":                {settings{"ALLOWED_SERVICE_ACCOUNTS": "-"}, account(""), nil},
		"annotations of load balancers": {settings{"ALLOWED_POD_ANNOTATION_PREFIXES": "example.com/"}, v1beta1.MemcachedSpec{Access: v1beta1.MemcachedAccess{External: v1beta1.ExternalSpec{
			Mode: v1beta1.ExternalLoadBalancer, Annotations: map[string]string{"other.example/a": "b"},
		}}}, []string{"spec.access.external.annotations other.example/a", "ALLOWED_POD_ANNOTATION_PREFIXES"}},
		"a load balancer":                   {settings{"ALLOWED_SERVICE_TYPES": "ClusterIP"}, external(v1beta1.ExternalLoadBalancer), []string{"spec.access.external.mode LoadBalancer", "ALLOWED_SERVICE_TYPES"}},
		"an allowed load balancer":          {settings{"ALLOWED_SERVICE_TYPES": "LoadBalancer"}, external(v1beta1.ExternalLoadBalancer), nil},
		"no load balancer":                  {settings{"ALLOWED_SERVICE_TYPES": "LoadBalancer"}, external(v1beta1.ExternalDisabled), nil},
		"no mode":                           {settings{"ALLOWED_SERVICE_TYPES": "LoadBalancer"}, external(""), nil},
		"another Secret with a certificate": {secrets, v1beta1.MemcachedSpec{TLS: v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, SecretName: "ingress"}}, []string{"spec.tls with the Secret ingress", "ALLOWED_SECRET_PREFIXES", "memcached-,shop-"}},
		"the default name of a certificate": {secrets, v1beta1.MemcachedSpec{TLS: v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}}, []string{"spec.tls with the Secret cache-tls"}},
		"another Secret with users":         {secrets, v1beta1.MemcachedSpec{Auth: v1beta1.AuthSpec{Mode: v1beta1.AuthRequired, SecretName: "admin-token"}}, []string{"spec.auth with the Secret admin-token"}},
		"another Secret of a binding":       {secrets, v1beta1.MemcachedSpec{Access: v1beta1.MemcachedAccess{Binding: v1beta1.BindingSpec{Mode: v1beta1.BindingSecret}}}, []string{"spec.access.binding with the Secret cache-binding"}},
		"allowed Secrets":                   {secrets, v1beta1.MemcachedSpec{TLS: v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, SecretName: "shop-tls"}, Auth: v1beta1.AuthSpec{Mode: v1beta1.AuthRequired, SecretName: "memcached-users"}}, nil},
		"Secrets that no field names":       {secrets, v1beta1.MemcachedSpec{}, nil},
		"a key that begins with a name":     {settings{"ALLOWED_POD_LABEL_PREFIXES": "team,example.com"}, labels("team-x"), []string{"pod.metadata.labels team-x"}},
		"a key of another domain":           {settings{"ALLOWED_POD_LABEL_PREFIXES": "team,example.com"}, labels("example.com.evil.io/x"), []string{"example.com.evil.io/x"}},
		"a key that begins with a word":     {settings{"ALLOWED_POD_ANNOTATION_PREFIXES": "example.com/team"}, annotations("example.com/teams"), []string{"example.com/a"}},
		"a key of an allowed domain":        {settings{"ALLOWED_POD_LABEL_PREFIXES": "team,example.com"}, labels("team/x"), nil},
		"a Secret with a longer word":       {settings{"ALLOWED_SECRET_PREFIXES": "shop"}, v1beta1.MemcachedSpec{TLS: v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, SecretName: "shopping-tls"}}, []string{"shopping-tls"}},
		"a Secret with another word":        {settings{"ALLOWED_SECRET_PREFIXES": "shop"}, v1beta1.MemcachedSpec{TLS: v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, SecretName: "shop-tls"}}, nil},
		"clients without the setting":       {nil, peers(v1beta1.NetworkPolicyOpen), nil},
		"no clients":                        {clients("PodsOfNamespace"), peers(v1beta1.NetworkPolicyRestricted), nil},
		"pods of the namespace":             {clients("Addresses"), peers(v1beta1.NetworkPolicyRestricted, pods), nil},
		"other namespaces":                  {clients("PodsOfNamespace,Addresses"), peers(v1beta1.NetworkPolicyRestricted, pods, all), []string{"allowedClients with a namespaceSelector", "ALLOWED_CLIENT_PEERS of the operator is PodsOfNamespace,Addresses"}},
		"pods of other namespaces":          {clients("PodsOfNamespace"), peers(v1beta1.NetworkPolicyRestricted, some), []string{"allowedClients with a namespaceSelector"}},
		"allowed namespaces":                {clients("Namespaces"), peers(v1beta1.NetworkPolicyRestricted, all, some, pods), nil},
		"addresses":                         {clients("Namespaces"), peers(v1beta1.NetworkPolicyRestricted, world), []string{"allowedClients with the ipBlock 0.0.0.0/0"}},
		"allowed addresses":                 {clients("Addresses"), peers(v1beta1.NetworkPolicyRestricted, world), nil},
		"scrapers at addresses":             {clients("Namespaces"), scrapers(world), []string{"allowedScrapers with the ipBlock 0.0.0.0/0"}},
		"scrapers in other namespaces":      {clients("Addresses"), scrapers(some), []string{"allowedScrapers with a namespaceSelector"}},
		"an open network policy":            {clients("Namespaces"), peers(v1beta1.NetworkPolicyOpen), []string{"spec.access.networkPolicy.mode Open"}},
		"no network policy":                 {clients("Addresses"), peers(v1beta1.NetworkPolicyDisabled), []string{"spec.access.networkPolicy.mode Disabled"}},
		"an allowed open policy":            {clients("Addresses,Namespaces"), peers(v1beta1.NetworkPolicyOpen), nil},
		"spreading is always allowed": {settings{"ALLOW_AFFINITY": "false"}, scheduling(v1beta1.Scheduling{
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{}}}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseRestrictions(func(setting string) string { return c.settings[setting] })
			if err != nil {
				t.Fatal(err)
			}
			m := &v1beta1.Memcached{Spec: c.spec}
			m.Name = "cache"
			got := r.Violation(m)
			if (got == "") != (c.want == nil) {
				t.Errorf("got %q, want words %q", got, c.want)
			}
			for _, word := range c.want {
				if !strings.Contains(got, word) {
					t.Errorf("%q lacks %q", got, word)
				}
			}
		})
	}
}

func TestInvalidSettingsAreReported(t *testing.T) {
	for setting, value := range map[string]string{
		"ALLOW_TOLERATIONS": "maybe", "ALLOW_AFFINITY": "2", "ALLOWED_SERVICE_TYPES": "ClusterIP,NodePort", "ALLOWED_CLIENT_PEERS": "Everyone",
		"ALLOWED_IMAGE_PREFIXES": "docker.io/library/,registry.example.com", // matches registry.example.com.evil, too
	} {
		_, err := ParseRestrictions(func(name string) string {
			if name == setting {
				return value
			}
			return ""
		})
		if err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("%s=%s: error %v", setting, value, err)
		}
	}
}

// The operator would wait for nodes that it may not read.
func TestOperatorOfSomeNamespacesRejectsMovesFromNodes(t *testing.T) {
	m := &v1beta1.Memcached{}
	m.Spec.UpdateStrategy.Handover.NodeDrain.Mode = v1beta1.NodeDrainEarly
	if got := (Options{}).Violation(m); got != "" {
		t.Error(got)
	}
	some := Options{SomeNamespaces: true}
	if got := some.Violation(m); !strings.Contains(got, "nodeDrain.mode Early isn't allowed") {
		t.Errorf("the violation is %q", got)
	}
	m.Spec.UpdateStrategy.Handover.Mode = v1beta1.HandoverDisabled // no shard would move
	if got := some.Violation(m); got != "" {
		t.Error(got)
	}
}

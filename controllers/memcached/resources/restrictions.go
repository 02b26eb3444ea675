package resources

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// The settings that restrict what a spec may contain, as environment variables of the operator. An
// empty setting allows all values.
const (
	// settingImages lists prefixes of spec.pod.image, separated by commas. Each contains a slash, and
	// ends where a part of an image reference does.
	settingImages = "ALLOWED_IMAGE_PREFIXES"
	// settingLabels and settingAnnotations list prefixes of the keys in spec.pod.metadata
	// and spec.access.serviceMetadata, which end where a part of a key does.
	settingLabels      = "ALLOWED_POD_LABEL_PREFIXES"
	settingAnnotations = "ALLOWED_POD_ANNOTATION_PREFIXES"
	// settingPriorityClasses lists values of spec.pod.priorityClassName.
	settingPriorityClasses = "ALLOWED_PRIORITY_CLASSES"
	// settingTolerations and settingAffinity are false if a spec must not contain
	// spec.pod.tolerations, or affinity and nodeSelector.
	settingTolerations = "ALLOW_TOLERATIONS"
	settingAffinity    = "ALLOW_AFFINITY"
	// settingServiceAccounts lists values of spec.pod.serviceAccountName, and of serviceAccountName of a store.
	settingServiceAccounts = "ALLOWED_SERVICE_ACCOUNTS"
	// settingServiceTypes lists the types of Services that spec.access may lead to, in addition to ClusterIP.
	settingServiceTypes = "ALLOWED_SERVICE_TYPES"
	// settingSecrets lists prefixes of the names of Secrets, which end where a word does: those that the shards' pods mount,
	// except for the Secret of the handovers, and those of a store.
	settingSecrets = "ALLOWED_SECRET_PREFIXES"
	// settingClientPeers lists the kinds of peers that spec.access.networkPolicy may admit, in addition to the pods of the
	// namespace.
	settingClientPeers = "ALLOWED_CLIENT_PEERS"
)

// The kinds of peers in a NetworkPolicy.
const (
	peerPods       = "PodsOfNamespace"
	peerNamespaces = "Namespaces"
	peerAddresses  = "Addresses"
)

// Restrictions are what the operator's settings allow in a spec. The zero value allows everything.
type Restrictions struct {
	images, labels, annotations, priorityClasses, serviceAccounts, serviceTypes, secrets, clientPeers []string
	denyTolerations, denyAffinity                                                                     bool
}

// ParseRestrictions reads the settings with a function such as os.Getenv.
func ParseRestrictions(getenv func(string) string) (Restrictions, error) {
	var r Restrictions
	for setting, list := range map[string]*[]string{
		settingImages: &r.images, settingLabels: &r.labels, settingAnnotations: &r.annotations, settingPriorityClasses: &r.priorityClasses,
		settingServiceAccounts: &r.serviceAccounts, settingServiceTypes: &r.serviceTypes, settingSecrets: &r.secrets, settingClientPeers: &r.clientPeers,
	} {
		for entry := range strings.SplitSeq(getenv(setting), ",") {
			if entry = strings.TrimSpace(entry); entry != "" {
				*list = append(*list, entry)
			}
		}
	}
	for _, prefix := range r.images {
		if !strings.Contains(prefix, "/") {
			return r, fmt.Errorf("%s contains %q: write a prefix with a slash, such as registry.example.com/ or docker.io/library/memcached", settingImages, prefix)
		}
	}
	for _, names := range []struct {
		setting     string
		list, known []string
	}{
		{settingServiceTypes, r.serviceTypes, []string{string(corev1.ServiceTypeClusterIP), string(corev1.ServiceTypeLoadBalancer)}},
		{settingClientPeers, r.clientPeers, []string{peerPods, peerNamespaces, peerAddresses}},
	} {
		for _, name := range names.list {
			if !slices.Contains(names.known, name) {
				return r, fmt.Errorf("%s contains %q: write a list of %s", names.setting, name, strings.Join(names.known, ", "))
			}
		}
	}
	for setting, deny := range map[string]*bool{settingTolerations: &r.denyTolerations, settingAffinity: &r.denyAffinity} {
		text := getenv(setting)
		if text == "" {
			continue
		}
		allow, err := strconv.ParseBool(text)
		if err != nil {
			return r, fmt.Errorf("%s is %q: set it to true or false", setting, text)
		}
		*deny = !allow
	}
	return r, nil
}

// Violation returns which value of a Memcached's spec an operator with these options doesn't allow, and what to do; empty if
// it allows all.
func (o Options) Violation(m *v1beta1.Memcached) string {
	if o.SomeNamespaces && m.Spec.UpdateStrategy.Handover.MovesEarly() {
		return fmt.Sprintf("spec.updateStrategy.handover.nodeDrain.mode %s isn't allowed: the operator works in some namespaces (WATCH_NAMESPACE) and may not read nodes; "+
			"write Disabled, or install the operator for all namespaces", m.Spec.UpdateStrategy.Handover.NodeDrain.Mode)
	}
	return o.Restrictions.Violation(m)
}

// Violation returns which value of a Memcached's spec the settings don't allow, and what to do; empty if they
// allow all. Without spec.pod.image, the image is the operator's default, which they always allow.
func (r Restrictions) Violation(m *v1beta1.Memcached) string {
	spec := &m.Spec
	switch {
	case spec.Pod.Image != "" && !allows(r.images, func(prefix string) bool { return beginsWith(spec.Pod.Image, prefix, "/:@") }):
		return violation("spec.pod.image "+spec.Pod.Image, settingImages, r.images)
	case IsExternal(m) && !allows(r.serviceTypes, func(name string) bool { return name == string(corev1.ServiceTypeLoadBalancer) }):
		return violation("spec.access.external.mode LoadBalancer", settingServiceTypes, r.serviceTypes)
	}
	if what := cmp.Or(r.PodViolation(&spec.Pod), r.metadataViolation("spec.access.serviceMetadata", spec.Access.ServiceMetadata),
		r.metadataViolation("spec.access.external", v1beta1.Metadata{Annotations: spec.Access.External.Annotations})); what != "" {
		return what
	}
	if what := r.peerViolation(&spec.Access.NetworkPolicy); what != "" {
		return violation(what, settingClientPeers, r.clientPeers)
	}
	return r.SecretViolation(m)
}

// PodViolation is the part of Violation that concerns every pod of a Memcached.
func (r Restrictions) PodViolation(pod *v1beta1.MemcachedPod) string {
	scheduling, account := &pod.Scheduling, pod.ServiceAccountName
	switch {
	case scheduling.PriorityClassName != "" && !allows(r.priorityClasses, func(name string) bool { return name == scheduling.PriorityClassName }):
		return violation("spec.pod.priorityClassName "+scheduling.PriorityClassName, settingPriorityClasses, r.priorityClasses)
	case r.denyTolerations && len(scheduling.Tolerations) > 0:
		return violation("spec.pod.tolerations", settingTolerations, []string{"false"})
	case r.denyAffinity && scheduling.Affinity != nil:
		return violation("spec.pod.affinity", settingAffinity, []string{"false"})
	case r.denyAffinity && len(scheduling.NodeSelector) > 0:
		return violation("spec.pod.nodeSelector", settingAffinity, []string{"false"})
	case account != "" && !allows(r.serviceAccounts, func(name string) bool { return name == account }):
		return violation("spec.pod.serviceAccountName "+account, settingServiceAccounts, r.serviceAccounts)
	}
	return r.metadataViolation("spec.pod.metadata", pod.Metadata)
}

func (r Restrictions) metadataViolation(field string, metadata v1beta1.Metadata) string {
	for _, keys := range []struct {
		field, setting string
		allowed        []string
		of             map[string]string
	}{
		{field + ".labels", settingLabels, r.labels, metadata.Labels},
		{field + ".annotations", settingAnnotations, r.annotations, metadata.Annotations},
	} {
		for _, key := range slices.Sorted(maps.Keys(keys.of)) {
			if !allows(keys.allowed, func(prefix string) bool { return beginsWith(key, prefix, "/") }) {
				return violation(keys.field+" "+key, keys.setting, keys.allowed)
			}
		}
	}
	return ""
}

// peerViolation returns which peers of a network policy the settings don't allow; empty if they allow all. The other modes
// admit everyone, or leave that to the policies of the namespace, which may be none.
func (r Restrictions) peerViolation(spec *v1beta1.NetworkPolicySpec) string {
	allowed := func(kind string) bool {
		return kind == peerPods || allows(r.clientPeers, func(name string) bool { return name == kind })
	}
	if spec.Mode != "" && spec.Mode != v1beta1.NetworkPolicyRestricted && !(allowed(peerNamespaces) && allowed(peerAddresses)) {
		return "spec.access.networkPolicy.mode " + string(spec.Mode)
	}
	for _, list := range []struct {
		field string
		peers []networkingv1.NetworkPolicyPeer
	}{{"allowedClients", spec.AllowedClients}, {"allowedScrapers", spec.AllowedScrapers}} {
		for _, peer := range list.peers {
			switch {
			case peer.IPBlock != nil && !allowed(peerAddresses):
				return "spec.access.networkPolicy." + list.field + " with the ipBlock " + peer.IPBlock.CIDR
			case peer.NamespaceSelector != nil && !allowed(peerNamespaces):
				return "spec.access.networkPolicy." + list.field + " with a namespaceSelector"
			}
		}
	}
	return ""
}

// SecretViolation is the part of Violation that concerns the Secrets of a Memcached.
func (r Restrictions) SecretViolation(m *v1beta1.Memcached) string {
	certificate, users, binding := v1beta1.TLSSecretName(m.Name, m.Spec.TLS), v1beta1.AuthSecretName(m.Name, m.Spec.Auth), v1beta1.BindingSecretName(m.Name)
	switch {
	case m.Spec.TLS.IsEnabled() && !r.allowSecret(certificate):
		return violation("spec.tls with the Secret "+certificate, settingSecrets, r.secrets)
	case m.Spec.Auth.IsRequired() && !r.allowSecret(users):
		return violation("spec.auth with the Secret "+users, settingSecrets, r.secrets)
	case m.Spec.Access.Binding.IsEnabled() && !r.allowSecret(binding):
		return violation("spec.access.binding with the Secret "+binding, settingSecrets, r.secrets)
	}
	return ""
}

// StoreViolation returns which Secret or ServiceAccount of a store the settings don't allow to a Job, and what to do; empty if
// they allow all.
func (r Restrictions) StoreViolation(store v1beta1.SnapshotStore) string {
	s := store.S3
	if s == nil {
		return ""
	}
	account, credentials, ca := s.ServiceAccountName, s.CredentialsSecretName, s.CASecretName
	switch {
	case account != "" && !allows(r.serviceAccounts, func(name string) bool { return name == account }):
		return violation("serviceAccountName "+account+" of the store", settingServiceAccounts, r.serviceAccounts)
	case credentials != "" && !r.allowSecret(credentials):
		return violation("credentialsSecretName "+credentials+" of the store", settingSecrets, r.secrets)
	case ca != "" && !r.allowSecret(ca):
		return violation("caSecretName "+ca+" of the store", settingSecrets, r.secrets)
	}
	return ""
}

// allowSecret reports whether the shards' pods and the Jobs may mount a Secret.
func (r Restrictions) allowSecret(name string) bool {
	return allows(r.secrets, func(prefix string) bool { return beginsWith(name, prefix, "-.") })
}

func violation(what, setting string, allowed []string) string {
	return fmt.Sprintf("%s isn't allowed: %s of the operator is %s; use another one, or ask the administrator of the operator",
		what, setting, strings.Join(allowed, ","))
}

// allows reports whether a list is empty or has an entry that matches.
func allows(list []string, matches func(string) bool) bool {
	return len(list) == 0 || slices.ContainsFunc(list, matches)
}

// beginsWith reports whether a name is a prefix, continues it at one of the separators, or after a separator at its end:
// registry.example.com/cache isn't a prefix of registry.example.com/cache-of-others, and example.com none of
// example.com.others/x.
func beginsWith(name, prefix, separators string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], separators) || strings.ContainsAny(prefix[len(prefix)-1:], separators))
}

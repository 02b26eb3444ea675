package resources

import (
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// AccessProblem returns which value of spec.access the API server would reject, and what to do; empty if it rejects none. Shards
// without their NetworkPolicy would be open to everyone.
func AccessProblem(m *v1beta1.Memcached) string {
	access := &m.Spec.Access
	peers := map[string][]networkingv1.NetworkPolicyPeer{}
	if hasNetworkPolicy(m) {
		peers["allowedScrapers"] = access.NetworkPolicy.AllowedScrapers
		if access.NetworkPolicy.Mode != v1beta1.NetworkPolicyOpen {
			peers["allowedClients"] = access.NetworkPolicy.AllowedClients
		}
	}
	for _, field := range []string{"allowedClients", "allowedScrapers"} {
		for i := range peers[field] {
			if err := validatePeer(&peers[field][i]); err != nil {
				return fmt.Sprintf("spec.access.networkPolicy.%s[%d]: %s; correct it", field, i, err)
			}
		}
	}
	if !IsExternal(m) {
		return ""
	}
	for i, cidr := range access.External.SourceRanges {
		if _, _, err := net.ParseCIDR(cidr); err != nil {
			return fmt.Sprintf("spec.access.external.sourceRanges[%d]: %s; correct it", i, err)
		}
	}
	return ""
}

func validatePeer(peer *networkingv1.NetworkPolicyPeer) error {
	if block := peer.IPBlock; block != nil {
		for _, cidr := range append([]string{block.CIDR}, block.Except...) {
			if _, _, err := net.ParseCIDR(cidr); err != nil {
				return err
			}
		}
	}
	for _, selector := range []*metav1.LabelSelector{peer.PodSelector, peer.NamespaceSelector} {
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			return err
		}
	}
	return nil
}

// IPFamilyProblem returns why a Service can't get the IP families of the spec, and what to do; empty if it can.
func IPFamilyProblem(m *v1beta1.Memcached, service *corev1.Service) string {
	want, live := m.Spec.Access.IPFamilies, service.Spec.IPFamilies
	if len(want) == 0 || len(live) == 0 || want[0] == live[0] {
		return ""
	}
	return fmt.Sprintf("spec.access.ipFamilies begins with %s, and the Service %s with %s, which Kubernetes can't change; "+
		"write %s first, or delete the Services of the Memcached to recreate them with other addresses", want[0], service.Name, live[0], live[0])
}

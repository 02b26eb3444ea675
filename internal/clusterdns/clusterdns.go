// Package clusterdns knows the domain of the cluster, and makes names absolute.
//
// A pod first looks for a name with fewer dots than its option ndots, five, in each of its search domains, and one of these may
// have the answer: that of its node, with a record for all names, or a namespace named svc, for cache-0.shop.svc.
package clusterdns

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Default is the domain of a cluster that names no other.
const Default = "cluster.local"

// Absolute returns the address with a final dot behind its host name, so that no search domain applies. It returns addresses of
// IP addresses and of names without a domain unchanged.
func Absolute(address string) string {
	host, port, err := net.SplitHostPort(address)
	_, notIP := netip.ParseAddr(host)
	if err != nil || notIP == nil || !strings.Contains(host, ".") || strings.HasSuffix(host, ".") {
		return address
	}
	return net.JoinHostPort(host+".", port)
}

// Domain returns the domain of the cluster from the search domains that the kubelet gives a pod: <namespace>.svc.cluster.local,
// svc.cluster.local and cluster.local. Outside of a pod, and with search domains of another form, it is Default.
func Domain() string { return domain("/etc/resolv.conf") }

func domain(resolvConf string) string {
	text, err := os.ReadFile(resolvConf)
	if err != nil {
		return Default
	}
	var search []string
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == "search" {
			search = slices.Clone(words[1:]) // the last line counts
		}
	}
	if len(search) < 2 {
		return Default
	}
	ofNamespace, ofServices := strings.TrimSuffix(search[0], "."), strings.TrimSuffix(search[1], ".")
	if found, ok := strings.CutPrefix(ofServices, "svc."); ok && strings.HasSuffix(ofNamespace, "."+ofServices) {
		return found
	}
	return Default
}

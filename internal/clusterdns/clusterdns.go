// Package clusterdns makes the names of Services absolute.
//
// A pod resolves cache-0.shop.svc with each of its search domains, the namespace's first: it asks for
// cache-0.shop.svc.team.svc.cluster.local, cache-0.shop.svc.svc.cluster.local and
// cache-0.shop.svc.cluster.local. The second is a pod's name in a namespace that is named svc, so a
// user who can create that namespace can answer for the Services of all others.
package clusterdns

import (
	"net"
	"os"
	"slices"
	"strings"
)

// Absolute returns an address such as cache-0.shop.svc:11211 with the domain of the cluster and a
// final dot, so that no search domain applies. It returns other addresses, and all addresses outside
// of a pod, unchanged.
func Absolute(address string) string { return absolute(address, "/etc/resolv.conf") }

func absolute(address, resolvConf string) string {
	host, port, err := net.SplitHostPort(address)
	name, isService := strings.CutSuffix(host, ".svc")
	domain := servicesDomain(resolvConf)
	if err != nil || !isService || domain == "" {
		return address
	}
	return net.JoinHostPort(name+"."+domain+".", port)
}

// servicesDomain returns the domain of all Services, such as svc.cluster.local, from the search
// domains that the kubelet gives a pod: <namespace>.svc.cluster.local, svc.cluster.local and
// cluster.local. It is empty if the first two are of another form.
func servicesDomain(resolvConf string) string {
	text, err := os.ReadFile(resolvConf)
	if err != nil {
		return ""
	}
	var search []string
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == "search" {
			search = slices.Clone(words[1:]) // the last line counts
		}
	}
	if len(search) < 2 {
		return ""
	}
	ofNamespace, domain := strings.TrimSuffix(search[0], "."), strings.TrimSuffix(search[1], ".")
	if !strings.HasPrefix(domain, "svc.") || !strings.HasSuffix(ofNamespace, "."+domain) {
		return ""
	}
	return domain
}

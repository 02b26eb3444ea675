package agent

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
)

const resolvConf = "/etc/resolv.conf"

type lookUpFunc func(ctx context.Context, name string) ([]string, error)

// isNotFound reports whether a name exists in none of the search domains.
//
// The resolver tries a name with each of these domains and then as it is, and returns
// the outcome of the last. If the cluster's name server has no upstream server, it
// refuses that query, which says nothing about the name.
func isNotFound(ctx context.Context, name string, domains []string, lookUp lookUpFunc) bool {
	for _, domain := range domains {
		_, err := lookUp(ctx, name+"."+strings.TrimSuffix(domain, ".")+".")
		var dns *net.DNSError
		if !errors.As(err, &dns) || !dns.IsNotFound {
			return false
		}
	}
	return len(domains) > 0
}

// searchDomains returns the domains of a resolv.conf; none if it cannot be read.
func searchDomains(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var domains []string
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "search" {
			domains = words[1:] // the last line counts
		}
	}
	return domains
}

package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
)

const resolvConf = "/etc/resolv.conf"

// isUnknown says whether a name exists in none of the domains that are searched
// for it.
//
// The resolver tries a name with each of these domains and then as it stands, and
// tells what came of the last. In a cluster whose name server has no other behind
// it that is a refusal, which says nothing of the name.
func isUnknown(ctx context.Context, name string, domains []string, lookUp func(ctx context.Context, name string) ([]string, error)) bool {
	for _, domain := range domains {
		_, err := lookUp(ctx, name+"."+strings.TrimSuffix(domain, ".")+".")
		var dns *net.DNSError
		if !errors.As(err, &dns) || !dns.IsNotFound {
			return false
		}
	}
	return len(domains) > 0
}

// searchDomains returns the domains of a resolv.conf; none when it cannot be read.
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

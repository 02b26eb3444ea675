package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/podhttp"
)

const (
	drainInterval = 250 * time.Millisecond
	// endpointPropagation is the time until the proxies of all nodes use the other pod.
	endpointPropagation = time.Second
	// missingNames is how many successive lookups must not find the Service's name: a
	// single one can be a name server that is starting.
	missingNames = 2
)

// drain waits until the Service no longer needs this pod, and returns the reason.
func drain(ctx context.Context, service, podUID string, timeout time.Duration) string {
	if service == "" {
		return "there is no Service"
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d := drainer{podUID: podUID}
	for {
		reason, replaced := d.evaluate(queryService(ctx, service))
		if replaced {
			sleep(ctx, endpointPropagation)
		}
		if reason != "" {
			return reason
		}
		if !sleep(ctx, drainInterval) {
			return fmt.Sprintf("no other pod responded at %s within %s", service, timeout)
		}
	}
}

// drainer evaluates one response of the Service after the other.
type drainer struct {
	podUID  string
	missing int
}

// evaluate returns why the drain is over, empty while it is not, and reports whether
// another pod serves.
func (d *drainer) evaluate(status wire.Status, err error) (reason string, replaced bool) {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		if d.missing++; d.missing >= missingNames {
			return "the Service is deleted: its name does not resolve", false
		}
		return "", false
	}
	d.missing = 0
	if err == nil && status.PodUID != "" && status.PodUID != d.podUID && status.Phase == wire.PhaseServing {
		return "pod " + status.PodUID + " serves behind the Service", true
	}
	return "", false
}

func queryService(ctx context.Context, service string) (wire.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	status, err := podhttp.Get[wire.Status](ctx, service, wire.StatusPath)
	if dns, ok := errors.AsType[*net.DNSError](err); ok && !dns.IsNotFound {
		host, _, _ := net.SplitHostPort(service)
		dns.IsNotFound = isNotFound(ctx, host, searchDomains("/etc/resolv.conf"), net.DefaultResolver.LookupHost)
	}
	return status, err
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// isNotFound reports whether a name exists in none of the search domains.
//
// The resolver tries a name with each of these domains and then as it is, and returns
// the outcome of the last. If the cluster's name server has no upstream server, it
// refuses that query, which says nothing about the name.
func isNotFound(ctx context.Context, name string, domains []string, lookUp func(context.Context, string) ([]string, error)) bool {
	for _, domain := range domains {
		_, err := lookUp(ctx, name+"."+strings.TrimSuffix(domain, ".")+".")
		if dns, ok := errors.AsType[*net.DNSError](err); !ok || !dns.IsNotFound {
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

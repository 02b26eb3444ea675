package e2e

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// keysStay returns a function that checks, when pods were replaced, that dskit still picks the same server for each key. Its
// resolver has no search domains: it looks up a name as it is, as musl does with the option ndots 1.
func (s *space) keysStay(name string) (check func(what string)) {
	s.Helper()
	const withPodAddresses = "dnssrv+"
	var keys strings.Builder
	for i := range 20_000 {
		_, _ = fmt.Fprintf(&keys, "key-%d\n", i)
	}
	pick := func() map[string][]string {
		s.Helper()
		servers := s.Available(name).Status.Servers
		_, domain, _ := strings.Cut(servers[0], ".")
		srv := "_memcached._tcp." + name + "." + strings.TrimSuffix(domain, ":11211")
		var lookups, services, pods []string
		for ordinal, server := range servers {
			lookups = append(lookups, "dns+"+server)
			services = append(services, s.Address(name, ordinal))
			pods = append(pods, net.JoinHostPort(s.Pods(name)[cluster.ShardName(name, ordinal)].Status.PodIP, "11211"))
		}
		picked := map[string][]string{}
		for with, list := range map[string]struct{ addresses, include []string }{
			"names":          {addresses: servers},
			"dns+":           {lookups, services},
			"dnssrvnoa+":     {addresses: []string{"dnssrvnoa+" + srv}},
			withPodAddresses: {[]string{withPodAddresses + srv}, pods},
		} {
			// The cluster's DNS learns of a pod some time after the status, and forgets another one as late.
			s.Eventually("all servers of "+strings.Join(list.addresses, ","), func(ctx context.Context) error {
				cmd := exec.CommandContext(ctx, "/dskit", list.addresses...)
				cmd.Stdin = strings.NewReader(keys.String())
				out, err := cmd.CombinedOutput()
				picked[with] = strings.Fields(string(out))
				found := slices.Compact(slices.Sorted(slices.Values(picked[with])))
				missing := slices.DeleteFunc(slices.Clone(list.include), func(server string) bool { return slices.Contains(found, server) })
				if err != nil || len(found) != len(servers) || len(missing) > 0 {
					return fmt.Errorf("they are %q without %q, %w", found, missing, err)
				}
				return nil
			})
			for i, server := range picked[with] {
				if ordinal := slices.Index(pods, server); ordinal >= 0 {
					picked[with][i] = cluster.ShardName(name, ordinal)
				}
			}
		}
		return picked
	}
	before := pick()
	return func(what string) {
		s.Helper()
		after := pick()
		for with, picked := range after {
			moved := 0
			for i, server := range picked {
				if server != before[with][i] {
					moved++
				}
			}
			report := s.Logf
			if moved > 0 && with != withPodAddresses {
				report = s.Errorf
			}
			report("%s: with %s, %d of %d keys moved", what, with, moved, len(picked))
		}
		before = after
	}
}

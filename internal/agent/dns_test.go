package agent

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestNameIsNotFoundIfNoSearchDomainHasIt(t *testing.T) {
	domains := []string{"ns.svc.cluster.local", "cluster.local."}
	notFound := &net.DNSError{Err: "no such host", IsNotFound: true}
	for name, c := range map[string]struct {
		domains   []string
		responses map[string]error
		want      bool
	}{
		"no domain has it": {domains, map[string]error{
			"cache-0.ns.svc.ns.svc.cluster.local.": notFound, "cache-0.ns.svc.cluster.local.": notFound}, true},
		"one domain has it": {domains, map[string]error{
			"cache-0.ns.svc.ns.svc.cluster.local.": notFound, "cache-0.ns.svc.cluster.local.": nil}, false},
		"the name server does not respond": {domains, map[string]error{
			"cache-0.ns.svc.ns.svc.cluster.local.": notFound, "cache-0.ns.svc.cluster.local.": errors.New("timeout")}, false},
		"there are no domains": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := isNotFound(t.Context(), "cache-0.ns.svc", c.domains, func(_ context.Context, host string) ([]string, error) {
				err, expected := c.responses[host]
				if !expected {
					t.Errorf("unexpected query for %s", host)
				}
				return nil, err
			})
			if got != c.want {
				t.Errorf("not found is %t, want %t", got, c.want)
			}
		})
	}
}

func TestSearchDomainsAreReadFromResolvConf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	text := "search ns.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := searchDomains(path), []string{"ns.svc.cluster.local", "svc.cluster.local", "cluster.local"}; !slices.Equal(got, want) {
		t.Errorf("domains are %q, want %q", got, want)
	}
	if got := searchDomains(path + ".missing"); got != nil {
		t.Errorf("domains of no file are %q", got)
	}
}

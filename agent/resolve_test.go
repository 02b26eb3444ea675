package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestANameIsUnknownWhenNoSearchDomainHasIt(t *testing.T) {
	domains := []string{"ns.svc.cluster.local", "cluster.local."}
	notFound := &net.DNSError{Err: "no such host", IsNotFound: true}
	for reason, c := range map[string]struct {
		domains []string
		answers map[string]error
		want    bool
	}{
		"every domain says that it has no such name": {domains, map[string]error{
			"cache-0.ns.svc.ns.svc.cluster.local.": notFound, "cache-0.ns.svc.cluster.local.": notFound}, true},
		"one has it": {domains, map[string]error{
			"cache-0.ns.svc.ns.svc.cluster.local.": notFound, "cache-0.ns.svc.cluster.local.": nil}, false},
		"a name server that does not answer says nothing": {domains, map[string]error{
			"cache-0.ns.svc.ns.svc.cluster.local.": notFound, "cache-0.ns.svc.cluster.local.": errors.New("timeout")}, false},
		"without domains nothing was asked": {nil, nil, false},
	} {
		t.Run(reason, func(t *testing.T) {
			got := isUnknown(t.Context(), "cache-0.ns.svc", c.domains, func(_ context.Context, name string) ([]string, error) {
				err, expected := c.answers[name]
				if !expected {
					t.Errorf("%s was asked for", name)
				}
				return nil, err
			})
			if got != c.want {
				t.Errorf("unknown is %t, want %t", got, c.want)
			}
		})
	}
}

func TestSearchDomainsOfAPod(t *testing.T) {
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

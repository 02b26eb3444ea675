package agent

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

func TestDrainEndsWhenAnotherPodServesOrTheServiceIsDeleted(t *testing.T) {
	type response struct {
		status wire.Status
		err    error
	}
	status := func(pod string, phase wire.Phase) response {
		return response{status: wire.Status{PodUID: pod, Phase: phase}}
	}
	own := status("own", wire.PhaseDraining)
	other := status("other", wire.PhaseServing)
	refused := response{err: errors.New("connection refused")}
	// As net/http wraps it.
	dns := func(notFound bool) response {
		return response{err: &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no", IsNotFound: notFound}}}}
	}
	missing, serverFailure := dns(true), dns(false)
	for name, c := range map[string]struct {
		responses []response
		reason    string
		replaced  bool
	}{
		"this pod is draining":                     {[]response{own, own, own}, "", false},
		"another pod serves":                       {[]response{own, other}, "pod other serves behind the Service", true},
		"another pod is starting":                  {[]response{status("other", wire.PhaseStarting)}, "", false},
		"another pod is draining":                  {[]response{status("other", wire.PhaseDraining)}, "", false},
		"this pod was serving":                     {[]response{status("own", wire.PhaseServing)}, "", false},
		"a status without a pod UID":               {[]response{status("", wire.PhaseServing)}, "", false},
		"the Service has no endpoints":             {[]response{refused, refused, refused}, "", false},
		"the name is missing twice":                {[]response{missing, missing}, "the Service is deleted", false},
		"the name is missing once":                 {[]response{missing}, "", false},
		"the name is missing, found and missing":   {[]response{missing, own, missing}, "", false},
		"the name is missing, refused and missing": {[]response{missing, refused, missing}, "", false},
		"the name server fails":                    {[]response{serverFailure, serverFailure, serverFailure}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := drainer{podUID: "own"}
			var reason string
			var replaced bool
			for i, r := range c.responses {
				if reason != "" {
					t.Fatalf("stopped before response %d: %s", i, reason)
				}
				reason, replaced = d.evaluate(r.status, r.err)
			}
			if !strings.HasPrefix(reason, c.reason) || (reason == "") != (c.reason == "") || replaced != c.replaced {
				t.Errorf("got %q, replaced %t", reason, replaced)
			}
		})
	}
}

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

package peer

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
			d := drainer{podUID: "own", phase: wire.PhaseServing}
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

// While both serve, the Service needs the source until it leads to the target.
func TestSourceIsNeededUntilTheServiceLeadsToTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		status := func(context.Context, string) (wire.Status, error) {
			if asked++; asked <= 40 {
				return wire.Status{PodUID: "own", Phase: wire.PhaseDraining}, nil
			}
			return wire.Status{PodUID: "other", Phase: wire.PhaseFollowing}, nil
		}
		s := &Source{Config: Config{PodUID: "own", Service: "cache-0:11213"}, network: Network{Status: status}, drainUntil: time.Now().Add(time.Minute)}
		began := time.Now()
		s.AwaitRouted(t.Context())
		if took := time.Since(began); took != 2*(40*drainInterval+endpointPropagation) {
			t.Errorf("the source was needed for %s", took)
		}
	})
}

// Until the operator deletes it, the Service leads to both.
func TestSourceIsNeededUntilItIsDeleted(t *testing.T) {
	for deletedAfter, want := range map[time.Duration]time.Duration{
		5 * time.Second:     5 * time.Second,
		2 * deletionTimeout: deletionTimeout, // the operator doesn't run
	} {
		synctest.Test(t, func(t *testing.T) {
			deleted := make(chan struct{})
			time.AfterFunc(deletedAfter, func() { close(deleted) })
			status := func(context.Context, string) (wire.Status, error) {
				return wire.Status{PodUID: "other", Phase: wire.PhaseFollowing}, nil
			}
			s := &Source{Config: Config{PodUID: "own", Service: "cache-0:11213"}, network: Network{Status: status}, drainUntil: time.Now().Add(time.Hour), deleted: deleted}
			began := time.Now()
			s.AwaitRouted(t.Context())
			if took := time.Since(began); took != want+2*endpointPropagation {
				t.Errorf("deleted after %s: the source was needed for %s", deletedAfter, took)
			}
		})
	}
}

package main

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

func TestWhenADrainIsOver(t *testing.T) {
	type look struct {
		status agentapi.Status
		err    error
	}
	answer := func(pod string, phase agentapi.Phase) look {
		return look{status: agentapi.Status{PodUID: pod, Phase: phase}}
	}
	own := answer("own", agentapi.PhaseDraining)
	other := answer("other", agentapi.PhaseServing)
	refused := look{err: errors.New("connection refused")}
	// As net/http wraps it.
	dns := func(notFound bool) look {
		return look{err: &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no", IsNotFound: notFound}}}}
	}
	missing, ill := dns(true), dns(false)
	for name, c := range map[string]struct {
		looks  []look
		why    string
		settle bool
	}{
		"own answers are no reason":                     {[]look{own, own, own}, "", false},
		"another pod that serves is":                    {[]look{own, other}, "pod other serves at the Service", true},
		"another pod that starts is not":                {[]look{answer("other", agentapi.PhaseStarting)}, "", false},
		"another pod that drains is not":                {[]look{answer("other", agentapi.PhaseDraining)}, "", false},
		"own answers of before are not":                 {[]look{answer("own", agentapi.PhaseServing)}, "", false},
		"an answer without a pod is not":                {[]look{answer("", agentapi.PhaseServing)}, "", false},
		"a Service without endpoints is not":            {[]look{refused, refused, refused}, "", false},
		"a name that does not exist is, when confirmed": {[]look{missing, missing}, "the Service is gone", false},
		"one such answer is not":                        {[]look{missing}, "", false},
		"two with another between are not":              {[]look{missing, own, missing}, "", false},
		"two with a failure between are not":            {[]look{missing, refused, missing}, "", false},
		"a name server that is ill is not":              {[]look{ill, ill, ill}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := drainer{podUID: "own"}
			var why string
			var settle bool
			for i, look := range c.looks {
				if why != "" {
					t.Fatalf("over before look %d: %s", i, why)
				}
				why, settle = d.look(look.status, look.err)
			}
			if !strings.HasPrefix(why, c.why) || (why == "") != (c.why == "") || settle != c.settle {
				t.Errorf("got %q, settle %v", why, settle)
			}
		})
	}
}

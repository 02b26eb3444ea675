package peer

import (
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

func TestTargetFindsOnlyAnotherPodThatHandsOver(t *testing.T) {
	type response struct {
		status wire.Status
		err    error
		after  time.Duration
	}
	other := response{status: wire.Status{PodUID: "other", PodIP: "10.0.0.1", HandoverPort: 1}}
	// As net/http wraps them.
	dial := func(err error) response {
		return response{err: &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: err}}}
	}
	refused := dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	reset, closed := response{err: &url.Error{Op: "Get", Err: os.NewSyscallError("read", syscall.ECONNRESET)}}, response{err: &url.Error{Op: "Get", Err: io.EOF}}
	missing, lost := dial(&net.DNSError{IsNotFound: true}), dial(&net.DNSError{Err: "i/o timeout", IsTimeout: true})
	silent, late := dial(os.ErrDeadlineExceeded), refused
	// The connection was accepted.
	answerLate := response{err: &url.Error{Op: "Get", Err: context.DeadlineExceeded}, after: 2 * time.Second}
	late.after = 1020 * time.Millisecond
	for name, c := range map[string]struct {
		// responses come one after the other, the last one again and again.
		responses []response
		found     bool
		reason    string
		took      time.Duration
	}{
		"another pod":                        {[]response{other}, true, "", 0},
		"this pod":                           {[]response{{status: wire.Status{PodUID: "own", PodIP: "10.0.0.1", HandoverPort: 1}}}, false, "", 0},
		"an older agent, or one without key": {[]response{{status: wire.Status{PodUID: "other"}}}, false, "pod other does not hand over its items", 0},
		"an agent that knows no address":     {[]response{{status: wire.Status{PodUID: "other", HandoverPort: 1}}}, false, "pod other does not hand over its items", 0},
		"no ready pod":                       {[]response{refused}, false, "", 2 * findInterval},
		"no ready pod, and a late refusal":   {[]response{late}, false, "", late.after},
		"no ready pod behind a proxy":        {[]response{reset, closed, reset}, false, "", 2 * findInterval},
		"no Service":                         {[]response{missing}, false, "", 2 * findInterval},
		"a Service that is created":          {[]response{missing, refused}, false, "", 2 * findInterval},
		"a pod that has just become ready":   {[]response{refused, refused, other}, true, "", 2 * findInterval},
		"a lost lookup":                      {[]response{lost, other}, true, "", findInterval},
		"a slow pod between other answers":   {[]response{refused, refused, silent, refused, refused, other}, true, "", 5 * findInterval},
		"a lost lookup, and a late refusal":  {[]response{lost, late}, false, "", findInterval + late.after},
		"a pod that is overloaded":           {append(slices.Repeat([]response{answerLate}, 12), other), true, "", 12 * (answerLate.after + findInterval)},
		"a pod that never answers":           {[]response{answerLate}, false, "no other pod responded within 1m0s: ", slowTimeout},
		"a network that drops packets":       {[]response{silent}, false, "no other pod responded within 10s: ", findTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				found, reason := findOther(t.Context(), "own", func(ctx context.Context) (wire.Status, error) {
					r := c.responses[0]
					if len(c.responses) > 1 {
						c.responses = c.responses[1:]
					}
					_ = peerlink.Sleep(ctx, r.after)
					return r.status, r.err
				})
				if (found != nil) != c.found || !strings.HasPrefix(reason, c.reason) || (reason == "") != (c.reason == "") {
					t.Errorf("found %+v, reason %q", found, reason)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
			})
		})
	}
}

// nowhere is an address at which nothing listens, and which no other program takes.
const nowhere = "127.0.0.1:1"

func TestRefusedConnectionSaysThatThereIsNoPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no time passes while the machine is slow
		if _, err := queryService(t.Context(), nowhere); !isRejected(err) {
			t.Errorf("error %v", err)
		}
	})
}

// No pod of the shard serves any more.
func TestTargetDoesNotTryAgainWhenTheOtherPodNoLongerExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if !accepts(t.Context(), listener.Addr().String()) {
			t.Error("the other pod accepts connections")
		}
		if accepts(t.Context(), nowhere) {
			t.Error("the other pod no longer exists")
		}
	})
}

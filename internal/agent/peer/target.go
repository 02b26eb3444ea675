package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

const (
	// findTimeout bounds the search for the other pod. It delays a first start without one where the network drops the
	// packets to a Service that has no ready pod. A pod that doesn't find the other one starts without its items. So
	// it searches for slowTimeout where a pod accepts connections, and is slow to answer.
	findTimeout  = 10 * time.Second
	slowTimeout  = time.Minute
	findInterval = 250 * time.Millisecond
	// absence is how long all responses must say that there is no other pod. The proxy of a node learns late of one that has
	// just become ready. A refusal can take a second: after the first ones, Linux sends one per second and address
	// (icmp_ratelimit).
	absence = 500 * time.Millisecond
	// acceptTimeout bounds the attempt to connect to the other pod after a failure. The kernel accepts within
	// milliseconds, and a second or three later if one or two packets were lost.
	acceptTimeout = 10 * time.Second
	// notReadyInterval is between the attempts while the other pod keeps its items.
	notReadyInterval = 500 * time.Millisecond
	// failureInterval is between the attempts after a failure.
	failureInterval = time.Second
	// heirTimeout is how long the Service may take to lead to a third pod that has got the items: a few seconds, and longer on a busy
	// node.
	heirTimeout = 30 * time.Second
)

// Target finds the other pod and receives its items into one process of memcached. It
// runs on a goroutine of its own.
type Target struct {
	Config
	Network Network
	Process *process.Process
	Memory  *Memory
	Log     *slog.Logger
	Reports chan<- Report
	// RequestFile contains what the operator requests: a wire.Request.
	RequestFile string
}

// Report has one of its other fields, or none if there is nothing to
// receive.
type Report struct {
	Process *process.Process
	// Found says that this pod waits for the items of the other one.
	Found    *wire.Status
	Progress *handover.Progress
	// Ready says that memcached may serve while the other pod still does.
	Ready bool
	// Result says that memcached has the items.
	Result *handover.Result
	// Err says why it has not. The items are incomplete then. Final is whether another
	// handover would fail too. Lost is whether the other pod may have handed them over to a third one, for which this one has to search.
	Err         error
	Final, Lost bool
	// Reason is why there is nothing to receive from the other pod; empty if there is no
	// other pod.
	Reason string
}

// report returns false if the supervisor has canceled the reception.
func (t *Target) report(ctx context.Context, report Report) bool {
	report.Process = t.Process
	select {
	case t.Reports <- report:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Run receives the items of the other pod, which it first searches if it is nil. Its
// last report ends the reception.
func (t *Target) Run(ctx context.Context, other *wire.Status) {
	key, err := readKey(t.Key)
	if err != nil {
		t.report(ctx, Report{Reason: err.Error()})
		return
	}
	if other == nil {
		found, reason := findOther(ctx, t.PodUID, func(ctx context.Context) (wire.Status, error) { return t.Network.Status(ctx, t.Service) })
		if found == nil {
			t.report(ctx, Report{Reason: reason})
			return
		}
		if !t.report(ctx, Report{Found: found}) {
			return
		}
		other = found
	} else if peerlink.Sleep(ctx, failureInterval) != nil {
		return
	}
	defer memory.Use(memory.Handover)()
	t.report(ctx, t.receive(ctx, other, key))
}

// receive returns the last report. It waits until the other pod is being deleted, or the operator requests this one to
// replace it. Two pods that serve would have different items.
func (t *Target) receive(ctx context.Context, other *wire.Status, key []byte) Report {
	busy := false
	target := handover.Target{
		Source: net.JoinHostPort(other.PodIP, strconv.Itoa(other.HandoverPort)), Key: key, Pod: t.PodUID, Shard: t.Service, Owner: t.Owner,
		Memcached: t.Process.Client.Server,
		Scan: func(ctx context.Context, visit func(*memfile.Item) error) (memfile.Report, error) {
			return t.Memory.Scan(ctx, handover.AnyOrder, visit)
		},
		Progress: func(p handover.Progress) {
			busy = false
			t.report(ctx, Report{Progress: &p})
		},
		Log: t.Log,
		Announced: func() (bool, time.Duration) {
			text, err := os.ReadFile(t.RequestFile)
			request := wire.ParseRequest(string(text))
			if err != nil || request.PodUID != other.PodUID {
				return false, 0
			}
			return true, time.Duration(request.GraceSeconds) * time.Second
		},
	}
	if t.Mode == wire.ModeAvailable {
		target.Ready = func() { t.report(ctx, Report{Ready: true}) }
	}
	for {
		result, err := t.Network.Receive(ctx, target)
		switch {
		case err == nil:
			return Report{Result: &result}
		case !handover.IsNotReady(err) && busy:
			Drain(ctx, t.Network.Status, t.Service, other.PodUID, wire.PhaseServing, heirTimeout)
			return Report{Err: err, Lost: true}
		case !handover.IsNotReady(err):
			return Report{Err: err, Final: errors.Is(err, handover.ErrImpossible) || errors.Is(err, handover.ErrDiverged) || !t.Network.Accepts(ctx, target.Source)}
		}
		busy = busy || errors.Is(err, handover.ErrBusy)
		if peerlink.Sleep(ctx, notReadyInterval) != nil {
			return Report{Err: ctx.Err()}
		}
	}
}

// accepts returns whether the other pod still accepts connections. If it does not, its items are lost, and no pod of the shard
// serves, unless it was busy with a third one.
func accepts(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// findOther returns the status of the other pod behind the Service. If there is none that
// hands over its items, it returns nil and the reason, which is empty if there is no
// other pod.
func findOther(ctx context.Context, podUID string, query func(context.Context) (wire.Status, error)) (other *wire.Status, reason string) {
	started, timeout := time.Now(), findTimeout
	ctx, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()
	var since time.Time // when all responses began to say that there is no other pod
	for {
		began := time.Now()
		status, err := query(ctx)
		switch {
		case err == nil && (status.PodUID == "" || status.PodUID == podUID):
			return nil, ""
		case err == nil && (status.PodIP == "" || status.HandoverPort == 0):
			return nil, fmt.Sprintf("pod %s does not hand over its items", status.PodUID)
		case err == nil:
			return &status, ""
		case !isRejected(err) && !isNotFound(err):
			since = time.Time{} // a lost packet, or a pod that is slow
			if dial, ok := errors.AsType[*net.OpError](err); !ok || dial.Op != "dial" {
				timeout = slowTimeout
			}
		case since.IsZero():
			since = began
		}
		if !since.IsZero() && time.Since(since) >= absence {
			return nil, ""
		}
		if time.Since(started)+findInterval > timeout || peerlink.Sleep(ctx, findInterval) != nil {
			return nil, fmt.Sprintf("no other pod responded within %s: %s", timeout, err)
		}
	}
}

// isRejected returns whether a network says that there is no pod: kube-proxy refuses connections, proxies of service meshes
// accept and close them.
func isRejected(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
}

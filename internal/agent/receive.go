package agent

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

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
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
	// notReadyInterval is between the attempts while the other pod is not being deleted.
	notReadyInterval = 500 * time.Millisecond
	// After maxFailures handovers that failed this pod starts without items, although the
	// other pod still exists. That one serves in the meantime.
	maxFailures     = 5
	failureInterval = time.Second
)

// reception is the supervisor's part of receiving the other pod's items: it lasts from
// the first start of a pod until memcached serves.
type reception struct {
	// other is nil until the other pod is found.
	other    *wire.Status
	progress wire.Progress
	failures int
	// failure is why memcached starts without the other pod's items, final whether this
	// pod does not try again.
	failure string
	final   bool
	// cancel stops the receiver; nil while there is none.
	cancel context.CancelFunc
}

func (r *reception) stop() {
	if r != nil && r.cancel != nil {
		r.cancel()
		r.cancel = nil
	}
}

// peers is how an agent reaches the other pod of its shard.
type peers struct {
	status  queryStatus
	receive func(context.Context, handover.Target) (handover.Result, error)
	// accepts returns whether the other pod still accepts connections.
	accepts func(ctx context.Context, address string) bool
}

var network = peers{status: queryService, receive: handover.Receive, accepts: accepts}

// receiver finds the other pod and receives its items into one process of memcached. It
// runs on a goroutine of its own.
type receiver struct {
	config
	peers   peers
	process *process.Process
	// Of memcached.
	arguments        []string
	memcachedVersion string
	log              *slog.Logger
	reports          chan<- receptionReport
}

// receptionReport has one of its other fields, or none if there is nothing to
// receive.
type receptionReport struct {
	process *process.Process
	// found says that this pod waits for the items of the other one.
	found    *wire.Status
	progress *handover.Progress
	// ready says that memcached may serve while the other pod still does.
	ready bool
	// result says that memcached has the items.
	result *handover.Result
	// err says why it has not. The items are incomplete then. final is whether another
	// handover would fail too.
	err   error
	final bool
	// reason is why there is nothing to receive from the other pod; empty if there is no
	// other pod.
	reason string
}

// report returns false if the supervisor has canceled the reception.
func (r *receiver) report(ctx context.Context, report receptionReport) bool {
	report.process = r.process
	select {
	case r.reports <- report:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// run receives the items of the other pod, which it first searches if it is nil. Its
// last report ends the reception.
func (r *receiver) run(ctx context.Context, other *wire.Status) {
	key, err := readHandoverKey(r.handoverKey)
	if err != nil {
		r.report(ctx, receptionReport{reason: err.Error()})
		return
	}
	if other == nil {
		found, reason := findOther(ctx, r.podUID, func(ctx context.Context) (wire.Status, error) { return r.peers.status(ctx, r.service) })
		if found == nil {
			r.report(ctx, receptionReport{reason: reason})
			return
		}
		if !r.report(ctx, receptionReport{found: found}) {
			return
		}
		other = found
	} else if !sleep(ctx, failureInterval) {
		return
	}
	r.report(ctx, r.receive(ctx, other, key))
}

// receive returns the last report. It waits while the other pod is not being deleted: the operator deletes it during an
// update, and may be paused or not run. Two pods that serve would have different items.
func (r *receiver) receive(ctx context.Context, other *wire.Status, key []byte) receptionReport {
	target := handover.Target{
		Source: net.JoinHostPort(other.PodIP, strconv.Itoa(other.HandoverPort)), Key: key, Pod: r.podUID, Shard: r.service, Owner: r.handoverOwner,
		Memcached: r.process.Client.Server, Scan: r.scan,
		Progress: func(p handover.Progress) { r.report(ctx, receptionReport{progress: &p}) },
		Log:      r.log,
	}
	if r.handoverMode == wire.ModeAvailable {
		target.Ready = func() { r.report(ctx, receptionReport{ready: true}) }
	}
	for {
		result, err := r.peers.receive(ctx, target)
		switch {
		case err == nil:
			return receptionReport{result: &result}
		case !handover.IsNotReady(err):
			return receptionReport{err: err, final: errors.Is(err, handover.ErrImpossible) || errors.Is(err, handover.ErrDiverged) || !r.peers.accepts(ctx, target.Source)}
		}
		if !sleep(ctx, notReadyInterval) {
			return receptionReport{err: ctx.Err()}
		}
	}
}

// accepts returns whether the other pod still accepts connections. If it does not, its
// items are lost, and no pod of the shard serves.
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

// scan visits the items that memcached has received.
func (r *receiver) scan(ctx context.Context, visit func(*memfile.Item) error) (memfile.Report, error) {
	file, err := datadir.OpenMemory(r.dataDir, r.arguments, r.memcachedVersion)
	if err != nil {
		return memfile.Report{}, err
	}
	defer file.Close()
	clock, err := memfile.ClockOfRunning(ctx, r.process.Client.Server)
	if err != nil {
		return memfile.Report{}, fmt.Errorf("reading memcached's clock: %w", err)
	}
	return file.Scan(clock, visit)
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
		if time.Since(started)+findInterval > timeout || !sleep(ctx, findInterval) {
			return nil, fmt.Sprintf("no other pod responded within %s: %s", timeout, err)
		}
	}
}

// isRejected returns whether a network says that there is no pod: kube-proxy refuses connections, proxies of service meshes
// accept and close them.
func isRejected(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
}

func readHandoverKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the handover: %w", err)
	}
	if len(key) == 0 {
		return nil, fmt.Errorf("the key of the handover in %s is empty", path)
	}
	return key, nil
}

// receive starts the reception when memcached has responded.
func (s *supervisor) receive() {
	ctx, cancel := context.WithCancel(context.Background())
	s.reception.cancel = cancel
	r := &receiver{config: s.config, peers: s.peers, process: s.process, arguments: s.arguments, memcachedVersion: s.binary.Version, log: s.log, reports: s.receptions}
	go r.run(ctx, s.reception.other)
}

func (s *supervisor) handleReception(r receptionReport) {
	if r.process != s.process || s.reception == nil || s.reception.cancel == nil {
		return
	}
	switch {
	case r.found != nil:
		s.reception.other = r.found
		s.log.Info("Receiving the items of the other pod", "pod", r.found.PodUID, "phase", r.found.Phase)
		s.phase = wire.PhaseReceiving
		memory.Limit(memory.Handover)
		s.publish()
	case r.progress != nil:
		s.reception.progress = wire.Progress{Pass: r.progress.Pass, Items: r.progress.Items, Total: r.progress.Total}
		s.publish()
	case r.ready:
		s.follow()
	case r.result != nil:
		s.start = startAfterHandover(s.reception.other.PodUID, *r.result, s.now().UTC())
		s.serve()
	case r.err != nil:
		s.handleFailedHandover(r.err, r.final)
	default:
		s.reception.failure = r.reason
		s.serveWithoutHandover()
	}
}

// follow lets clients use memcached while the handover continues.
func (s *supervisor) follow() {
	if err := datadir.MarkReception(s.dataDir, wire.PhaseFollowing); err != nil {
		s.fail(err)
		return
	}
	if err := s.forward(); err != nil {
		s.fail(err)
		return
	}
	s.log.Info("memcached is serving while the other pod still does", "pod", s.reception.other.PodUID)
	s.phase = wire.PhaseFollowing
	s.publish()
}

func (s *supervisor) handleFailedHandover(err error, final bool) {
	s.reception.failures++
	s.history.handoverFailed(true)
	s.reception.failure = fmt.Sprintf("the handover from pod %s failed: %s", s.reception.other.PodUID, err)
	s.log.Warn("The handover failed", "pod", s.reception.other.PodUID, "failures", s.reception.failures, "error", err)
	s.reception.final = final || s.reception.failures == maxFailures
	s.discard(wire.PhaseReceiving, thenStart)
}

// serveWithoutHandover serves the empty memcached of a pod's first start.
func (s *supervisor) serveWithoutHandover() {
	if s.reception.failure != "" {
		s.start.Reason += ", and " + s.reception.failure
	}
	s.serve()
}

// discard kills memcached, whose items are incomplete, and continues with next. The next start
// removes them.
func (s *supervisor) discard(phase wire.Phase, next afterExit) {
	s.reception.stop()
	s.phase = phase
	s.publish()
	s.cancelTimer()
	s.afterExit = next
	if s.process == nil {
		s.continueAfterExit()
		return
	}
	_ = s.process.Signal(os.Kill)
}

func startAfterHandover(from string, result handover.Result, at time.Time) wire.Start {
	start := wire.Start{
		Result: wire.StartHandedOver, Items: result.Items, ItemsBefore: result.ItemsBefore, At: at,
		HandoverSeconds: result.Took.Seconds(), GapSeconds: result.Gap.Seconds(),
		Mode: wire.ModeStrict, StaleSeconds: result.Both.Seconds(),
		Reason: fmt.Sprintf("received %d of %d items from pod %s in %.1f s; ", result.Items, result.ItemsBefore, from, result.Took.Seconds()),
	}
	if result.Both > 0 {
		start.Mode = wire.ModeAvailable
		start.Reason += fmt.Sprintf("both pods served for %.1f s", start.StaleSeconds)
		return start
	}
	start.Reason += fmt.Sprintf("unavailable for %.2f s", start.GapSeconds)
	if result.Strict != "" {
		start.Reason += fmt.Sprintf(" (mode %s: %s)", wire.ModeStrict, result.Strict)
	}
	return start
}

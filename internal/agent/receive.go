package agent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
)

// After maxFailures handovers that failed this pod starts without items, although the
// other pod still exists. That one serves in the meantime.
const maxFailures = 5

// afterHandover is how long a pod that has handed over its items waits before memcached starts and looks for the other one: the
// kubelet, the Service and its proxies take a few seconds to lead to that pod, and not to this one.
const afterHandover = 30 * time.Second

// receive starts the reception when memcached has responded.
func (s *supervisor) receive() {
	ctx, cancel := context.WithCancel(context.Background())
	s.reception.cancel = cancel
	t := &peer.Target{Config: s.peer(), Network: s.network, Process: s.process, Memory: s.memory(), Log: s.log, Reports: s.receptions,
		RequestFile: filepath.Join(s.podInfoDir, "..data", wire.ReceiveFile)}
	go t.Run(ctx, s.reception.other)
}

func (s *supervisor) handleReception(r peer.Report) {
	if r.Process != s.process || s.reception == nil || s.reception.cancel == nil {
		return
	}
	switch {
	case r.Found != nil:
		s.reception.other = r.Found
		s.log.Info("Receiving the items of the other pod", "pod", r.Found.PodUID, "phase", r.Found.Phase)
		s.phase = wire.PhaseReceiving
		s.publish()
	case r.Progress != nil:
		s.reception.progress = wire.Progress{Pass: r.Progress.Pass, Items: r.Progress.Items, Total: r.Progress.Total}
		s.publish()
	case r.Ready:
		s.follow()
	case r.Result != nil:
		s.kept.load(r.Result.State)
		s.start = startAfterHandover(s.reception.other.PodUID, *r.Result, s.now().UTC())
		s.serve()
	case r.Err != nil:
		s.handleFailedHandover(r.Err, r.Final)
		if r.Lost {
			s.reception.other = nil
		}
	default:
		s.reception.failure = cmp.Or(r.Reason, s.reception.failure)
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
	s.history.HandoverFailed(true)
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

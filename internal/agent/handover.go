package agent

import (
	"errors"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
)

// acknowledgeTimeout is how long after the drain's timeout this agent waits for the target. The kubelet kills the agent 30 s
// after the drain's timeout.
const acknowledgeTimeout = 20 * time.Second

var (
	errSuperseded = errors.New("another target has connected")
	errNotSaved   = errors.New("memcached did not save its items")
)

// handleSource answers a request of the handover's goroutine.
func (s *supervisor) handleSource(r peer.Request) {
	if r.Event == peer.Begins {
		if s.phase != wire.PhaseDraining {
			r.Reply <- handover.ErrNotTerminating
			return
		}
		s.source = r.Source
		r.Source.Begin(s.drainUntil, s.process.Client, s.arguments, s.binary.Version)
		r.Reply <- nil
		return
	}
	if r.Source != s.source {
		r.Reply <- errSuperseded
		return
	}
	stopped := s.phase == wire.PhaseStopping && s.process == nil
	switch {
	case r.Event == peer.Stops && s.phase == wire.PhaseDraining:
		s.log.Info("Stopping memcached for the end of the handover")
		s.endRequest = r
		s.stop(wire.PhaseStopping, "", thenHandOver)
		return
	case r.Event == peer.Resumes && stopped && s.now().Before(s.drainUntil):
		s.log.Warn("The target did not take over; memcached starts again with its items")
		s.history.HandoverFailed(false)
		s.phase = wire.PhaseRestarting
		s.relaunch()
	case r.Event == peer.Resumes && stopped:
		s.log.Warn("The target did not take over, and there is no time left to serve")
		s.finish()
	case r.Event == peer.Abandons && s.phase == wire.PhaseDraining:
		s.log.Warn("The target is lost after it may have served; memcached stops, since its items can be out of date")
		s.stop(wire.PhaseStopping, "", thenFinish)
	case r.Event == peer.Abandons && stopped:
		s.log.Warn("The target is lost after it may have served; memcached does not start again, since its items can be out of date")
		s.finish()
	case r.Event == peer.Completes && stopped:
		s.log.Info("Handed over", "items", r.Result.Items, "itemsBefore", r.Result.ItemsBefore, "rejected", r.Result.Rejected,
			"bytes", r.Result.Bytes, "passes", r.Result.Passes, "took", r.Result.Took, "gap", r.Result.Gap)
		s.finish()
	}
	r.Reply <- nil
}

// handOver lets the target take over when memcached has exited.
func (s *supervisor) handOver(r peer.Request) {
	saved, err := datadir.Read(s.dataDir)
	if err == nil && saved.File == nil {
		err = errNotSaved
	}
	r.Reply <- err
	if err != nil {
		s.log.Error("The handover failed", "error", err)
		s.finish()
		return
	}
	s.schedule(s.drainUntil.Add(acknowledgeTimeout).Sub(s.now()), func() {
		s.log.Error("The target did not acknowledge the items in time")
		s.finish()
	})
}

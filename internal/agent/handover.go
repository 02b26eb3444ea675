package agent

import (
	"errors"
	"fmt"
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
	errNotServing = errors.New("memcached does not serve")
	errNotSaved   = errors.New("memcached did not save its items")
)

// handleSource answers a request of the handover's goroutine.
func (s *supervisor) handleSource(r peer.Request) {
	if r.Event == peer.Begins {
		until, deletedAt := s.drainUntil, s.drainUntil.Add(-s.drainTimeout)
		switch {
		case s.phase == wire.PhaseDraining && s.isDeleted():
		case s.phase == wire.PhaseServing && r.Requested && s.stopToken() == "":
			s.log.Info("Another pod replaces this one; memcached keeps serving until that one does")
			until, deletedAt, s.phase = s.now().Add(s.drainTimeout), time.Time{}, wire.PhaseDraining
			s.publish()
		default:
			r.Reply <- handover.ErrNotStarted
			return
		}
		s.source, s.committed = r.Source, false
		r.Source.Begin(until, deletedAt, s.memory())
		r.Reply <- nil
		return
	}
	if r.Source != s.source {
		r.Reply <- errSuperseded
		return
	}
	stopped := s.phase == wire.PhaseStopping && s.process == nil
	switch {
	case r.Event == peer.Stops && (s.phase == wire.PhaseDraining || s.phase == wire.PhaseStopping && s.afterExit == thenFinish):
		s.log.Info("Stopping memcached for the end of the handover")
		s.endRequest = r
		s.stop(wire.PhaseStopping, "", thenHandOver)
		return
	case r.Event == peer.Stops:
		r.Reply <- errNotServing
		return
	case r.Event == peer.Commits:
		err := datadir.MarkReception(s.dataDir, wire.PhaseHandedOver)
		s.committed = err == nil
		r.Reply <- err
		return
	case r.Event == peer.Releases && s.phase == wire.PhaseDraining && !s.isDeleted():
		s.phase = wire.PhaseServing
		s.publish()
	case r.Event == peer.Resumes && stopped && (!s.isDeleted() || s.now().Before(s.drainUntil)):
		s.log.Warn("The target did not take over; memcached starts again with its items")
		s.history.HandoverFailed(false)
		s.resume()
	case r.Event == peer.Resumes && stopped:
		s.log.Warn("The target did not take over, and there is no time left to serve")
		s.finish()
	case r.Event == peer.Abandons && (stopped || s.phase == wire.PhaseDraining):
		s.log.Warn("The target is lost after it may have served; memcached no longer serves its items, which can be out of date")
		if stopped {
			s.leave()
		} else {
			s.stop(wire.PhaseStopping, "", thenLeave)
		}
	case r.Event == peer.Completes && stopped:
		s.log.Info("Handed over", "items", r.Result.Items, "itemsBefore", r.Result.ItemsBefore, "rejected", r.Result.Rejected,
			"bytes", r.Result.Bytes, "passes", r.Result.Passes, "took", r.Result.Took, "gap", r.Result.Gap)
		s.leave()
	}
	r.Reply <- nil
}

// handOver lets the target take over when memcached has exited.
func (s *supervisor) handOver(r peer.Request) {
	_, err := datadir.SavedClock(s.dataDir)
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotSaved, err)
	}
	r.Reply <- err
	switch {
	case err != nil && (s.isDeleted() || s.committed):
		s.log.Error("The handover failed", "error", err)
		s.leave()
	case err != nil:
		s.log.Error("The handover failed; memcached starts again", "error", err)
		s.resume()
	case s.isDeleted():
		s.awaitAcknowledgment()
	}
}

// awaitAcknowledgment bounds the time without memcached by the pod's grace period.
func (s *supervisor) awaitAcknowledgment() {
	s.schedule(s.drainUntil.Add(acknowledgeTimeout).Sub(s.now()), func() {
		s.log.Error("The target did not acknowledge the items in time")
		s.finish()
	})
}

// isDeleted returns whether the pod is being deleted. One that isn't hands over its items at the operator's request.
func (s *supervisor) isDeleted() bool { return !s.drainUntil.IsZero() }

// handleDeletion lets a handover that began at the operator's request go on until the end of the drain.
func (s *supervisor) handleDeletion(at time.Time) {
	s.log.Info("The pod is being deleted while it hands over its items")
	s.drainUntil = at.Add(s.drainTimeout)
	s.source.Delete(at)
	switch {
	case s.phase == wire.PhaseDraining:
		s.startDrain()
		s.publish()
	case s.process == nil:
		s.awaitAcknowledgment()
	}
}

// resume starts memcached again with what it has saved.
func (s *supervisor) resume() {
	if err := datadir.UnmarkReception(s.dataDir); err != nil {
		s.fail(err)
		return
	}
	s.phase = wire.PhaseRestarting
	s.relaunch()
}

// leave ends what memcached has to do in this pod: another one serves, or may have.
func (s *supervisor) leave() {
	if s.isDeleted() {
		s.finish()
		return
	}
	s.source = nil
	s.awaitDeletion()
}

// awaitDeletion lets the container run until the operator deletes the pod, which it does at once. If it doesn't, memcached starts
// without items, as in a new pod that waits for those of the other one, and serves if there is none. Not before: while the Service still
// leads to this pod, clients would read nothing and store what is lost.
func (s *supervisor) awaitDeletion() {
	s.phase, s.reception = wire.PhaseHandedOver, &reception{}
	s.publish()
	s.schedule(afterHandover, func() {
		s.phase = wire.PhaseStarting
		s.relaunch()
	})
}

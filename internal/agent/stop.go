package agent

import (
	"context"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

const (
	// A memcached that does not respond within hangQueryTimeout is considered hung at a
	// SIGTERM: the kubelet sends it after a minute of failed probes. It is not drained, and has datadir.SaveTimeout like any
	// other, since it may only be slow.
	hangQueryTimeout = 10 * time.Second
)

func (s *supervisor) handleTermination() {
	terminated := s.now() // the grace period has begun
	s.pollAnnotations()
	switch {
	case s.finished:
	case s.phase == wire.PhaseServing && s.stopToken() == "" && !s.responds():
		s.log.Warn("Stopping the container without a drain: memcached does not respond", "timeout", hangQueryTimeout)
		s.stop(wire.PhaseStopping, "", thenFinish)
	case s.phase == wire.PhaseServing && s.stopToken() == "":
		s.log.Info("The pod is being deleted; memcached keeps serving until another pod does", "service", s.service)
		s.cancelTimer()
		s.drainUntil = terminated.Add(s.drainTimeout)
		s.startDrain()
		s.publish()
	case s.getsItems() && s.stopToken() == "" && !s.isDeleted():
		s.log.Info("The pod is being deleted; memcached serves its items first, until another pod does", "service", s.service)
		s.drainUntil = terminated.Add(s.drainTimeout)
		if s.afterExit == thenNothing {
			s.limitStart()
		}
	case s.phase == wire.PhaseReceiving, s.phase == wire.PhaseFollowing:
		s.log.Info("Stopping the container; the items it received so far are discarded")
		s.discard(wire.PhaseStopping, thenFinish)
	case (s.phase == wire.PhaseDraining || s.phase == wire.PhaseStopping && s.afterExit != thenFinish) && !s.isDeleted():
		s.handleDeletion(terminated)
	case s.phase != wire.PhaseStopping:
		s.log.Info("Stopping the container", "announced", s.stopToken())
		s.stop(wire.PhaseStopping, s.stopToken(), thenFinish)
	}
}

// getsItems returns whether memcached starts with saved items, for clients.
func (s *supervisor) getsItems() bool {
	return (s.phase == wire.PhaseStarting || s.phase == wire.PhaseRestarting) && (s.saved.File != nil || s.afterExit == thenStart) && !s.awaitsKeys()
}

func (s *supervisor) responds() bool {
	ctx, cancel := context.WithTimeout(context.Background(), hangQueryTimeout)
	defer cancel()
	return s.process.Client.Ping(ctx) == nil
}

// startDrain keeps memcached serving until another pod does.
func (s *supervisor) startDrain() {
	s.phase = wire.PhaseDraining
	s.history.Drains()
	ctx, cancel := context.WithCancel(context.Background())
	run := &drainRun{cancel: cancel}
	s.drain = run
	timeout := s.drainUntil.Sub(s.now())
	go func() {
		s.drained <- drainEnd{run: run, reason: peer.Drain(ctx, s.network.Status, s.service, s.podUID, wire.PhaseServing, timeout)}
	}()
}

func (s *supervisor) handleDrained(end drainEnd) {
	if end.run == s.drain {
		s.log.Info("Drained", "reason", end.reason)
		s.stop(wire.PhaseStopping, "", thenFinish)
	}
}

// stop makes memcached save its items and exit, at most within datadir.SaveTimeout, and then continues
// with next. token is the announcement of the stop, empty if there was none. A stop in
// progress continues with another next.
func (s *supervisor) stop(phase wire.Phase, token string, next afterExit) {
	if s.drain != nil {
		s.drain.cancel()
		s.drain = nil
	}
	s.reception.stop()
	s.recordStop(token)
	s.phase = phase
	s.publish()
	inProgress := s.afterExit != thenNothing
	s.afterExit = next
	if inProgress {
		return
	}
	s.cancelTimer()
	if s.process == nil {
		s.continueAfterExit()
		return
	}
	// SIGUSR1 and nothing after it: a SIGTERM would cancel the save.
	if err := s.process.Signal(syscall.SIGUSR1); err != nil {
		s.log.Warn("Cannot signal memcached", "error", err)
	}
	s.history.SaveBegins(s.lastStop.Items)
	go s.process.WakeUntilExit()
	s.schedule(datadir.SaveTimeout, func() {
		s.log.Error("memcached did not exit after the save signal; killing it, its items are lost", "timeout", datadir.SaveTimeout)
		_ = s.process.Signal(syscall.SIGKILL)
	})
}

// continueAfterExit does what follows a planned stop when memcached has exited.
func (s *supervisor) continueAfterExit() {
	next := s.afterExit
	s.afterExit = thenNothing
	switch next {
	case thenNothing:
	case thenFinish:
		s.finish()
	case thenStart:
		if s.next != nil {
			former := s.arguments
			s.arguments, s.fallback, s.next = *s.next, &former, nil
		}
		s.relaunch()
	case thenHandOver:
		s.handOver(s.endRequest)
	case thenLeave:
		s.leave()
	}
}

// recordStop writes what the next start needs to know about this stop.
func (s *supervisor) recordStop(token string) {
	record := datadir.Stop{At: s.now().UTC(), Version: s.binary.Version, Arguments: s.arguments, Announced: token}
	switch {
	case s.afterExit != thenNothing: // a stop is in progress
		record.Items, record.State = s.lastStop.Items, s.lastStop.State
	case s.phase == wire.PhaseServing, s.phase == wire.PhaseDraining:
		ctx, cancel := context.WithTimeout(context.Background(), process.QueryTimeout)
		defer cancel()
		if stats, err := s.process.Client.GeneralStats(ctx); err == nil {
			record.Items = stats.Items
		}
		record.State = s.kept.export()
	case s.saved.File != nil: // memcached is starting with the items that it saved before
		record.Items, record.State = s.saved.ItemsBefore(), s.saved.Last.State
	}
	if s.fallback != nil { // the present arguments are on trial
		record.Arguments = *s.fallback
	}
	s.lastStop = record
	if err := datadir.WriteStop(s.dataDir, record); err != nil {
		s.log.Warn("Cannot record this stop", "error", err)
	}
}

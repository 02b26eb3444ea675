package agent

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/discovery"
	"github.com/memcached-operator/memcached-operator/internal/agent/forwarder"
	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/secrets"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// startTimeout bounds the time until memcached responds. It reads its whole
// memory first, which takes 0.15 to 3.2 s for a million items, and longer on a busy node (ADR 16).
const startTimeout = 10 * time.Minute

// launch starts memcached with the saved items.
func (s *supervisor) launch() {
	if err := datadir.CheckSize(s.dataDir, slab.Of(s.arguments, s.binary.Version).MaxBytes); err != nil {
		s.fail(err)
		return
	}
	err := s.saved.Prepare(s.dataDir, s.now())
	if err == nil && s.saved.File == nil && s.handoverKey != "" {
		err = datadir.SeedCAS(s.dataDir)
	}
	if err != nil {
		s.fail(err)
		return
	}
	s.startMemcached()
}

func (s *supervisor) relaunch() {
	saved, err := datadir.Read(s.dataDir)
	if err != nil {
		s.fail(err)
		return
	}
	s.saved = saved
	s.launch()
}

func (s *supervisor) startMemcached() {
	start, err := s.secrets.Prepare(s.arguments, s.now())
	if err != nil && s.fallback != nil {
		s.revert(err.Error())
		return
	}
	if err != nil {
		s.fail(err)
		return
	}
	line, server := start.Line()
	if room, limited := s.room()(); limited {
		line = cmdline.WithBuffers(line, room)
	}
	p, err := s.binary.Start(s.binary.Path, append(line, "-e", datadir.MemoryPath(s.dataDir)), server, s.log)
	if err != nil {
		s.fail(err)
		return
	}
	s.secrets.Started(start, secrets.Memcached{Server: p.Client.Server, Command: p.Client.Command, Signal: p.Signal, Done: p.Done})
	s.process = p
	s.log.Info("Started memcached", "pid", p.PID, "arguments", s.arguments)
	s.publish()
	go func() {
		<-p.Done
		s.exits <- p
	}()
	go process.AwaitFirstResponse(p, s.responses)
	s.limitStart()
}

// limitStart bounds the time until memcached responds, in a pod that is being deleted so that there is still time for a save.
func (s *supervisor) limitStart() {
	if s.isDeleted() {
		s.schedule(min(startTimeout, s.drainUntil.Sub(s.now())), func() {
			s.log.Warn("Stopping the container without a drain: memcached has not started in time")
			s.stop(wire.PhaseStopping, "", thenFinish)
		})
		return
	}
	s.schedule(startTimeout, func() {
		s.fail(fmt.Errorf("memcached did not respond at %s within %s of its start", s.process.Client.Server, startTimeout))
	})
}

func (s *supervisor) handleFirstResponse(r process.FirstResponse) {
	if r.Process != s.process || s.afterExit != thenNothing {
		return
	}
	if r.Hangs {
		s.fail(fmt.Errorf("memcached accepts connections at %s but did not respond for %s",
			r.Process.Client.Server, process.HangTimeout))
		return
	}
	s.cancelTimer()
	s.start = datadir.AssessStart(s.saved, r.Process.RestartRejection(), r.Stats, s.now().UTC())
	if s.start.Result == wire.StartWarm {
		s.kept.load(s.saved.Last.State)
	} else {
		s.kept.load(nil)
	}
	s.fallback = nil
	s.handled.restarted = s.handled.restart
	go s.process.Guard(s.binary.Version, s.arguments, s.room(), s.log)
	switch {
	case s.reception == nil:
		s.serve()
	case s.reception.final:
		s.serveWithoutHandover()
	default:
		s.receive()
	}
}

// serve lets clients use memcached, until another pod does if this one is being deleted.
func (s *supervisor) serve() {
	if s.awaitsKeys() {
		s.awaitKeys()
		return
	}
	if err := datadir.UnmarkReception(s.dataDir); err != nil {
		s.fail(err)
		return
	}
	if s.reception != nil {
		s.reception.stop()
		s.reception = nil
	}
	if err := s.forward(); err != nil {
		s.fail(err)
		return
	}
	if !s.isDeleted() {
		s.phase = wire.PhaseServing
	} else {
		s.startDrain()
	}
	// Also after a crash, memcached must not lose a protection that clients rely on.
	record := s.saved.Last
	record.Version, record.Arguments, record.State = s.binary.Version, s.arguments, nil
	if err := datadir.WriteStop(s.dataDir, record); err != nil {
		s.log.Warn("Cannot record with which arguments memcached runs", "error", err)
	}
	s.start.UnavailableSeconds = s.history.Unavailable(s.start)
	s.history.Started(s.start)
	s.publish()
	go s.process.Client.SampleLookups(s.process.Done)
	go s.history.Probe(s.process.Client, s.process.Done)
	if s.metricsListen != "" {
		go sampleIdle(s.process.Client, s.process.Done, s.memoryFile(), s.size)
	}
	if s.discoveryListen != "" {
		go discovery.StoreItem(s.process.Done, s.process.Client, s.podInfoDir, s.log)
	}
	s.log.Info("memcached is serving", "version", s.binary.Version, "start", s.start.Result, "items", s.start.Items,
		"itemsBefore", s.start.ItemsBefore, "reason", s.start.Reason)
}

// forward accepts clients if memcached's arguments require a forwarder.
func (s *supervisor) forward() (err error) {
	if s.forwarder == nil {
		s.forwarder, err = forwarder.Start(s.arguments, s.loopbackPort, s.process.Client.Server.Address, s.log)
	}
	return err
}

// handleExit continues a planned stop, falls back from arguments with which
// memcached does not start, repeats a handover, or ends the agent.
func (s *supervisor) handleExit(p *process.Process) {
	if p != s.process {
		return
	}
	s.process = nil
	s.moves.stop() // another one starts with the next memcached
	s.forwarder.Close()
	s.forwarder = nil
	s.cancelTimer()
	message, code := p.ExitReason()
	starting := s.phase == wire.PhaseStarting || s.phase == wire.PhaseRestarting
	switch {
	case s.afterExit != thenNothing:
		s.log.Info("memcached stopped", "exitCode", p.Exit.ExitStatus())
		_, err := os.Stat(datadir.MetaPath(s.dataDir))
		s.history.SaveEnds(err == nil)
		if err := datadir.CatchUp(s.dataDir, p.Client.Clock.Load(), s.now()); err != nil {
			s.log.Warn("Cannot correct the time of the stop; items live longer by what memcached's clock lags behind", "error", err)
		}
		s.continueAfterExit()
	case starting && s.fallback != nil:
		s.revert(message)
	case s.phase == wire.PhaseReceiving && !s.reception.final && s.reception.other != nil:
		s.handleFailedHandover(errors.New(message), false)
	case s.phase == wire.PhaseFollowing:
		s.handleFailedHandover(errors.New(message), true)
	default:
		s.fail(&exitError{code: code, message: message})
	}
}

// revert starts memcached with the previous arguments, since it does not start with the new ones.
func (s *supervisor) revert(reason string) {
	s.log.Warn("memcached does not start with the new arguments; reverting to the previous ones", "reason", reason)
	s.arguments = *s.fallback
	s.fallback = nil
	s.rejection = notApplied + "memcached does not start with them: " + reason
	s.relaunch()
}

// room returns a function that any goroutine may call: how much memory the container has for what this memcached
// allocates, and false if it is not limited.
func (s *supervisor) room() func() (bytes int64, limited bool) {
	volume, forwarded := slab.Of(s.arguments, s.binary.Version).MaxBytes, forwarder.Memory(s.arguments)
	return func() (int64, bool) { return memory.ForMemcached(volume, forwarded) }
}

func (s *supervisor) memoryFile() memoryFile {
	return memoryFile{s.dataDir, s.arguments, s.binary.Version, s.process.PID, s.uses}
}

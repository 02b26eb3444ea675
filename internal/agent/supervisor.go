package agent

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/discovery"
	"github.com/memcached-operator/memcached-operator/internal/agent/history"
	"github.com/memcached-operator/memcached-operator/internal/agent/insights"
	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/secrets"
	"github.com/memcached-operator/memcached-operator/internal/agent/serve"
	"github.com/memcached-operator/memcached-operator/internal/agent/sizing"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
)

// supervise runs memcached until a planned stop, for which it returns nil.
func supervise(c config, log *slog.Logger) error {
	terminations := make(chan os.Signal, 4)
	signal.Notify(terminations, syscall.SIGTERM, syscall.SIGINT)
	// memcached has nothing to reload, and by default SIGHUP would end the agent.
	signal.Ignore(syscall.SIGHUP)
	var orphans chan os.Signal
	if os.Getpid() == 1 {
		orphans = make(chan os.Signal, 1)
		signal.Notify(orphans, syscall.SIGCHLD)
	}

	// First of all: the kubelet's first probe arrives within milliseconds of the
	// container's start. When its connection is refused, the next probe comes a second
	// later.
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("listening for /status: %w", err)
	}
	states, started := &serve.States{}, make(chan struct{})
	go serve.Status(listener, states, started)
	memcached, err := process.Find(c.memcached)
	if err != nil {
		return err
	}
	s, err := newSupervisor(c, memcached, peer.TCP, states, terminations, log)
	if err != nil {
		return err
	}
	close(started)
	if c.metricsListen != "" {
		go serve.Metrics(c.metricsListen, s.states, s.history, log)
	}
	if c.discoveryListen != "" {
		version := func() string { return s.states.Load().Status.Version }
		go discovery.Endpoint{Dir: c.podInfoDir, Version: version}.Serve(c.discoveryListen, log)
	}
	go insights.Serve(c.dataDir, func() (*process.Client, wire.Phase) {
		current := s.states.Load()
		return current.Client, current.Status.Phase
	}, log)
	if c.handoverKey != "" {
		go peer.Serve(s.peer(), s.network, s.sources, s.handoverPorts, log)
	}
	s.begin()
	s.run(terminations, orphans)
	return s.err
}

func newSupervisor(c config, found process.Binary, network peer.Network, states *serve.States, terminations <-chan os.Signal, log *slog.Logger) (*supervisor, error) {
	if err := datadir.CheckWritable(c.dataDir); err != nil {
		return nil, err
	}
	saved, err := datadir.Read(c.dataDir)
	if err != nil {
		return nil, err
	}
	info, err := awaitAnnouncedArguments(c.podInfoDir, saved.Last.Announced)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(c.service)
	memcached := binary{Binary: found, secrets: secrets.NewSet(c.secretVolumes, c.dataDir, host, c.loopbackPort, log)}
	// A container that starts again has what the former one wrote.
	if arguments, err := cmdline.Parse(info.arguments); err == nil && !saved.Last.IsRecorded() {
		if err := memcached.secrets.Await(arguments, terminations); err != nil {
			return nil, err
		}
	}
	selected, err := selectStartArgs(memcached, info, saved)
	if err != nil {
		return nil, err
	}
	s := &supervisor{
		config: c, binary: memcached, network: network, log: log, now: time.Now, history: history.Read(c.dataDir, time.Now, log),
		timer: time.NewTimer(time.Hour), states: states,
		exits: make(chan *process.Process, 1), responses: make(chan process.FirstResponse, 1), drained: make(chan drainEnd, 1),
		handoverPorts: make(chan peer.Port, 1), sources: make(chan peer.Request), receptions: make(chan peer.Report), loads: make(chan secrets.Loaded, 2), moved: make(chan peer.Moved), moves: newMoves(),
		phase: wire.PhaseStarting, info: info, saved: saved,
		handled:   handledAnnotations{arguments: info.arguments, protection: info.protection, restart: info.restart, restarted: info.restart},
		arguments: selected.arguments, fallback: selected.fallback, rejection: selected.rejection, secrets: memcached.secrets, uses: &atomic.Pointer[handover.Uses]{},
	}
	s.size = &size{now: s.now}
	s.kept = kept{sizing.StateName: s.size.keeper(), handover.UsesName: {
		export: func() []byte { return s.uses.Load().Content() },
		load:   func(content []byte) { s.uses.Store(handover.ParseUses(content)) },
	}, "moves": s.moves.keeper()}
	s.timer.Stop()
	if selected.slow != nil {
		s.postponeArguments(selected.slow)
	}
	if c.handoverKey != "" && c.service != "" && !saved.Ran {
		s.reception = &reception{}
		mark := wire.PhaseReceiving
		if saved.HandedOver {
			s.phase, mark = wire.PhaseHandedOver, wire.PhaseHandedOver
		}
		if err := datadir.MarkReception(c.dataDir, mark); err != nil {
			return nil, err
		}
	}
	s.publish()
	log.Info("Starting agent", "version", c.version, "pod", c.podUID,
		"memcached", memcached.Path, "memcachedVersion", memcached.Version)
	return s, nil
}

// begin does what follows from what the data directory contains.
func (s *supervisor) begin() {
	s.pollMoves()
	if s.phase == wire.PhaseHandedOver {
		s.awaitDeletion()
	} else {
		s.launch()
	}
}

func (s *supervisor) run(terminations, orphans <-chan os.Signal) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for !s.finished {
		select {
		case <-terminations:
			s.handleTermination()
		case <-poll.C:
			s.pollAnnotations()
			s.pollSecrets()
		case p := <-s.exits:
			s.handleExit(p)
		case r := <-s.responses:
			s.handleFirstResponse(r)
		case end := <-s.drained:
			s.handleDrained(end)
		case s.handoverPort = <-s.handoverPorts:
			s.publish()
		case r := <-s.sources:
			s.handleSource(r)
		case r := <-s.receptions:
			s.handleReception(r)
		case m := <-s.moved:
			s.handleMoved(m)
		case l := <-s.loads:
			l.Record()
			s.publish()
		case <-s.timer.C:
			onTimer := s.onTimer
			s.onTimer = nil
			onTimer()
		case <-orphans:
			own := 0
			if s.process != nil {
				own = s.process.PID
			}
			process.ReapOrphans("/proc", 1, own)
		}
	}
}

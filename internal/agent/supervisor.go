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
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

type config struct {
	version             string // of the operator
	podUID              string
	dataDir, podInfoDir string
	listen, service     string
	// metricsListen is the address of /metrics; empty if there are none.
	metricsListen string
	// discoveryListen is the address at which clients request the list of the shards; empty if the
	// pod has none.
	discoveryListen string
	secretVolumes   secrets.Volumes
	// loopbackPort is where memcached serves the agent while it serves clients with TLS.
	loopbackPort int
	// handoverKey is the path of the key; empty if the pods of the shard do not hand over
	// their items.
	handoverKey, handoverListen, podIP string
	// handoverOwner distinguishes the shard from an earlier one of its name.
	handoverOwner string
	// handoverMode is that in which this pod receives items.
	handoverMode              wire.Mode
	drainTimeout              time.Duration
	memcached, terminationLog string
}

func (c config) peer() peer.Config {
	return peer.Config{PodUID: c.podUID, DataDir: c.dataDir, Service: c.service, Key: c.handoverKey, Listen: c.handoverListen, Owner: c.handoverOwner, Mode: c.handoverMode}
}

// supervisor runs memcached. Only the goroutine of run may use its fields.
type supervisor struct {
	config
	binary  binary
	network peer.Network
	log     *slog.Logger
	history *history.History
	// states contains the latest state, for readers on any goroutine.
	states *atomic.Pointer[state]
	now    func() time.Time

	// Reports of helpers.
	exits     chan *process.Process
	responses chan process.FirstResponse
	drained   chan drainEnd
	// Reports of the handover, as its source and as its target.
	handoverPorts chan int
	sources       chan peer.Request
	receptions    chan peer.Report
	loads         chan secrets.Loaded

	phase wire.Phase
	// process is nil while memcached does not run.
	process *process.Process
	info    podInfo
	// stopRead is when the stop file got its present content.
	stopRead time.Time
	handled  handledAnnotations

	// arguments are in effect, or on trial while fallback is not nil. next replace them when
	// memcached has stopped; nil if they stay.
	arguments      []string
	fallback, next *[]string
	// rejection is why the arguments of the annotation are not in effect; empty when they are.
	rejection string
	// retryArguments is when the supervisor checks them again; zero if it knows whether memcached starts with them.
	retryArguments time.Time
	// postponed is how many checks of them in a row had no result.
	postponed int

	secrets *secrets.Set
	// forwarder is nil unless clients may connect with and without TLS.
	forwarder *forwarder

	// saved is what the current start found in the data directory, start its result.
	saved datadir.Saved
	start wire.Start
	// lastStop is what was recorded about the last stop.
	lastStop datadir.Stop

	// afterExit follows the planned stop in progress.
	afterExit afterExit
	// timer runs onTimer. It is stopped while nothing is scheduled.
	timer   *time.Timer
	onTimer func()
	// drain is nil while there is no drain. drainUntil is when it ends at the latest, zero
	// before the pod is being deleted.
	drain      *drainRun
	drainUntil time.Time

	// handoverPort is 0 until targets are accepted. source belongs to the latest one, whose
	// request for the end of the handover is endRequest.
	handoverPort int
	source       *peer.Source
	endRequest   peer.Request
	// reception is nil unless this start of the pod receives the other pod's items.
	reception *reception

	finished bool
	err      error
}

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
	states, started := &atomic.Pointer[state]{}, make(chan struct{})
	go serveHTTP(listener, states, started)
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
		go serveMetrics(c.metricsListen, s.states, s.history, log)
	}
	if c.discoveryListen != "" {
		version := func() string { return s.states.Load().status.Version }
		go discovery.Endpoint{Dir: c.podInfoDir, Version: version}.Serve(c.discoveryListen, log)
	}
	go insights.Serve(c.dataDir, func() (*process.Client, wire.Phase) {
		current := s.states.Load()
		return current.client, current.status.Phase
	}, log)
	if c.handoverKey != "" {
		go peer.Serve(c.peer(), s.sources, s.handoverPorts, log)
	}
	s.launch()
	s.run(terminations, orphans)
	return s.err
}

func newSupervisor(c config, found process.Binary, network peer.Network, states *atomic.Pointer[state], terminations <-chan os.Signal, log *slog.Logger) (*supervisor, error) {
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
	if arguments, err := cmdline.Parse(info.arguments); err == nil && saved.Last.At.IsZero() {
		if err := memcached.secrets.Await(arguments, terminations); err != nil {
			return nil, err
		}
	}
	selected, err := selectStartArgs(memcached, info.arguments, saved)
	if err != nil {
		return nil, err
	}
	s := &supervisor{
		config: c, binary: memcached, network: network, log: log, now: time.Now, history: history.Read(c.dataDir, time.Now, log),
		timer: time.NewTimer(time.Hour), states: states,
		exits: make(chan *process.Process, 1), responses: make(chan process.FirstResponse, 1), drained: make(chan drainEnd, 1),
		handoverPorts: make(chan int, 1), sources: make(chan peer.Request), receptions: make(chan peer.Report), loads: make(chan secrets.Loaded, 2),
		phase: wire.PhaseStarting, info: info, saved: saved,
		handled:   handledAnnotations{arguments: info.arguments, restart: info.restart, restarted: info.restart, stop: saved.Last.Announced},
		arguments: selected.arguments, fallback: selected.fallback, rejection: selected.rejection, secrets: memcached.secrets,
	}
	s.timer.Stop()
	s.stopRead = s.now()
	if selected.slow != nil {
		s.postponeArguments(selected.slow)
	}
	if c.handoverKey != "" && c.service != "" && !saved.Ran {
		if err := datadir.MarkReception(c.dataDir, wire.PhaseReceiving); err != nil {
			return nil, err
		}
		s.reception = &reception{}
	}
	s.publish()
	log.Info("Starting agent", "version", c.version, "pod", c.podUID,
		"memcached", memcached.Path, "memcachedVersion", memcached.Version)
	return s, nil
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

func (s *supervisor) finish() {
	s.finished = true
	s.log.Info("Stopping agent")
}

// fail ends the agent when memcached exited unexpectedly or cannot start.
func (s *supervisor) fail(err error) {
	s.finished, s.err = true, err
	s.history.SetAnswering(false)
}

// schedule runs a function after d, in place of the one that was scheduled before.
func (s *supervisor) schedule(d time.Duration, run func()) {
	s.timer.Reset(d)
	s.onTimer = run
}

func (s *supervisor) cancelTimer() {
	s.timer.Stop()
	s.onTimer = nil
}

// publish shows the current state to the HTTP handlers.
func (s *supervisor) publish() {
	next := &state{status: s.status(), forwarder: s.forwarder, superseded: make(chan struct{})}
	switch s.phase {
	case wire.PhaseServing, wire.PhaseDraining, wire.PhaseFollowing:
		next.client = s.process.Client
	}
	former := s.states.Swap(next)
	if former != nil {
		close(former.superseded)
	}
	if former == nil || former.serving() != next.serving() {
		s.history.SetAnswering(next.serving())
	}
}

func (s *supervisor) status() wire.Status {
	status := wire.Status{
		Phase: s.phase, PodUID: s.podUID, AgentVersion: s.config.version,
		Version: s.binary.Version, Arguments: s.arguments, ArgumentsError: s.rejection,
		AnnouncedStop: s.stopToken(), Restart: s.handled.restarted, Start: s.start,
		Secrets: s.secrets.Status(),
	}
	if s.process != nil {
		status.PID = s.process.PID
	}
	if s.handoverPort != 0 {
		status.PodIP, status.HandoverPort = s.podIP, s.handoverPort
	}
	if s.phase == wire.PhaseReceiving || s.phase == wire.PhaseFollowing {
		progress := s.reception.progress
		status.Handover = &progress
	}
	return status
}

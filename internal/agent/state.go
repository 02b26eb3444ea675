package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/forwarder"
	"github.com/memcached-operator/memcached-operator/internal/agent/history"
	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/secrets"
	"github.com/memcached-operator/memcached-operator/internal/agent/serve"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
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
	// scalingKey is the path of the key that all shards share; empty if keys can't move between them.
	scalingKey string
	// ordinal is that of the shard.
	ordinal int
	// handoverOwner distinguishes the shard from an earlier one of its name.
	handoverOwner string
	// handoverMode is that in which this pod receives items.
	handoverMode              wire.Mode
	drainTimeout              time.Duration
	memcached, terminationLog string
}

// supervisor runs memcached. Only the goroutine of run may use its fields.
type supervisor struct {
	config
	binary  binary
	network peer.Network
	log     *slog.Logger
	history *history.History
	kept    kept
	// uses contains nil unless another pod handed over the items.
	uses *atomic.Pointer[handover.Uses]
	size *size
	// states contains the latest state, for readers on any goroutine.
	states *serve.States
	now    func() time.Time

	// Reports of helpers.
	exits     chan *process.Process
	responses chan process.FirstResponse
	drained   chan drainEnd
	// Reports of the handover, as its source and as its target.
	handoverPorts chan peer.Port
	sources       chan peer.Request
	receptions    chan peer.Report
	loads         chan secrets.Loaded
	moved         chan peer.Moved

	phase wire.Phase
	// process is nil while memcached does not run.
	process *process.Process
	info    podInfo
	// stopRead is when the stop file got its present content; zero if it had that when the agent started.
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
	forwarder *forwarder.Forwarder

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

	// handoverPort is zero until targets are accepted. source belongs to the latest one, whose
	// request for the end of the handover is endRequest. committed is whether its pod may serve.
	handoverPort peer.Port
	source       *peer.Source
	endRequest   peer.Request
	committed    bool
	// reception is nil unless this start of the pod receives the other pod's items.
	reception *reception
	moves     moves

	finished bool
	err      error
}

// handledAnnotations are the values of the pod's annotations that the supervisor has handled.
type handledAnnotations struct {
	arguments, protection, restart string
	// restarted is the last value of restart for which memcached has started again.
	restarted string
}

// drainRun is one wait for another pod. A handover interrupts it.
type drainRun struct{ cancel context.CancelFunc }

func (s *supervisor) peer() peer.Config {
	return peer.Config{PodUID: s.podUID, DataDir: s.dataDir, Service: s.service, Key: s.handoverKey, Listen: s.handoverListen, Owner: s.handoverOwner, Mode: s.handoverMode, State: s.kept.export,
		ScalingKey: s.scalingKey, Ordinal: s.ordinal, Serving: s.serving}
}

func (s *supervisor) memory() *peer.Memory {
	return &peer.Memory{DataDir: s.dataDir, Client: s.process.Client, Arguments: s.arguments, Version: s.binary.Version}
}

// serving may run on any goroutine.
func (s *supervisor) serving() (m *peer.Memory, run string) {
	state := s.states.Load()
	if state.Client == nil {
		return nil, ""
	}
	return &peer.Memory{DataDir: s.dataDir, Client: state.Client, Arguments: state.Status.Arguments, Version: state.Status.Version},
		fmt.Sprintf("%s %d %d", s.podUID, state.Status.PID, state.Status.Start.At.UnixNano())
}

type drainEnd struct {
	run    *drainRun
	reason string
}

// afterExit is what follows a planned stop of memcached.
type afterExit int

const (
	// thenNothing: no stop is in progress.
	thenNothing afterExit = iota
	// thenFinish: the agent exits.
	thenFinish
	// thenStart: memcached starts again with what is saved.
	thenStart
	// thenHandOver: the target takes over.
	thenHandOver
	// thenLeave: another pod serves, or may have.
	thenLeave
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
	// keys is whether this shard gets its keys from other shards.
	keys bool
	// cancel stops the target; nil while there is none.
	cancel context.CancelFunc
}

func (r *reception) stop() {
	if r != nil && r.cancel != nil {
		r.cancel()
		r.cancel = nil
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
	next := &serve.State{Status: s.status(), Forwarder: s.forwarder, Superseded: make(chan struct{})}
	switch s.phase {
	case wire.PhaseServing, wire.PhaseDraining, wire.PhaseFollowing:
		next.Client = s.process.Client
	}
	former := s.states.Swap(next)
	if former != nil {
		close(former.Superseded)
	}
	if former == nil || former.Serving() != next.Serving() {
		s.history.SetAnswering(next.Serving())
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
	if s.handoverPort.Number != 0 {
		status.PodIP, status.HandoverPort = s.podIP, s.handoverPort.Number
	}
	if s.phase == wire.PhaseReceiving || s.phase == wire.PhaseFollowing {
		progress := s.reception.progress
		status.Handover = &progress
	}
	if s.handoverPort.Scaling {
		moved := s.moves.status
		if r := s.moves.request; r != nil {
			moved.Requested = r.Step
		}
		status.Scaling = &moved
	}
	return status
}

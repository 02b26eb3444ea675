package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
)

const (
	// The target must begin the end of a handover this long before the drain ends by its
	// timeout.
	endOfHandover = 5 * time.Second
	// contentTimeout is how long after the drain's timeout the target still gets items,
	// acknowledgeTimeout how long this agent waits for it. The kubelet kills the agent 30 s
	// after the drain's timeout.
	contentTimeout     = 15 * time.Second
	acknowledgeTimeout = 20 * time.Second
	// keyInterval is how often a missing key file is read.
	keyInterval = time.Second
)

var (
	errSuperseded = errors.New("another target has connected")
	errNotSaved   = errors.New("memcached did not save its items")
)

// originEvent is what the goroutine of a handover asks the supervisor for.
type originEvent int

const (
	originBegins originEvent = iota
	originStops
	originResumes
	originAbandons
	originCompletes
)

type originRequest struct {
	origin *origin
	event  originEvent
	result handover.Result
	// reply has room for one.
	reply chan error
}

// serveHandover accepts targets as soon as the key file exists, and reports its port to
// ports.
func serveHandover(c config, requests chan<- originRequest, ports chan<- int, log *slog.Logger) {
	key, err := readHandoverKey(c.handoverKey)
	if err != nil {
		log.Warn("This pod does not hand over its items before it can read its key", "error", err)
	}
	for ; err != nil; key, err = readHandoverKey(c.handoverKey) {
		time.Sleep(keyInterval)
	}
	listener, err := net.Listen("tcp", c.handoverListen)
	if err != nil {
		log.Warn("This pod does not hand over its items", "error", err)
		return
	}
	ports <- listener.Addr().(*net.TCPAddr).Port
	offer := func(ctx context.Context) (handover.Offer, error) {
		o := &origin{requests: requests, dataDir: c.dataDir}
		if err := o.ask(originBegins, handover.Result{}); err != nil {
			return handover.Offer{}, err
		}
		return o.offer(ctx, c.podUID, c.service, c.handoverOwner)
	}
	if err := handover.Serve(context.Background(), listener, key, offer, log); err != nil {
		log.Error("This pod no longer hands over its items", "error", err)
	}
}

// handleOrigin answers a request of the handover's goroutine.
func (s *supervisor) handleOrigin(r originRequest) {
	if r.event == originBegins {
		if s.phase != wire.PhaseDraining {
			r.reply <- handover.ErrNotTerminating
			return
		}
		s.origin = r.origin
		r.origin.drainUntil, r.origin.client = s.drainUntil, s.process.Client
		r.origin.arguments, r.origin.version = s.arguments, s.binary.Version
		r.reply <- nil
		return
	}
	if r.origin != s.origin {
		r.reply <- errSuperseded
		return
	}
	stopped := s.phase == wire.PhaseStopping && s.process == nil
	switch {
	case r.event == originStops && s.phase == wire.PhaseDraining:
		s.log.Info("Stopping memcached for the end of the handover")
		s.endRequest = r
		s.stop(wire.PhaseStopping, "", thenHandOver)
		return
	case r.event == originResumes && stopped && s.now().Before(s.drainUntil):
		s.log.Warn("The target did not take over; memcached starts again with its items")
		s.history.handoverFailed(false)
		s.phase = wire.PhaseRestarting
		s.relaunch()
	case r.event == originResumes && stopped:
		s.log.Warn("The target did not take over, and there is no time left to serve")
		s.finish()
	case r.event == originAbandons && s.phase == wire.PhaseDraining:
		s.log.Warn("The target is lost after it may have served; memcached stops, since its items can be out of date")
		s.stop(wire.PhaseStopping, "", thenFinish)
	case r.event == originAbandons && stopped:
		s.log.Warn("The target is lost after it may have served; memcached does not start again, since its items can be out of date")
		s.finish()
	case r.event == originCompletes && stopped:
		s.log.Info("Handed over", "items", r.result.Items, "itemsBefore", r.result.ItemsBefore, "rejected", r.result.Rejected,
			"bytes", r.result.Bytes, "passes", r.result.Passes, "took", r.result.Took, "gap", r.result.Gap)
		s.finish()
	}
	r.reply <- nil
}

// handOver lets the target take over when memcached has exited.
func (s *supervisor) handOver(r originRequest) {
	saved, err := datadir.Read(s.dataDir)
	if err == nil && saved.File == nil {
		err = errNotSaved
	}
	r.reply <- err
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

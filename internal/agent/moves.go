package agent

import (
	"context"
	"sync/atomic"

	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// moves is the supervisor's part of getting the keys of other shards while the number of shards changes.
type moves struct {
	// request is that of the annotation; nil without one. step is its step, for the goroutine of the mover.
	request *wire.Scaling
	step    *atomic.Pointer[wire.ScalingStep]
	status  wire.ScalingStatus
	// process is the memcached of the last mover, which cancel stops; nil before the first one of the request.
	process *process.Process
	cancel  context.CancelFunc
	// done is closed when the last mover has finished; nil before the first one.
	done chan struct{}
	// concluded is the ID of the request after which the old owners have nothing that this shard still needs. Another mover must not
	// compare with them: they may have deleted what moved.
	concluded *atomic.Pointer[string]
}

func newMoves() moves {
	return moves{step: &atomic.Pointer[wire.ScalingStep]{}, concluded: &atomic.Pointer[string]{}}
}

// keeper lets a restarted memcached, and the next pod, know what is concluded.
func (m moves) keeper() keeper {
	return keeper{
		export: func() []byte {
			if id := m.concluded.Load(); id != nil {
				return []byte(*id)
			}
			return nil
		},
		load: func(content []byte) { m.concluded.Store(new(string(content))) },
	}
}

func (m moves) stop() {
	if m.cancel != nil {
		m.cancel()
	}
}

func (m moves) isMoving() bool {
	if m.done == nil {
		return false
	}
	select {
	case <-m.done:
		return false
	default:
		return true
	}
}

// pollMoves follows the annotation, and starts the mover of a memcached that has none.
func (s *supervisor) pollMoves() {
	m := &s.moves
	request, err := wire.ParseScaling(s.info.scaling)
	if err != nil {
		s.log.Warn("Cannot read which keys of other shards this pod gets", "error", err)
	}
	if request != nil && request.ID == "" {
		request = nil
	}
	if request == nil || m.request == nil || request.ID != m.request.ID {
		changed := request != m.request
		if m.stop(); m.isMoving() {
			return // it may still delete what it has copied, and the agent reports the former request until then
		}
		s.moves = moves{request: request, step: &atomic.Pointer[wire.ScalingStep]{}, concluded: m.concluded}
		if request != nil {
			m.status.ID = request.ID
		}
		if changed && s.phase != wire.PhaseReceiving {
			s.publish()
		}
	}
	if m.request = request; request != nil {
		m.step.Store(&request.Step)
		if s.process != nil && s.process != m.process && !m.isMoving() && (s.phase == wire.PhaseServing || s.awaitsKeys()) {
			s.startMover()
		}
	}
	switch {
	case s.phase != wire.PhaseReceiving || !s.reception.keys || s.awaitsKeys():
	case m.process != s.process: // nothing keeps equal what the mover of a former request has copied
		s.reception.keys = false
		s.discard(wire.PhaseReceiving, thenStart)
	default:
		s.serve()
	}
}

// awaitsKeys returns whether no client uses this shard yet, since it doesn't have its keys.
func (s *supervisor) awaitsKeys() bool {
	r := s.moves.request
	return r != nil && r.Ordinal >= len(r.From) && r.Step == wire.ScalingCopy && s.moves.status.Problem == ""
}

// awaitKeys lets a memcached that has started get its keys before clients use it.
func (s *supervisor) awaitKeys() {
	s.log.Info("This shard gets its keys from the other ones before it serves", "id", s.moves.request.ID)
	s.reception.stop()
	s.phase, s.reception = wire.PhaseReceiving, &reception{final: true, keys: true}
	s.publish()
}

func (s *supervisor) startMover() {
	m := &s.moves
	ctx, cancel := context.WithCancel(context.Background())
	m.process, m.cancel, m.done = s.process, cancel, make(chan struct{})
	step, done := m.step, m.done
	mover := &peer.Mover{Config: s.peer(), Network: s.network, Process: s.process, Memory: s.memory(), Log: s.log,
		Concluded: m.concluded, Request: *m.request, Step: func() wire.ScalingStep { return *step.Load() }, Reports: s.moved}
	go func() {
		defer close(done)
		mover.Run(ctx)
	}()
}

func (s *supervisor) handleMoved(r peer.Moved) {
	if r.Process != s.process || s.moves.request == nil || r.Status.ID != s.moves.request.ID {
		return
	}
	s.moves.status = r.Status
	s.pollMoves()
	s.publish()
}

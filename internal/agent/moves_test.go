package agent

import (
	"log/slog"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

func TestWithdrawnRequestStopsTheMove(t *testing.T) {
	s := &supervisor{phase: wire.PhaseReceiving, reception: &reception{}, moves: newMoves()}
	stopped := false
	s.moves.request, s.moves.status.ID, s.moves.cancel = &wire.Scaling{ID: "id"}, "id", func() { stopped = true }
	s.info.scaling = wire.Scaling{Written: 1}.String()
	if s.pollMoves(); s.moves.request != nil || s.moves.status.ID != "" || !stopped {
		t.Errorf("it moves items for %+v, reports %+v", s.moves.request, s.moves.status)
	}
}

func TestMoveEndsWithItsMemcached(t *testing.T) {
	stopped := false
	p := process.New(protocol.Server{}, nil)
	s := &supervisor{process: p, moves: newMoves(), timer: time.NewTimer(time.Hour), history: testHistory()}
	s.moves.process, s.moves.cancel = p, func() { stopped = true }
	if s.handleExit(p); !stopped {
		t.Error("it goes on after memcached has exited")
	}
}

// Each memcached has a mover, which closes the change also after a problem of the one before.
func TestNextMemcachedOfATargetWithAProblemHasAMover(t *testing.T) {
	request := wire.Scaling{ID: "id", From: []string{"a"}, To: []string{"a", "b"}, Ordinal: 1, Step: wire.ScalingPublished}
	p := process.New(protocol.Server{}, nil)
	s := &supervisor{process: p, phase: wire.PhaseServing, moves: newMoves(), history: testHistory(), log: slog.New(slog.DiscardHandler), moved: make(chan peer.Moved, 1)}
	s.info.scaling = request.String()
	s.moves.request, s.moves.process = &request, process.New(protocol.Server{}, nil)
	s.moves.status.ID, s.moves.status.Problem, s.moves.status.Forgets = request.ID, "no memory", true
	s.pollMoves()
	defer s.moves.stop()
	if s.moves.process != p {
		t.Error("it has none")
	}
}

package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
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

// Nothing keeps equal what a new shard has copied before clients use it.
func TestNewShardServesOnlyItemsThatAreKeptEqual(t *testing.T) {
	request := wire.Scaling{ID: "id", Ring: "Ketama", From: []string{"a", "b"}, To: []string{"a", "b", "c"}, Ordinal: 2, Step: wire.ScalingCopy}
	published, next := request, request
	published.Step = wire.ScalingPublished
	next.ID, next.From, next.To = "next", request.To, append(request.To, "d")
	for name, c := range map[string]struct {
		then  wire.Scaling
		items int
	}{
		"clients may use it":                      {published, 7},
		"the request is withdrawn":                {wire.Scaling{Written: 1}, 0},
		"it is replaced, and the shard isn't new": {next, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.config.scalingKey, p.config.ordinal = filepath.Join(t.TempDir(), "key"), request.Ordinal
				if err := os.WriteFile(p.config.scalingKey, make([]byte, peerlink.KeySize), 0o600); err != nil {
					t.Fatal(err)
				}
				p.annotate(wire.ScalingFile, request.String())
				if err := p.create(); err != nil {
					t.Fatal(err)
				}
				p.await(wire.PhaseReceiving)
				p.pass(time.Minute)
				if status := p.status(); status.Phase != wire.PhaseReceiving {
					t.Errorf("before it has its keys: %+v", status)
				}
				p.memcached.latest().add(7)
				p.annotate(wire.ScalingFile, c.then.String())
				p.await(wire.PhaseServing)
				if items := len(p.memcached.latest().server.Items()); items != c.items {
					t.Errorf("it serves %d items, want %d", items, c.items)
				}
				p.finish()
			})
		})
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

// It may still delete what it has copied. The operator waits for that, and the next mover would take it for deletions by clients.
func TestFormerRequestIsReportedUntilItsMoveHasEnded(t *testing.T) {
	s := testSupervisor(wire.PhaseServing)
	s.process, s.moves, s.moved = process.New(protocol.Server{}, nil), newMoves(), make(chan peer.Moved, 1)
	s.moves.request, s.moves.status.ID, s.moves.done = &wire.Scaling{ID: "id"}, "id", make(chan struct{})
	s.info.scaling = wire.Scaling{ID: "next", Step: wire.ScalingPublished}.String()
	s.pollMoves()
	if id := s.moves.status.ID; id != "id" || s.moves.process != nil {
		t.Errorf("the next move has begun, and the agent reports %q", id)
	}
	close(s.moves.done)
	s.pollMoves()
	defer s.moves.stop()
	if id := s.moves.status.ID; id != "next" || s.moves.process != s.process {
		t.Errorf("the next move hasn't begun, and the agent reports %q", id)
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

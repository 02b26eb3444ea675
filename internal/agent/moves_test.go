package agent

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
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

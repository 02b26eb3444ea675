package agent

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// The kubelet would kill the container while memcached loads or saves its items.
func TestHealthIgnoresAMemcachedThatStartsOrStops(t *testing.T) {
	for _, phase := range []wire.Phase{wire.PhaseStarting, wire.PhaseRestarting, wire.PhaseStopping} {
		if err := checkHealth(t.Context(), &state{status: wire.Status{Phase: phase}, superseded: make(chan struct{})}); err != nil {
			t.Errorf("%s: %v", phase, err)
		}
	}
}

package main

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// The kubelet would kill it amid what takes its time.
func TestAMemcachedThatIsNotMeantToAnswerIsNotIll(t *testing.T) {
	for _, phase := range []agentapi.Phase{agentapi.PhaseStarting, agentapi.PhaseRestarting, agentapi.PhaseStopping} {
		if err := health(t.Context(), &view{status: agentapi.Status{Phase: phase}, replaced: make(chan struct{})}); err != nil {
			t.Errorf("%s: %v", phase, err)
		}
	}
}

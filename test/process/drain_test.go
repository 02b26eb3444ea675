package process

import (
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// The SIGTERM is not announced. The replacement is another real agent.
func TestDeletedPodServesUntilItsReplacementDoes(t *testing.T) {
	t.Parallel()
	old, next := pods.NewShard(t), pods.NewShard(t)
	old.PodUID, next.PodUID = "old", "next"
	agents, memcacheds := pods.NewService(t, old.AgentAddress()), pods.NewService(t, old.Address())
	old.Service = agents.Address()
	old.Run()
	pods.Fill(t, old.Address(), 1000)

	stop := make(chan struct{})
	visits := pods.Visit(memcacheds.Address(), stop)
	old.Signal(syscall.SIGTERM)
	old.WaitFor("the drain", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseDraining })
	old.WaitForProbe("/readyz")
	for range 20 { // the drain continues while clients connect
		if err := pods.Greet(memcacheds.Address()); err != nil {
			t.Error(err)
		}
	}
	if status := old.Status(); status.Phase != agentwire.PhaseDraining || status.Items != 1000 {
		t.Errorf("while draining: %+v", status)
	}

	next.Run()
	agents.Backend.Store(pods.Ref(next.AgentAddress()))
	memcacheds.Backend.Store(pods.Ref(next.Address()))
	moved := time.Now()
	if status := old.Exit(); status != 0 {
		t.Errorf("status %d", status)
	}
	if took := time.Since(moved); took < 900*time.Millisecond {
		t.Errorf("it exited %s after the other pod responded, want a second for the clients", took)
	}
	close(stop)
	if n := <-visits; n[1] != 0 || n[0] < 10 {
		t.Errorf("%d of %d connections failed", n[1], n[0])
	}
	if !pods.Exists(old.Meta()) {
		t.Error("it did not save")
	}
}

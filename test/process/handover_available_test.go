package process

import (
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// A client that stays connected to the old pod, and one that is new, while both serve.
func TestNewConnectionsLeadToTheNewPodWhileOldOnesStay(t *testing.T) {
	t.Parallel()
	old, next, r := pods.NewPair(t)
	next.HandoverMode = agentwire.ModeAvailable
	old.Run()
	pods.Fill(t, old.Address(), 1000)
	r.WaitFor(old)
	stays := pods.TextTo(t, r.Address())
	old.Signal(syscall.SIGTERM)
	next.Launch()
	status := next.WaitForPhase(agentwire.PhaseFollowing)
	if !pods.IsReady(t.Context(), next) || !pods.IsReady(t.Context(), old) || status.Handover == nil {
		t.Errorf("one of the pods is not ready: %+v", status)
	}
	r.WaitFor(next)
	stays.Send("set item-1 0 0 3\r\nnew\r\n")
	if line := stays.Line(); line != "STORED" {
		t.Errorf("the connection to the old pod: %q", line)
	}
	if n := pods.Count(t, r.Address(), 1000); n < 999 {
		t.Errorf("%d of 1000 items are there for new connections", n)
	}
	start := next.WaitForPhase(agentwire.PhaseServing).Start
	t.Log(start.Reason)
	if start.Result != agentwire.StartHandedOver || start.Mode != agentwire.ModeAvailable || start.Items != 999 || start.ItemsBefore != 1000 {
		t.Errorf("start %+v", start)
	}
	if answer := pods.Talk(t, next.Address(), "get item-1\r\n"); answer != "END\r\n" {
		t.Errorf("what was changed in the old pod is %q", answer)
	}
	old.Exit()
}

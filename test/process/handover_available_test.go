package process

import (
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// As in an update: the old pod is deleted when the new one is ready. On a busy machine, a handover may fail by itself, or be over
// before this test looks.
func TestReplacedPodIsReadyUntilTheNewOneIs(t *testing.T) {
	t.Parallel()
	for _, mode := range []agentwire.Mode{agentwire.ModeStrict, agentwire.ModeAvailable} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			for range 3 {
				if handsOverWhileReady(t, mode) {
					return
				}
			}
			t.Error("no old pod was ready while it handed over its items, and until the new one was")
		})
	}
}

// handsOverWhileReady returns whether a handover succeeds of which the test sees each part.
func handsOverWhileReady(t *testing.T, mode agentwire.Mode) bool {
	t.Helper()
	const size = 50_000
	old, next, _ := pods.NewPair(t, "-m", "128")
	next.HandoverMode = mode
	old.Run()
	pods.Fill(t, old.Address(), size)
	next.Launch()
	next.WaitForPhase(agentwire.PhaseReceiving)
	next.Annotate(agentwire.ReceiveFile, "another")
	next.Annotate(agentwire.ReceiveFile, old.PodUID)
	next.WaitFor("the first items", func(status agentwire.Status) bool {
		return status.Phase != agentwire.PhaseReceiving || status.Handover != nil && status.Handover.Items > 0
	})
	ready := pods.IsReady(t.Context(), old) && old.Status().Phase == agentwire.PhaseDraining
	status := next.WaitFor("the new pod to serve", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseFollowing || status.Phase == agentwire.PhaseServing
	})
	if mode == agentwire.ModeAvailable {
		ready = ready && status.Phase == agentwire.PhaseFollowing && pods.IsReady(t.Context(), old)
	} else if status.Start.Result == agentwire.StartHandedOver {
		status := old.WaitForPhase(agentwire.PhaseHandedOver)
		if pods.IsReady(t.Context(), old) || old.HasExited() || status.Items != 0 {
			t.Errorf("the old pod has handed over its items: %+v", status)
		}
	}
	old.Signal(syscall.SIGTERM)
	start := next.WaitForPhase(agentwire.PhaseServing).Start
	if !ready || start.Result != agentwire.StartHandedOver {
		t.Logf("the old pod was ready: %t; start %+v", ready, start)
		return false
	}
	if start.Mode != mode || start.Items != size {
		t.Errorf("start %+v", start)
	}
	if code := old.Exit(); code != 0 {
		t.Errorf("the old agent exited with code %d", code)
	}
	if n := pods.Count(t, next.Address(), size); n != size {
		t.Errorf("%d of %d items", n, size)
	}
	return true
}

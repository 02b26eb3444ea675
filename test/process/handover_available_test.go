package process

import (
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// As in an update: the old pod is deleted when the new one is ready.
func TestReplacedPodIsReadyUntilTheNewOneIs(t *testing.T) {
	t.Parallel()
	for _, mode := range []agentwire.Mode{agentwire.ModeStrict, agentwire.ModeAvailable} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
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
				return status.Handover != nil && status.Handover.Items > 0
			})
			if status := old.Status(); !pods.IsReady(t.Context(), old) || status.Phase != agentwire.PhaseDraining {
				t.Errorf("the old pod isn't ready while it hands over its items: %+v", status)
			}
			if mode == agentwire.ModeAvailable {
				next.WaitForPhase(agentwire.PhaseFollowing)
				if !pods.IsReady(t.Context(), old) {
					t.Error("the old pod isn't ready when the new one is")
				}
			} else {
				next.WaitForPhase(agentwire.PhaseServing)
				status := old.WaitForPhase(agentwire.PhaseStarting)
				if pods.IsReady(t.Context(), old) || old.HasExited() || status.Items != 0 {
					t.Errorf("the old pod has handed over its items: %+v", status)
				}
			}
			old.Signal(syscall.SIGTERM)
			start := next.WaitForPhase(agentwire.PhaseServing).Start
			if start.Result != agentwire.StartHandedOver || start.Mode != mode || start.Items != size {
				t.Errorf("start %+v", start)
			}
			if code := old.Exit(); code != 0 {
				t.Errorf("the old agent exited with code %d", code)
			}
			if n := pods.Count(t, next.Address(), size); n != size {
				t.Errorf("%d of %d items", n, size)
			}
		})
	}
}

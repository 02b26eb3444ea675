package process

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// memoryOf returns a value of proc_pid_status(5) in bytes.
func memoryOf(t testing.TB, pid int, name string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	pods.Must(t, err)
	_, rest, _ := strings.Cut(string(text), "\n"+name+":")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("%s of process %d: %v", name, pid, err)
	}
	return kib << 10
}

// The agent shares the container's memory with the items.
func TestAgentsMemoryInAHandover(t *testing.T) {
	t.Parallel()
	const perItem, buffers, idle, size = 64, 4 << 20, 4 << 20, 200_000
	old, next, _ := pods.NewPair(t, "-m", "1200")
	old.Run()
	pods.FillSized(t, old.Address(), size, 500)
	before := memoryOf(t, old.Command.Process.Pid, "VmRSS")
	next.Launch()
	next.Annotate(agentwire.ReceiveFile, old.PodUID)
	status := next.WaitForPhase(agentwire.PhaseServing)
	wantHandedOver(t, status.Start, size)
	source, target := old.Command.Process.Pid, next.Command.Process.Pid
	sourcePeak, targetPeak, after := memoryOf(t, source, "VmHWM"), memoryOf(t, target, "VmHWM"), int64(0)
	returned := pods.Eventually(func() bool { // by the garbage collector
		after = memoryOf(t, target, "VmRSS")
		return after-before <= idle
	})
	t.Logf("%d items: the idle agent %.1f MiB; source %.1f MiB more (%.0f bytes an item), target %.1f MiB more (%.0f), %.1f MiB more after it",
		size, mebibytes(before), mebibytes(sourcePeak-before), float64(sourcePeak-before)/float64(size),
		mebibytes(targetPeak-before), float64(targetPeak-before)/float64(size), mebibytes(after-before))
	for side, peak := range map[string]int64{"source": sourcePeak, "target": targetPeak} {
		if more := peak - before; more <= 0 || more > size*perItem+buffers {
			t.Errorf("the %s takes %.1f MiB more", side, mebibytes(more))
		}
	}
	if !returned {
		t.Errorf("it keeps %.1f MiB after the handover", mebibytes(after-before))
	}
	old.Signal(syscall.SIGTERM)
	old.Exit()
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

package process

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// agentMemory returns a value of /proc/<pid>/status of the agent, in bytes; 0 if it has exited.
func (s *shard) agentMemory(name string) int64 {
	s.t.Helper()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				s.t.Fatal(err)
			}
			return kib << 10
		}
	}
	return 0
}

// The agent shares the container's memory with the items. $ITEMS is the number of items.
func TestAgentsMemoryInAHandover(t *testing.T) {
	t.Parallel()
	const perItem, buffers, idle = 64, 4 << 20, 4 << 20
	size := number("ITEMS", 200_000)
	old, next, _ := newPair(t, "-m", "1200")
	old.run()
	fillCaches(t, size, 500, old.asCache())
	before := old.agentMemory("VmRSS")
	old.signal(syscall.SIGTERM)
	next.launch()
	next.waitFor("the first items", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseReceiving && status.Handover.Items > 0
	})
	sourcePeak := int64(0)
	for next.status().Phase == agentwire.PhaseReceiving && !old.hasExited() {
		sourcePeak = max(sourcePeak, old.agentMemory("VmHWM"))
		time.Sleep(20 * time.Millisecond)
	}
	status := next.waitForPhase(agentwire.PhaseServing)
	wantHandedOver(t, status.Start, int64(size))
	targetPeak, after := next.agentMemory("VmHWM"), next.agentMemory("VmRSS")
	t.Logf("%d items: the idle agent %.1f MiB; source %.1f MiB more (%.0f bytes an item), target %.1f MiB more (%.0f), %.1f MiB more after it",
		size, mebibytes(before), mebibytes(sourcePeak-before), float64(sourcePeak-before)/float64(size),
		mebibytes(targetPeak-before), float64(targetPeak-before)/float64(size), mebibytes(after-before))
	for side, peak := range map[string]int64{"source": sourcePeak, "target": targetPeak} {
		if more := peak - before; more <= 0 || more > int64(size*perItem+buffers) {
			t.Errorf("the %s takes %.1f MiB more", side, mebibytes(more))
		}
	}
	if after-before > idle {
		t.Errorf("it keeps %.1f MiB after the handover", mebibytes(after-before))
	}
	old.exitWithoutDrain()
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

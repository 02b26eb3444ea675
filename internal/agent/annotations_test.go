package agent

import (
	"testing"
	"time"
)

func TestRestartBeginsLateInASecond(t *testing.T) {
	for ms, want := range map[int]time.Duration{0: 850, 849: 1, 850: 0, 851: 0, 999: 0} {
		if got := untilLateInSecond(time.Unix(1_800_000_000, int64(ms)*1e6)); got != want*time.Millisecond {
			t.Errorf("at %d ms: %s, want %d ms", ms, got, want)
		}
	}
}

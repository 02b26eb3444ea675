package pods

import (
	"testing"
	"time"
)

// Patience bounds hangs, and nothing else: no test compares it with what it measures.
const Patience = 5 * time.Minute

// Eventually returns whether a condition becomes true. Another process reports no event, so it polls, less often the longer it
// waits: what polls takes the processor from what it waits for.
func Eventually(condition func() bool) bool {
	for began := time.Now(); ; {
		if condition() {
			return true
		}
		waited := time.Since(began)
		if waited > Patience {
			return false
		}
		time.Sleep(min(max(waited/20, 5*time.Millisecond), 50*time.Millisecond)) //nolint:forbidigo // another process reports no event
	}
}

// Must ends the test unless there is no error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

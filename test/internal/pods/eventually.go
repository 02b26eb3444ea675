package pods

import "time"

// Patience bounds hangs, and nothing else: no test compares it with what it measures.
const Patience = 5 * time.Minute

// Eventually returns whether a condition becomes true.
func Eventually(condition func() bool) bool {
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) { // another process reports no event
		if condition() {
			return true
		}
	}
	return false
}

// Package exhaustive lets tests that enumerate states try a sample of them by default, and all in the nightly run.
package exhaustive

import "os"

// OneIn returns the step of a test's enumeration: n, or 1 if the environment variable TEST_EXHAUSTIVE is 1. With a
// prime n, nested loops of fewer values don't skip the same values each time.
func OneIn(n int) int {
	if os.Getenv("TEST_EXHAUSTIVE") == "1" {
		return 1
	}
	return n
}

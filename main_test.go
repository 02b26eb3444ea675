package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestGarbageIsCollectedBelowTheLimitOfTheContainer(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for limit, want := range map[string]int64{"": before, "268435456": 241591911} {
		debug.SetMemoryLimit(before)
		if err := limitMemory(limit); err != nil {
			t.Error(err)
		}
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("of a container with %q bytes Go may have %d, not %d", limit, got, want)
		}
	}
}

func TestALimitOfMemoryThatIsNoNumberSaysWhatToDo(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	for _, limit := range []string{"256Mi", "0", "-1"} {
		if err := limitMemory(limit); err == nil || !strings.Contains(err.Error(), "set it to a number of bytes") {
			t.Errorf("%q gives %v", limit, err)
		}
	}
}

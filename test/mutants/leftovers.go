package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// A test that panics or that takes too long leaves behind what it started: an API
// server, a memcached. Whatever such a run starts has the mark of the run in its
// environment, by which it is found.

// markName is the variable.
const markName = "MEMCACHED_OPERATOR_MUTANT"

// markOf returns the mark of a run of this process.
func markOf(run int64) string { return fmt.Sprintf("%s=%d-%d", markName, os.Getpid(), run) }

// endTime is how long they may take to be gone once they are killed.
const endTime = 10 * time.Second

// endMarked ends all processes with a mark.
func endMarked(mark string) error {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left := marked(mark)
		if len(left) == 0 {
			return nil
		}
		if time.Since(began) > endTime {
			return fmt.Errorf("the processes %v, which a test left behind, do not end", left)
		}
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("ending process %d, which a test left behind: %w", pid, err)
			}
		}
	}
}

// marked returns the ids of the processes with a mark. One that has ended and that
// nobody has waited for has no environment any more.
func marked(mark string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environment, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil {
			continue // it has ended, or is another user's
		}
		if slices.ContainsFunc(bytes.Split(environment, []byte{0}), func(v []byte) bool { return string(v) == mark }) {
			found = append(found, pid)
		}
	}
	return found
}

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// ReapOrphans reaps exited processes whose parent has exited before them, as after
// "kubectl exec". The kernel makes them children of PID 1. It must not reap the
// agent's own child, for which os/exec waits; own is its pid.
//
// It reads /proc, because a wait for any child cannot exclude one. Call it only while
// the agent has no child other than own.
func ReapOrphans(proc string, self, own int) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == own {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(proc, entry.Name(), "stat"))
		if err == nil && isOrphanedZombie(stat, self) {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// isOrphanedZombie parses /proc/PID/stat, "pid (name) state parent …". The name may
// contain any character, so the last parenthesis counts (proc_pid_stat(5)).
func isOrphanedZombie(stat []byte, parent int) bool {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return false
	}
	fields := bytes.Fields(stat[end+1:])
	return len(fields) > 1 && string(fields[0]) == "Z" && string(fields[1]) == strconv.Itoa(parent)
}

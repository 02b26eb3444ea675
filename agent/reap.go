package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// reapOrphans collects the processes that ended and whose parent had: those fall
// to PID 1, as what "kubectl exec" left behind. It must not collect the agent's
// own children, whose status os/exec waits for; own is the pid of the one that
// may have ended.
//
// It reads /proc instead of waiting for any child, since such a wait cannot
// leave one out. It is to be called when no other child runs than own.
func reapOrphans(proc string, self, own int) {
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

// isOrphanedZombie reads /proc/PID/stat, which is "pid (name) state parent …";
// the name may hold anything, so the last parenthesis counts (proc_pid_stat(5)).
func isOrphanedZombie(stat []byte, parent int) bool {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return false
	}
	fields := bytes.Fields(stat[end+1:])
	return len(fields) > 1 && string(fields[0]) == "Z" && string(fields[1]) == strconv.Itoa(parent)
}

package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestReapOrphansSkipsTheOwnChild(t *testing.T) {
	child := exec.Command("true")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid, self := child.Process.Pid, os.Getpid()
	zombie := func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && isOrphanedZombie(stat, self)
	}
	// Wait until it has exited, and leave its status (waitid(2)).
	const byPID, exitedNoReap = 1, syscall.WEXITED | syscall.WNOWAIT
	if _, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), 0, exitedNoReap, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
	if !zombie() {
		t.Fatal("the child is no zombie")
	}
	ReapOrphans("/proc", self, pid)
	if !zombie() {
		t.Fatal("it reaped the own child")
	}
	ReapOrphans("/proc", self, 0)
	if zombie() {
		t.Error("it left a zombie")
	}
	if err := child.Wait(); err == nil {
		t.Error("os/exec still got the status: nothing was reaped")
	}
}

func TestIsOrphanedZombie(t *testing.T) {
	for stat, want := range map[string]bool{
		"7 (sleep) Z 1 7 7 0":      true,
		"7 (a) Z 1) Z 1 7":         true,
		"7 (sleep) S 1 7 7 0":      false,
		"7 (sleep) Z 12 7 7 0":     false,
		"7 (x) Z 1) S 1 7":         false,
		"7 (sleep)":                false,
		"":                         false,
		"7 (sleep) Z":              false,
		"7 (line\nend) Z 1 7 7 0":  true,
		"7 (sleep) X 1 7 7 0 0 -1": false,
	} {
		if got := isOrphanedZombie([]byte(stat), 1); got != want {
			t.Errorf("%q: %v", stat, got)
		}
	}
}

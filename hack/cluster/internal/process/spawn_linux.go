package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// capabilities are those that nodes need, with their bits (capability.h).
var capabilities = []struct {
	name string
	bit  uint
}{{"CAP_SYS_ADMIN", 21}, {"CAP_NET_ADMIN", 12}, {"CAP_SYS_CHROOT", 18}, {"CAP_MKNOD", 27}}

// CanRun returns an error when this machine can't run a cluster.
func CanRun() error {
	if os.Geteuid() != 0 {
		return CannotRun("it needs root")
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	if lacking := missingCapabilities(string(status)); lacking != nil {
		return CannotRun("root lacks " + strings.Join(lacking, ", "))
	}
	return nil
}

func missingCapabilities(status string) []string {
	var lacking []string
	for line := range strings.Lines(status) {
		hex, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		if err != nil {
			continue
		}
		for _, c := range capabilities {
			if set&(1<<c.bit) == 0 {
				lacking = append(lacking, c.name)
			}
		}
	}
	return lacking
}

// Spawn starts this program as process 1 of a node in new namespaces, and returns its process ID on this machine.
func Spawn(log, command, spec string) (int, error) {
	const own = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	return spawnIn(own, log, nil, command, spec)
}

// SpawnBeside starts this program as process 1 of a PID namespace in the network of another process.
func SpawnBeside(pid int, log, command, spec string) (int, error) {
	return spawnIn(syscall.CLONE_NEWPID, log, []string{"nsenter", "-t", strconv.Itoa(pid), "-n"}, command, spec)
}

// spawnIn starts this program in new namespaces, detached from the terminal. by is a command that execs it.
func spawnIn(namespaces uintptr, log string, by []string, command, spec string) (int, error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	words := append(by, exe, command, spec)
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return 0, err
	}
	out, err := os.Create(log)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces}
	err = cmd.Start()
	if errors.Is(err, syscall.EPERM) {
		return 0, CannotRun("this machine does not let root create namespaces")
	}
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", command, err)
	}
	// A zombie would look alive.
	go func() { _ = cmd.Wait() }()
	return cmd.Process.Pid, nil
}

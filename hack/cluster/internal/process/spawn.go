package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// ofNode are the namespaces of a node.
const ofNode = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// CanRun returns an error when this machine can't run a cluster.
func CanRun() error {
	why := ""
	if os.Geteuid() != 0 {
		why = "it needs root"
	} else {
		trial := exec.Command("true")
		trial.SysProcAttr = &syscall.SysProcAttr{Cloneflags: ofNode}
		if err := trial.Run(); err != nil {
			why = fmt.Sprintf("root can't create namespaces (%v)", err)
		}
	}
	if why == "" {
		return nil
	}
	return errors.New("no local cluster can run here, " + why + ": set KUBECONFIG to a cluster of yours instead")
}

// Spawn starts this program as process 1 of a node in new namespaces, and returns its process ID on this machine.
func Spawn(log, command, spec string) (int, error) {
	return spawnIn(ofNode, log, nil, command, spec)
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
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting %s: %w", command, err)
	}
	// A zombie would look alive.
	go func() { _ = cmd.Wait() }()
	return cmd.Process.Pid, nil
}

// Package process starts processes in namespaces of their own, and finds them again.
package process

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// OLMv1 is the name of the process 1 of OLM v1. Those of nodes have the nodes' names.
const OLMv1 = "olmv1"

// ofNode are the namespaces of a node.
const ofNode = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// CanRun returns an error when this machine can't run a cluster.
func CanRun() error {
	const advice = "no local cluster can run here, %s: set KUBECONFIG to a cluster of yours instead"
	if os.Geteuid() != 0 {
		return fmt.Errorf(advice, "it needs root")
	}
	trial := exec.Command("true")
	trial.SysProcAttr = &syscall.SysProcAttr{Cloneflags: ofNode}
	if err := trial.Run(); err != nil {
		return fmt.Errorf(advice, fmt.Sprintf("root can't create namespaces (%v)", err))
	}
	return nil
}

//go:embed supervise.sh
var supervise []byte

// Start runs a script as process 1 of a node in new namespaces, and returns its process ID on this machine.
func Start(d cache.Dirs, name, script string) (pid int, err error) {
	return start(d, name, script, ofNode)
}

// StartBeside runs a script as process 1 of a PID namespace in the network of another process.
func StartBeside(d cache.Dirs, pid int, name, script string) error {
	_, err := start(d, name, script, syscall.CLONE_NEWPID, "nsenter", "-t", strconv.Itoa(pid), "-n")
	return err
}

// start runs a script in new namespaces, detached from the terminal, and remembers its process with a name. Its log and those of
// its programs are in a new folder of that name. by is a command that execs another.
func start(d cache.Dirs, name, script string, namespaces uintptr, by ...string) (int, error) {
	logs, supervisor := filepath.Join(d.Logs, name), filepath.Join(d.Etc, "supervise.sh")
	err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755), os.MkdirAll(d.State, 0o755), os.WriteFile(supervisor, supervise, 0o644))
	if err != nil {
		return 0, err
	}
	log, err := os.Create(filepath.Join(logs, "init.log"))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	words := append(by, "bash", supervisor, logs, script)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting %s: %w", name, err)
	}
	// A zombie would look alive.
	go func() { _ = cmd.Wait() }()
	return cmd.Process.Pid, remember(d, name, cmd.Process.Pid)
}

// identity is process 1 of a node, or of OLM v1. Process IDs are reused, so the start time, in clock ticks since boot,
// identifies it.
type identity struct {
	PID   int
	Start string
}

// File returns the path of what is remembered with a name.
func File(d cache.Dirs, name string) string { return filepath.Join(d.State, name+".json") }

// Alive returns the process ID of the process 1 that was remembered with a name, and whether it runs.
func Alive(d cache.Dirs, name string) (pid int, ok bool) {
	var p identity
	content, err := os.ReadFile(File(d, name))
	if err != nil || json.Unmarshal(content, &p) != nil {
		return 0, false
	}
	start, err := startTime(p.PID)
	return p.PID, err == nil && start == p.Start
}

// CheckAlive returns an error, which waiting does not fix, when the process 1 with a name does not run.
func CheckAlive(d cache.Dirs, name string) error {
	if _, ok := Alive(d, name); ok {
		return nil
	}
	why, _ := os.ReadFile(filepath.Join(d.Logs, name, "init.log"))
	return host.Permanent{Err: errors.New("its process 1 exited: " + host.LastLines(strings.TrimSpace(string(why)), 3))}
}

func remember(d cache.Dirs, name string, pid int) error {
	start, err := startTime(pid)
	if err != nil {
		return err
	}
	content, err := json.Marshal(identity{PID: pid, Start: start})
	if err != nil {
		return err
	}
	return os.WriteFile(File(d, name), content, 0o644)
}

// startTime returns field 22 of /proc/PID/stat (proc(5)). A zombie has none.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the name in parentheses, which may contain anything.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" {
		return "", errors.New("the process has exited")
	}
	return fields[19], nil
}

// End kills a process 1, and with it its namespace, and waits for its end.
func End(d cache.Dirs, name string) error {
	if pid, ok := Alive(d, name); ok {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return err
		}
	}
	err := host.WaitFor(func() error {
		if _, ok := Alive(d, name); ok {
			return errors.New("its processes are still ending")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ending %s: %w", name, err)
	}
	return nil
}

// Stop kills a process 1 and forgets it.
func Stop(d cache.Dirs, name string) error {
	if err := End(d, name); err != nil {
		return err
	}
	return os.RemoveAll(File(d, name))
}

// Package process starts processes in namespaces of their own, finds them again, and supervises their programs.
package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// OLMv1 is the name of the process 1 of OLM v1. Those of nodes have the nodes' names.
const OLMv1 = "olmv1"

// ID is process 1 of a node, or of OLM v1. Process IDs are reused, so the start time, in clock ticks since boot,
// identifies it.
type ID struct {
	PID   int
	Start string
}

// File returns the path of what is remembered with a name.
func File(d cache.Dirs, name string) string { return filepath.Join(d.State, name+".json") }

// Alive returns the process 1 that was remembered with a name, and whether it runs.
func Alive(d cache.Dirs, name string) (ID, bool) {
	var p ID
	content, err := os.ReadFile(File(d, name))
	if err != nil || json.Unmarshal(content, &p) != nil {
		return ID{}, false
	}
	start, err := startTime(p.PID)
	return p, err == nil && start == p.Start
}

// Remember records a process 1 with a name.
func Remember(d cache.Dirs, name string, pid int) error {
	start, err := startTime(pid)
	if err != nil {
		return err
	}
	content, err := json.Marshal(ID{PID: pid, Start: start})
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
	p, ok := Alive(d, name)
	if !ok {
		return nil
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		return err
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

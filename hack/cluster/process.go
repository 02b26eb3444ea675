package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// nodeInitCommand is the command that a node's process 1 runs. People do not.
const nodeInitCommand = "node-init"

// process is process 1 of a node, or of OLM v1. Numbers are used again, so the time
// at which it started, in clock ticks since boot, tells whether it still is that
// one.
type process struct {
	PID   int
	Start string
}

func (d dirs) processFile(name string) string { return filepath.Join(d.state, name+".json") }

// running returns a node's process 1, and whether it runs.
func (d dirs) running(n node) (process, bool) { return d.alive(n.Name) }

// alive returns the process 1 that was remembered under a name, and whether it
// runs.
func (d dirs) alive(name string) (process, bool) {
	var p process
	content, err := os.ReadFile(d.processFile(name))
	if err != nil || json.Unmarshal(content, &p) != nil {
		return process{}, false
	}
	start, err := startTime(p.PID)
	return p, err == nil && start == p.Start
}

// remember notes a process 1 under a name.
func (d dirs) remember(name string, pid int) error {
	start, err := startTime(pid)
	if err != nil {
		return err
	}
	content, err := json.Marshal(process{PID: pid, Start: start})
	if err != nil {
		return err
	}
	return os.WriteFile(d.processFile(name), content, 0o644)
}

// startTime is field 22 of /proc/PID/stat (proc(5)). A process that has ended
// and only waits for its parent has none.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// the second field is the name in parentheses, which may hold anything
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" {
		return "", errors.New("the process has ended")
	}
	return fields[19], nil
}

// kill ends a node at once: with its process 1 go all its processes, mounts
// and interfaces. What outlives them is removed. A node that was not started
// from this cache folder is left alone.
func (d dirs) kill(n node) error {
	if !exists(d.processFile(n.Name)) {
		return nil
	}
	if err := d.end(n.Name); err != nil {
		return err
	}
	if n.Number == firstNode.Number {
		unlinkFirst(n)
	}
	if err := removeCgroups(n); err != nil {
		return err
	}
	return os.Remove(d.processFile(n.Name)) // last, so that a run that was cut short is made up for
}

// end kills a process 1, and with it all processes of its namespace, and waits
// until it is gone.
func (d dirs) end(name string) error {
	p, ok := d.alive(name)
	if !ok {
		return nil
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		return err
	}
	err := waitFor(30*time.Second, func() error {
		if _, ok := d.alive(name); ok {
			return errors.New("its processes are still ending")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ending %s: %w", name, err)
	}
	return nil
}

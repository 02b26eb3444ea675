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

// nodeInitCommand starts a node's process 1. It is internal.
const nodeInitCommand = "node-init"

// process is process 1 of a node, or of OLM v1. Process IDs are reused, so the start time, in clock ticks since boot,
// identifies it.
type process struct {
	PID   int
	Start string
}

func (d dirs) processFile(name string) string { return filepath.Join(d.state, name+".json") }

func (d dirs) running(n node) (process, bool) { return d.alive(n.Name) }

// alive returns the process 1 that was remembered with a name, and whether it runs.
func (d dirs) alive(name string) (process, bool) {
	var p process
	content, err := os.ReadFile(d.processFile(name))
	if err != nil || json.Unmarshal(content, &p) != nil {
		return process{}, false
	}
	start, err := startTime(p.PID)
	return p, err == nil && start == p.Start
}

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

// kill stops a node at once: all its processes, mounts and interfaces end with its process 1. It keeps the nodes of
// another cache folder.
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

// end kills a process 1, and with it its namespace, and waits for its end.
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

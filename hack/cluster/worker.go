package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// nodeCommand adds, loses and removes nodes beside node1.
func nodeCommand(d dirs, args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return fmt.Errorf("node takes add, kill or remove, and at most one node: %w", errUsage)
	}
	name := "node2"
	if len(args) == 2 {
		name = args[1]
	}
	n, err := workerNode(name)
	if err != nil {
		return err
	}
	act, ok := map[string]func(node) error{"add": d.addNode, "kill": d.kill, "remove": d.removeNode}[args[0]]
	if !ok {
		return fmt.Errorf("node %s is not known: %w", args[0], errUsage)
	}
	if err := canRun(); err != nil {
		return err
	}
	unlock, err := d.lockCluster()
	if err != nil {
		return err
	}
	defer unlock()
	return act(n)
}

var errNotRunning = errors.New("the cluster does not run: start it with up")

// addNode starts a node, or finds it running. A node that was killed comes back
// as after a power cut.
func (d dirs) addNode(n node) error {
	first, ok := d.running(firstNode)
	if !ok {
		return errNotRunning
	}
	// the programs that the cluster runs, which may be older than the checkout
	s, err := readSpec(filepath.Join(d.etc, firstNode.Name, "node.json"))
	if err != nil {
		return err
	}
	a, err := d.api()
	if err != nil {
		return err
	}
	return step("starting "+n.Name, func() error {
		var since time.Time
		if _, ok := d.running(n); !ok {
			since = time.Now()
			pid, err := d.start(n, builds{kubernetes: s.Kubernetes, coredns: s.CoreDNS})
			if err != nil {
				return err
			}
			if err := linkWorker(n, pid, first.PID); err != nil {
				return err
			}
		}
		return a.waitNode(n.Name, since)
	})
}

// removeNode ends a node for good.
func (d dirs) removeNode(n node) error {
	if err := d.kill(n); err != nil {
		return err
	}
	a, err := d.api()
	if err != nil {
		return err
	}
	return a.deleteNode(n.Name)
}

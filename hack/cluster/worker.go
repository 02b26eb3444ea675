package main

import (
	"errors"
	"path/filepath"
	"time"
)

// onNode is a command for one node, by default node2.
func onNode(do func(dirs, node) error) command {
	return func(d dirs, args []string) error {
		if len(args) == 0 {
			args = []string{"node2"}
		}
		n, err := workerNode(args[0])
		if err != nil || len(args) > 1 {
			return errors.Join(errUsage, err)
		}
		if err := canRun(); err != nil {
			return err
		}
		return do(d, n)
	}
}

var errNotRunning = errors.New("the cluster does not run: start it with up")

// addNode starts a node. A node that was killed returns with its data.
func (d dirs) addNode(n node) error {
	first, ok := d.running(firstNode)
	if !ok {
		return errNotRunning
	}
	// The programs of the running cluster may be older than the checkout.
	s, err := readSpec(filepath.Join(d.etc, firstNode.Name, "node.json"))
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
		return d.waitNode(n.Name, since)
	})
}

func (d dirs) removeNode(n node) error {
	if err := d.kill(n); err != nil {
		return err
	}
	return d.deleteNodes(n)
}

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// status prints which processes run. kubectl shows the rest.
func (d dirs) status() error {
	if _, ok := d.running(firstNode); !ok {
		fmt.Println("the cluster does not run")
		return nil
	}
	for _, n := range allNodes() {
		if p, ok := d.running(n); ok {
			fmt.Printf("%s runs, process %d, pods in %s\n", n.Name, p.PID, n.Pods)
		}
	}
	if p, ok := d.alive(olmv1Name); ok {
		fmt.Printf("OLM v1 runs, process %d\n", p.PID)
	}
	fmt.Printf("logs are in %s\nKUBECONFIG=%s\n", d.logs, d.kubeconfig())
	return nil
}

// logsCommand prints the log of a component of node1.
func logsCommand(d dirs, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("logs takes one component: %w", errUsage)
	}
	f, err := os.Open(filepath.Join(d.logs, firstNode.Name, args[0]+".log"))
	if err != nil {
		return fmt.Errorf("reading the log of %s: %w", args[0], err)
	}
	defer f.Close()
	_, err = io.Copy(os.Stdout, f)
	return err
}

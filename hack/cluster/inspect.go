package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// statusCommand says what runs.
func statusCommand(d dirs, args []string) error {
	if err := noArguments("status", args); err != nil {
		return err
	}
	if _, ok := d.running(firstNode); !ok {
		fmt.Println("the cluster does not run")
		return nil
	}
	for _, n := range allNodes() {
		if p, ok := d.running(n); ok {
			fmt.Printf("%s runs, process %d, pods in %s\n", n.Name, p.PID, n.Pods)
		}
	}
	a, err := d.api()
	if err != nil {
		return err
	}
	nodes, err := a.nodes()
	if err != nil {
		return fmt.Errorf("asking the API server: %w", err)
	}
	for _, n := range nodes {
		why := n.notReady(time.Time{})
		if why == "" {
			why = "ready"
		}
		fmt.Printf("Kubernetes says that %s is %s\n", n.Metadata.Name, why)
	}
	switch why, err := a.olmNotAvailable(""); {
	case errors.Is(err, errNotFound): // nobody asked for it
	case err != nil:
		return fmt.Errorf("asking the API server: %w", err)
	case why != "":
		fmt.Printf("OLM: %s\n", why)
	default:
		fmt.Println("OLM is available")
	}
	if p, ok := d.alive(olmv1Name); ok {
		fmt.Printf("OLM v1 runs, process %d\n", p.PID)
	}
	fmt.Printf("KUBECONFIG=%s\n", d.kubeconfig())
	return nil
}

// logsCommand prints a log, or the names of all there are: NODE/COMPONENT, or
// just COMPONENT for node1.
func logsCommand(d dirs, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("logs takes one component: %w", errUsage)
	}
	files, err := filepath.Glob(filepath.Join(d.logs, "*", "*.log"))
	if err != nil {
		return err
	}
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(f, d.logs+"/"), ".log")
		switch {
		case len(args) == 0:
			fmt.Println(name)
		case args[0] == name || firstNode.Name+"/"+args[0] == name:
			return printFile(f)
		}
	}
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("there is no log of %q: logs lists what there is", args[0])
}

func printFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(os.Stdout, f)
	return err
}

package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

// downCommand stops all nodes and reverts their changes of this machine.
func downCommand(d dirs, args []string) error {
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	wipe := flags.Bool("wipe", false, "forget the cluster's data too")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q: %w", rest[0], errUsage)
	}
	ran := slices.ContainsFunc(allNodes(), func(n node) bool { _, ok := d.running(n); return ok })
	if err := d.olmv1Down(); err != nil {
		return err
	}
	for _, n := range slices.Backward(allNodes()) { // workers before the control plane
		if err := d.kill(n); err != nil {
			return err
		}
	}
	if err := d.removeHostDirs(); err != nil {
		return err
	}
	if *wipe {
		if err := os.RemoveAll(d.cluster); err != nil {
			return err
		}
	}
	said := map[bool]string{true: "the cluster is stopped", false: "no cluster ran"}[ran]
	fmt.Fprintln(os.Stderr, said)
	return nil
}

func allNodes() []node {
	var all []node
	for i := 1; i <= maxNodes; i++ {
		all = append(all, nodeNumber(i))
	}
	return all
}

package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

// downCommand ends all nodes and undoes what they did to this machine.
func downCommand(d dirs, args []string) error {
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	wipe := flags.Bool("wipe", false, "forget the cluster's data too")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if err := noArguments("down", rest); err != nil {
		return err
	}
	unlock, err := d.lockCluster()
	if err != nil {
		return err
	}
	defer unlock()
	ran := slices.ContainsFunc(allNodes(), func(n node) bool { _, ok := d.running(n); return ok })
	if err := d.endOLMv1(); err != nil {
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
	if ran {
		fmt.Fprintln(os.Stderr, "the cluster has ended")
	} else {
		fmt.Fprintln(os.Stderr, "no cluster ran")
	}
	return nil
}

func allNodes() []node {
	var all []node
	for i := 1; i <= maxNodes; i++ {
		all = append(all, nodeNumber(i))
	}
	return all
}

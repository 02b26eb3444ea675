// Command suite runs tiers of the tests: "suite quick", "suite all", or "suite NAME... [-- ARGS]" with more arguments for
// go test. It runs a lane's tiers one after the other and the lanes beside each other, writes a log a tier and prints what
// failed, and repeats a failed test once, alone. A test that passes then is a flake: the run is green and records it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runMain(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
}

func runMain(ctx context.Context, args []string) error {
	var more []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, more = args[:i], args[i+1:]
	}
	selected, err := selectTiers(args)
	if err != nil {
		return err
	}
	if os.Getenv("KUBECONFIG") != "" { // the cluster is there
		for i, t := range selected {
			selected[i].needs = slices.DeleteFunc(slices.Clone(t.needs), func(set string) bool { return set == forCluster })
		}
	}
	cluster, err := filepath.Abs("bin/cluster")
	if err != nil {
		return err
	}
	r := &run{tiers: selected, more: more, cluster: cluster, dist: "dist", commit: commit(ctx), out: os.Stdout}
	if slices.Contains(needed(selected), forCluster) && len(selected) > 1 {
		if status, _ := exec.CommandContext(ctx, cluster, "status").CombinedOutput(); strings.Contains(string(status), "does not run") {
			defer func() { // also after an interrupt
				down := exec.Command(cluster, "down")
				down.Stdout, down.Stderr = os.Stdout, os.Stderr
				if err := down.Run(); err != nil {
					fmt.Fprintln(os.Stderr, "stopping the local cluster:", err)
				}
			}()
		}
	}
	return r.all(ctx)
}

// commit returns the short hash of the checked-out commit, with a plus if its files differ.
func commit(ctx context.Context) string {
	hash, err := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude=*", "--dirty=+").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(hash))
}

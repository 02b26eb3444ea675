// Package demo shows what the operator does on the cluster that KUBECONFIG names. Everything that it prints is measured. It
// returns an error if something is not as described.
//
// It installs the operator and shows the objects from this machine. What needs a client of memcached runs in between, in
// a pod of the cluster, in which the program starts itself with "demo client" and the time of its start.
package demo

import (
	"context"
	"fmt"
	"os"
	"time"
)

// clientCommand is the argument of the demo in the pod.
const clientCommand = "client"

// Run runs the demo.
func Run(ctx context.Context, args []string) error {
	p := newPrinter(os.Stdout)
	if len(args) == 0 {
		return onHost(ctx, p)
	}
	if len(args) != 2 || args[0] != clientCommand {
		return fmt.Errorf("unexpected arguments %q", args)
	}
	var err error
	if p.began, err = time.Parse(time.RFC3339Nano, args[1]); err != nil {
		return err
	}
	p.color = os.Getenv(colorVariable) != ""
	return inPod(ctx, p)
}

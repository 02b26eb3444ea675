// The demo shows what the operator does on the cluster that KUBECONFIG names. Everything that it prints is measured. It
// exits with an error and status 1 if something is not as described.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, newPrinter(os.Stdout)); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// The demo shows what the operator does, on the cluster that KUBECONFIG names,
// as it happens. What it tells it has measured: anything that is not as told ends
// it with a sentence and exit status 1.
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
	if err := run(ctx, newTeller(os.Stdout)); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

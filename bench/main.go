// Bench measures what the operator costs a client, a machine and an API server, and has the demo. Each benchmark is a command
// that prints a table, and most of them write it, with a chart, to docs/.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/memcached-operator/memcached-operator/test/bench/backup"
	"github.com/memcached-operator/memcached-operator/test/bench/dashboards"
	"github.com/memcached-operator/memcached-operator/test/bench/demo"
	"github.com/memcached-operator/memcached-operator/test/bench/diagrams"
	"github.com/memcached-operator/memcached-operator/test/bench/recording"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/bench/scale"
	"github.com/memcached-operator/memcached-operator/test/bench/scaling"
	"github.com/memcached-operator/memcached-operator/test/bench/shard"
	"github.com/memcached-operator/memcached-operator/test/bench/size"
	"github.com/memcached-operator/memcached-operator/test/bench/upgrade"
)

var benchmarks = []report.Benchmark{
	upgrade.Upgrade, upgrade.Handover, backup.Benchmark, shard.Memory, scaling.Benchmark, scale.Benchmark, shard.Scrapes, shard.TLS, shard.Snapshot, size.Benchmark,
}

// others are commands that measure nothing.
var others = map[string]func(context.Context, []string) error{"demo": demo.Run, "dashboards": dashboards.Run, "pictures": drawPictures, "recording": recording.Run, "screens": recording.Screens}

func drawPictures(ctx context.Context, args []string) error {
	return errors.Join(report.Redraw(ctx, args), diagrams.Draw(ctx, args), recording.Run(ctx, args))
}

func main() {
	// A second interrupt ends the program at once, and leaves what it started.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "\nbench: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		for _, b := range benchmarks {
			if b.Name == args[0] {
				return b.Execute(ctx, args[1:])
			}
		}
		if other := others[args[0]]; other != nil {
			return other(ctx, args[1:])
		}
	}
	usage := "usage: bench COMMAND [flags]\n"
	for _, b := range benchmarks {
		usage += fmt.Sprintf("\n  %-10s  %s", b.Name, b.Summary)
	}
	return fmt.Errorf("%s\n  %-10s  show what the operator does\n  %-10s  draw docs/dashboard-*.svg from recorded data\n  %-10s  draw the charts of docs/ again from their data, and the diagrams\n  %-10s  draw docs/quickstart.svg from a recording\n  %-10s  record the screens of the plugin for kubectl", usage, "demo", "dashboards", "pictures", "recording", "screens")
}

// Benchbackup measures what a backup and a restore cost, on the cluster that
// KUBECONFIG names: how fast they are beside a bare copy of the same items from one
// memcached into another, and what clients of the cache notice. It compares every
// item, prints a table and writes it into docs/.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/machine"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// shards of both Memcacheds.
const shards = 3

// options are what a person may ask for.
type options struct {
	// perShard is how many items each shard holds.
	perShard int
	// valueSize of each item, in bytes.
	valueSize int
	// rate of the load beside, in operations a second on all shards.
	rate int
	// quiet is how long the load is measured without a backup.
	quiet time.Duration
	out   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt does not wait for the namespace to go
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "\nbench: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	o := options{}
	flags := flag.NewFlagSet("bench-backup", flag.ExitOnError)
	flags.IntVar(&o.perShard, "items", 1_000_000, "items in each shard")
	flags.IntVar(&o.valueSize, "value", 500, "`bytes` of each value")
	flags.IntVar(&o.rate, "rate", 1000, "operations a second of the load beside, on all shards together")
	flags.DurationVar(&o.quiet, "quiet", 20*time.Second, "how long the load runs without a backup, to compare with")
	flags.StringVar(&o.out, "out", "docs", "`folder` for the document; empty writes none. Relative to the project's")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.valueSize < 8 || o.valueSize > 100_000 || o.perShard < 1 {
		return fmt.Errorf("-value must be from 8 to 100000, and -items at least 1")
	}
	if o.out, err = report.Folder(o.out); err != nil {
		return err
	}
	c, err := cluster.Connect()
	if err != nil {
		return err
	}
	described, err := machine.Describe(ctx, c)
	if err != nil {
		return err
	}
	b := &bench{Cluster: c, options: o, data: newDataset(o.perShard, o.valueSize), began: time.Now()}
	if err := b.makeSpace(ctx); err != nil {
		return err
	}
	defer func() {
		// also where ctx has ended: nothing is to be left on the cluster
		err = errors.Join(err, b.removeSpace(context.WithoutCancel(ctx)))
	}()
	f, err := b.measure(ctx)
	if err != nil {
		return err
	}
	d := document{options: o, machine: described, date: b.began, figures: f}
	fmt.Printf("\n%s\n%s\nThe whole took %s.\n", d.table(), described, time.Since(b.began).Round(time.Second))
	if o.out != "" {
		if err := d.write(o.out); err != nil {
			return err
		}
	}
	return f.judge()
}

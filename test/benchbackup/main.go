// Benchbackup measures what a backup and a restore cost, on the cluster that KUBECONFIG names: their speed in comparison
// with a bare copy of the same items from one memcached to another, and what clients of the cache notice. It compares
// every item, prints a table and writes it to docs/.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/machine"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// shards of both Memcacheds.
const shards = 3

type options struct {
	// perShard is the number of items in each shard, with values of valueSize bytes.
	perShard, valueSize int
	// rate of the load on all shards, in operations per second.
	rate int
	// quiet is how long the load is measured without a backup.
	quiet time.Duration
	out   string
}

func main() { report.Main(run) }

func run(ctx context.Context, args []string) (err error) {
	report.ExitOnSecondInterrupt(ctx)
	o := options{}
	flags := flag.NewFlagSet("bench-backup", flag.ExitOnError)
	flags.IntVar(&o.perShard, "items", 1_000_000, "items in each shard")
	flags.IntVar(&o.valueSize, "value", 500, "`bytes` of each value")
	flags.IntVar(&o.rate, "rate", 1000, "operations per second of the load on all shards")
	flags.DurationVar(&o.quiet, "quiet", 20*time.Second, "how long the load runs without a backup, for comparison")
	flags.StringVar(&o.out, "out", "docs", "`folder` for the document, relative to the project's; empty writes none")
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
	b := &bench{Cluster: c, options: o, data: &dataset{perShard: o.perShard, size: o.valueSize}, began: time.Now()}
	if b.namespace, err = c.CreateNamespace(ctx, "bench-backup-"); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.DeleteNamespace(context.WithoutCancel(ctx), b.namespace)) // also after an interrupt
	}()
	f, err := b.measure(ctx)
	if err != nil {
		return err
	}
	d := document{options: o, machine: described, date: b.began, figures: f}
	fmt.Printf("\n%s\n%s\nThe benchmark took %s.\n", d.table().Terminal(), described, time.Since(b.began).Round(time.Second))
	if o.out != "" {
		if err := d.write(o.out); err != nil {
			return err
		}
	}
	return f.check()
}

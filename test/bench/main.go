// Bench measures what an upgrade of memcached, or with -drain the eviction of its pods, costs a client, on the cluster
// that KUBECONFIG names: the same load during the same change, on a Memcached of this operator and on what users run
// without it. It prints a table and writes it, with a chart, to docs/.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/machine"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

type options struct {
	kind     kind
	from, to string
	// items that the load does not read, in all shards, and bytes of their values; 0 is a small record.
	items, bytes int
	// rate of the load on all shards, in operations per second.
	rate         int
	keysPerShard int
	// rounds is how often each variant is measured.
	rounds int
	// before and after the change the load runs at least this long, and at most bound after it.
	before, after, bound time.Duration
	seed                 uint64
	out                  string
}

func main() { report.Main(run) }

func run(ctx context.Context, args []string) error {
	report.ExitOnSecondInterrupt(ctx)
	o, err := parse(args)
	if err != nil {
		return err
	}
	c, err := cluster.Connect()
	if err != nil {
		return err
	}
	if o.to == "" {
		if o.to, err = c.DefaultVersion(ctx); err != nil {
			return err
		}
	}
	described, err := machine.Describe(ctx, c)
	if err != nil {
		return err
	}
	b := &bench{Cluster: c, options: o, say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	began := time.Now()
	if o.from == "" {
		o.from = o.to
	}
	b.options = o
	b.say("%s on %d shards with %d keys each, %d operations per second", o.kind.title(o), shards, o.keysPerShard, o.rate)
	variants := o.kind.variants
	results := make([][]result, len(variants))
	for round := range o.rounds {
		for i := range variants {
			// Each round begins with another one: what the machine does does not always hit the same.
			n := (round + i) % len(variants)
			b.say("\nRound %d of %d", round+1, o.rounds)
			r, err := b.measure(ctx, variants[n])
			if err != nil {
				return fmt.Errorf("%s: %w", variants[n].name, err)
			}
			results[n] = append(results[n], r)
		}
	}
	d := document{options: o, machine: described, date: began, args: args, results: results}
	b.say("\n%s\n%s\nThe benchmark took %s.", d.table().Terminal(), described, time.Since(began).Round(time.Second))
	if n := d.errorsBefore(); n > 0 {
		b.say("%s operations failed before the change: the machine was busy. Run the benchmark again when it is idle.", report.Number(n))
	}
	if o.out == "" {
		return nil
	}
	return d.write(o.out)
}

func parse(args []string) (options, error) {
	o := options{kind: upgrade}
	// The Makefile's target selects the change, so it isn't one of the arguments that the document shows.
	if len(args) > 0 && args[0] == "-drain" {
		o.kind, args = drain, args[1:]
	}
	flags := flag.NewFlagSet(o.kind.target, flag.ExitOnError)
	if o.kind.from != "" {
		flags.StringVar(&o.from, "from", o.kind.from, "`version` of memcached before the change")
	}
	flags.StringVar(&o.to, "to", os.Getenv("MEMCACHED_NEWEST"), "`version` after the change; empty means the operator's default")
	flags.IntVar(&o.items, "items", o.kind.items, "items in all shards that the load does not read")
	flags.IntVar(&o.bytes, "bytes", o.kind.bytes, "`size` of the value of such an item; 0 means a small record")
	flags.IntVar(&o.rate, "rate", 3000, "operations per second on all shards")
	flags.IntVar(&o.keysPerShard, "keys", 10_000, "keys per shard")
	flags.IntVar(&o.rounds, "rounds", o.kind.rounds, "how often each variant is measured")
	flags.DurationVar(&o.before, "before", 15*time.Second, "how long the load runs before the change")
	flags.DurationVar(&o.after, "after", 45*time.Second, "how long the load runs after the change at least")
	flags.DurationVar(&o.bound, "bound", 3*time.Minute, "how long to wait for the hit ratio to recover at most")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the choice of keys: the same seed gives the same load")
	flags.StringVar(&o.out, "out", "docs", "`folder` for the document and the chart, relative to the project's; empty writes none")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.kind.from != "" && o.from == o.to {
		return o, fmt.Errorf("-from and -to are both %s", o.to)
	}
	if o.items < shards {
		return o, fmt.Errorf("-items is %d: use %d or more", o.items, shards)
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds is %d: use 1 or more", o.rounds)
	}
	if o.before < 2*warmUp {
		return o, fmt.Errorf("-before %s is too short to measure the hit ratio: use %s or more", o.before, 2*warmUp)
	}
	var err error
	o.out, err = report.Folder(o.out)
	return o, err
}

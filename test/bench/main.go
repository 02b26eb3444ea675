// Bench measures what an upgrade of memcached costs a client, on the cluster that
// KUBECONFIG names: the same load over the same change of version, on a Memcached
// of this operator and on what people run without it. It prints a table and writes
// it, with a picture, into docs/.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/machine"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// options are what a person may ask for.
type options struct {
	from, to string
	// rate of the load, in operations a second on all shards.
	rate int
	// keys a shard.
	keys int
	// before, after and bound are how long the load runs before the change, at
	// least after it, and at most after it.
	before, after, bound time.Duration
	seed                 uint64
	only                 []string
	out                  string
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

func run(ctx context.Context, args []string) error {
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
	b.say("memcached %s → %s on %d shards, %d keys each, under %d operations a second", o.from, o.to, shards, o.keys, o.rate)
	var results []result
	for _, v := range variants {
		if len(o.only) > 0 && !slices.Contains(o.only, v.id) {
			continue
		}
		r, err := b.measure(ctx, v)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		results = append(results, r)
	}
	d := document{options: o, machine: described, date: began, args: args, results: results}
	b.say("\n%s\n%s\nThe whole took %s.", d.terminal(), described, time.Since(began).Round(time.Second))
	if n := d.disturbed(); n > 0 {
		b.say("%s operations failed before anything was changed: the machine had other work, so run this again when it has none.", report.Number(n))
	}
	if o.out == "" {
		return nil
	}
	if err := d.write(o.out); err != nil {
		return err
	}
	b.say("It is written to %s and %s.", filepath.Join(o.out, documentFile), filepath.Join(o.out, chartFile))
	return nil
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench-upgrade", flag.ExitOnError)
	flags.StringVar(&o.from, "from", "1.6.38", "`version` of memcached before the change")
	flags.StringVar(&o.to, "to", os.Getenv("MEMCACHED_NEWEST"), "`version` after it; empty is the operator's default")
	flags.IntVar(&o.rate, "rate", 3000, "operations a second, on all shards together")
	flags.IntVar(&o.keys, "keys", 10_000, "keys a shard")
	flags.DurationVar(&o.before, "before", 15*time.Second, "how long the load runs before the change")
	flags.DurationVar(&o.after, "after", 45*time.Second, "how long it runs on at least")
	flags.DurationVar(&o.bound, "bound", 3*time.Minute, "how long it waits at most until the hit ratio is back")
	flags.Uint64Var(&o.seed, "seed", 1, "of the choice of keys: the same seed gives the same load")
	only := flags.String("only", "", "measure these alone, of "+strings.Join(ids(), ","))
	flags.StringVar(&o.out, "out", "docs", "`folder` for the document and the picture; empty writes none. Relative to the project's")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
		for _, id := range o.only {
			if !slices.Contains(ids(), id) {
				return o, fmt.Errorf("-only names %q, which is none of %s", id, strings.Join(ids(), ", "))
			}
		}
	}
	if o.from == o.to {
		return o, fmt.Errorf("-from and -to are both %s", o.to)
	}
	if o.before < 2*settle {
		return o, fmt.Errorf("-before %s is too short to know the hit ratio: it takes %s at least", o.before, 2*settle)
	}
	var err error
	o.out, err = report.Folder(o.out)
	return o, err
}

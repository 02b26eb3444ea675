// Package upgrade measures what an upgrade of memcached, or the eviction of its pods, costs a client, on the cluster that KUBECONFIG
// names: the same load during the same change, on a Memcached of this operator and on what users run without it.
package upgrade

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/bench/internal/workload"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const shards = 3

type space = workload.Space

// variant is a way to run three shards, each with a stable address.
type variant struct {
	name string
	// does describes what a user does.
	does   string
	create func(ctx context.Context, in space, version string) error
	// change starts the change.
	change func(ctx context.Context, in space, version string) error
	// upToDate returns an error until all shards run the version and serve, and nothing of another version is left.
	upToDate func(ctx context.Context, in space, version string) error
}

// kind is a change whose cost is measured, with the defaults of its options.
type kind struct {
	variants []variant // measured in this order and compared with the first
	title    func(options) string
	noun     string
	// from is empty for a change that keeps the version.
	from          string
	items         string
	bytes, rounds int
	// further are the variants that are measured with further numbers of items.
	further []string
	// during reports the latencies until the change is done.
	during bool
	// brief are the variants of the picture in the README.
	brief []string
}

var (
	//go:embed upgrade.md
	upgradeTemplate string
	//go:embed handover.md
	handoverTemplate string
)

// Upgrade measures an upgrade of memcached, and Handover the eviction of all pods.
var (
	Upgrade  = report.Benchmark{Name: "upgrade", Summary: "what an upgrade of memcached costs a client", Template: upgradeTemplate, Flags: upgrade.flags}
	Handover = report.Benchmark{Name: "handover", Summary: "what the eviction of all pods costs a client", Template: handoverTemplate, Flags: eviction.flags}
)

var upgrade = kind{
	noun: "upgrade",
	title: func(o options) string {
		return fmt.Sprintf("An upgrade of memcached from %s to %s under load", o.from, o.to)
	},
	from: "1.6.38", items: "30000", rounds: 5, brief: []string{"this operator", "StatefulSet"},
	variants: []variant{
		{"this operator", "`spec.version` of a Memcached with 3 shards is changed", applyMemcached, applyMemcached, memcachedUpToDate},
		{"by handover", "the same with `spec.updateStrategy.type: Handover` and `spec.updateStrategy.handover.mode: Available`", applyAvailable, applyAvailable, memcachedUpToDate},
		{"StatefulSet", "the image of a StatefulSet with 3 replicas is changed (RollingUpdate)", workload.CreateStatefulSet, workload.UpgradeStatefulSet, workload.PodsUpToDate},
		{"Deployments", "the image of 3 Deployments with 1 replica each is changed, all at once as `kubectl apply` and Helm do (RollingUpdate)",
			workload.CreateDeployments, workload.UpgradeDeployments, workload.PodsUpToDate},
	},
}

var eviction = kind{
	noun:  "eviction",
	title: func(options) string { return "Eviction of all pods under load" },
	items: "150000,1000000", bytes: 500, rounds: 3, during: true, further: []string{"this operator", "mode Available", "StatefulSet"},
	variants: []variant{
		{"this operator", "the pods of a Memcached with 3 shards are evicted; `spec.updateStrategy.handover.mode` is Strict, the default", applyMemcached, evict, memcachedUpToDate},
		{"mode Available", "the same with `spec.updateStrategy.handover.mode: Available`", applyAvailable, evict, memcachedUpToDate},
		{"mode Disabled", "the same with `spec.updateStrategy.handover.mode: Disabled`", applyWithoutHandover, evict, memcachedUpToDate},
		{"StatefulSet", "the pods of a StatefulSet with 3 replicas are evicted", workload.CreateStatefulSet, evict, workload.PodsUpToDate},
		{"Deployments", "the pods of 3 Deployments with 1 replica each are evicted", workload.CreateDeployments, evict, workload.PodsUpToDate},
	},
}

type options struct {
	kind     kind
	from, to string
	// numbers of the items that the load does not read, in all shards, and items that of a run. Their values have bytes; 0 is
	// a small record.
	numbers      string
	items, bytes int
	// rate of the load on all shards, in operations per second.
	rate         int
	keysPerShard int
	// rounds is how often each variant is measured.
	rounds int
	// before and after the change the load runs at least this long, and at most bound after it is done.
	before, after, bound time.Duration
	seed                 uint64
}

// options defines those of the command line.
func (k kind) options(flags *flag.FlagSet) *options {
	o := &options{kind: k}
	if k.from != "" {
		flags.StringVar(&o.from, "from", k.from, "`version` of memcached before the change")
	}
	flags.StringVar(&o.to, "to", os.Getenv("MEMCACHED_NEWEST"), "`version` after the change; empty means the operator's default")
	flags.StringVar(&o.numbers, "items", k.items, "`numbers` of items in all shards that the load does not read; those after the first one are measured in one round")
	flags.IntVar(&o.bytes, "bytes", k.bytes, "`size` of the value of such an item; 0 means a small record")
	flags.IntVar(&o.rate, "rate", 3000, "operations per second on all shards")
	flags.IntVar(&o.keysPerShard, "keys", 10_000, "keys per shard")
	flags.IntVar(&o.rounds, "rounds", k.rounds, "how often each variant is measured")
	flags.DurationVar(&o.before, "before", 15*time.Second, "how long the load runs before the change")
	flags.DurationVar(&o.after, "after", time.Minute, "how long the load runs after the change at least")
	flags.DurationVar(&o.bound, "bound", 3*time.Minute, "how long to wait for the hit ratio to recover at most, after the change is done")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the choice of keys: the same seed gives the same load")
	return o
}

func (k kind) flags(flags *flag.FlagSet) report.Measure { return k.options(flags).measure }

func (o *options) check() error {
	switch {
	case o.kind.from != "" && o.from == o.to:
		return fmt.Errorf("-from and -to are both %s", o.to)
	case o.rounds < 1:
		return errors.New("-rounds must be at least 1")
	case o.before < 2*warmUp:
		return fmt.Errorf("-before %s is too short to measure the hit ratio: use %s or more", o.before, 2*warmUp)
	}
	return nil
}

// runs returns the options for each number of items.
func (o options) runs() ([]options, error) {
	var all []options
	for text := range strings.SplitSeq(o.numbers, ",") {
		run := o
		var err error
		if run.items, err = strconv.Atoi(text); err != nil || run.items < shards {
			return nil, fmt.Errorf("-items has %q: use numbers of at least %d", text, shards)
		}
		if len(all) > 0 {
			run.rounds = 1
			run.kind.variants = slices.DeleteFunc(slices.Clone(o.kind.variants), func(v variant) bool { return !slices.Contains(o.kind.further, v.name) })
		}
		all = append(all, run)
	}
	return all, nil
}

func (o *options) measure(ctx context.Context, r *report.Run) (report.Result, error) {
	if err := o.check(); err != nil {
		return report.Result{}, err
	}
	c, err := cluster.Connect()
	if err != nil {
		return report.Result{}, err
	}
	if o.to == "" {
		if o.to, err = c.DefaultVersion(ctx); err != nil {
			return report.Result{}, err
		}
	}
	if o.from == "" {
		o.from = o.to
	}
	machine, err := report.Cluster(ctx, c)
	if err != nil {
		return report.Result{}, err
	}
	r.Say("%s on %d shards with %d keys each, %d operations per second", o.kind.title(*o), shards, o.keysPerShard, o.rate)
	runs, err := o.runs()
	if err != nil {
		return report.Result{}, err
	}
	var all documents
	for _, run := range runs {
		d, err := run.all(ctx, r, c)
		if err != nil {
			return report.Result{}, err
		}
		all = append(all, d)
	}
	return all.result(machine), nil
}

// all measures all rounds of a number of items.
func (o options) all(ctx context.Context, r *report.Run, c *cluster.Cluster) (document, error) {
	b, variants := &bench{Cluster: c, options: o, say: r.Say}, o.kind.variants
	d := document{options: o, results: make([][]result, len(variants))}
	for round := range o.rounds {
		for i := range variants {
			// Each round begins with another one: what the machine does does not always hit the same.
			n := (round + i) % len(variants)
			v := variants[n]
			r.Say("%s items, round %d of %d, %s: %s", report.Number(o.items), round+1, o.rounds, v.name, v.does)
			var measured result
			err := report.InNamespace(ctx, c, "bench-"+r.Name+"-", func(namespace string) (err error) {
				measured, err = b.measure(ctx, v, space{Cluster: c, Namespace: namespace, Mebibytes: o.mebibytes(), Shards: shards})
				return err
			})
			if err != nil {
				return d, errors.Join(fmt.Errorf("measuring %s", v.name), err)
			}
			d.results[n] = append(d.results[n], measured)
		}
	}
	return d, nil
}

// unreadPerShard is the number of items of a shard that the load does not read.
func (o options) unreadPerShard() int { return o.items / shards }

const (
	// itemBytes are those of an item besides its value, and looseShare is what slab classes waste at most.
	itemBytes  = 100
	looseShare = 1.25
	// leastMebibytes is the operator's default.
	leastMebibytes = 64
)

// mebibytes returns the memory for the items of a shard: more than all of them take, so that none is evicted.
func (o options) mebibytes() int {
	if o.bytes == 0 {
		return leastMebibytes
	}
	bytes := float64(o.unreadPerShard()) * float64(o.bytes+itemBytes) * looseShare
	return leastMebibytes + int(bytes)>>20
}

// Package scaling measures what clients see when the number of shards changes, on the cluster that KUBECONFIG names: from three shards
// to four and back under the same load, with a Memcached of this operator and with what users run without it.
package scaling

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

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/bench/internal/workload"
	"github.com/memcached-operator/memcached-operator/test/bench/load"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	// few and many are the numbers of shards.
	few, many = 3, 4
	// clients have a list each.
	clients = 20
	// atOnce is the time in which the clients of a variant get the new list that don't need all of options.mixed.
	atOnce = 2 * time.Second
	owner  = client.FieldOwner("bench")
)

type space = workload.Space

// variant is a way to run shards.
type variant struct {
	name, does string
	// atOnce is whether the clients get the new list at once.
	atOnce bool
	create func(ctx context.Context, in space, version string) error
	// scale changes the number of shards to that of the space.
	scale func(ctx context.Context, in space, version string) error
	// scaled returns an error until there are as many shards as the space has.
	scaled func(ctx context.Context, in space, version string) error
	// published returns an error until clients may get the new list. Without it, the clients get a list of more shards when there are as
	// many, and a list of fewer shards first.
	published func(ctx context.Context, in space) error
	// confirm reports that all clients have the new list.
	confirm func(ctx context.Context, in space) error
}

var (
	warm = variant{name: "this operator", does: "`spec.size` of a Memcached with `spec.access.hashing` is changed, and `kubectl memcached scaled` confirms that all clients have the list",
		create: applyWarm, scale: applyWarm, scaled: memcachedScaled, published: listPublished, confirm: confirm}
	quick = variant{name: "list read at once", does: "the same, with clients that read `status.servers` or another list that the operator keeps: all have it within seconds",
		atOnce: true, create: applyWarm, scale: applyWarm, scaled: memcachedScaled, published: listPublished, confirm: confirm}
	cold        = variant{name: "mode Cold", does: "`spec.size` of a Memcached with `spec.scaling.mode: Cold` is changed", create: applyCold, scale: applyCold, scaled: memcachedScaled}
	statefulSet = variant{name: "StatefulSet", does: "the number of replicas of a StatefulSet is changed", create: workload.CreateStatefulSet, scale: scaleStatefulSet, scaled: workload.PodsUpToDate}

	variants = []variant{warm, quick, cold, statefulSet}
	// further are measured with further numbers of keys, in one round.
	further = []variant{quick}
)

//go:embed scaling.md
var template string

// Benchmark measures changes of the number of shards.
var Benchmark = report.Benchmark{Name: "scaling", Summary: "what another number of shards costs a client", Template: template, Flags: func(flags *flag.FlagSet) report.Measure {
	return optionsOf(flags).measure
}}

type options struct {
	version string
	// numbers of keys of a shard, and keys that of a run.
	numbers string
	keys    int
	// rate of the load on all shards, in operations per second.
	rate, rounds int
	// mixed is how long clients with the former list and with the new one run beside each other, before and after how long the load runs
	// before each change and after it.
	mixed, before, after time.Duration
	// only is the name of the variant that is measured; empty means all.
	only     string
	variants []variant
}

func optionsOf(flags *flag.FlagSet) *options {
	o := &options{variants: variants}
	flags.StringVar(&o.version, "version", os.Getenv("MEMCACHED_NEWEST"), "`version` of memcached; empty means the operator's default")
	flags.StringVar(&o.numbers, "keys", "20000,1000000", "`numbers` of keys of a shard; those after the first one are measured in one round, of this operator")
	flags.StringVar(&o.only, "only", "", "`name` of the variant that is measured, such as list-read-at-once; empty means all")
	flags.IntVar(&o.rate, "rate", 3000, "operations per second on all shards")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each variant is measured")
	flags.DurationVar(&o.mixed, "mixed", time.Minute, "time in which the clients get the new list, one after the other")
	flags.DurationVar(&o.before, "before", 8*time.Second, "how long the load runs before each change")
	flags.DurationVar(&o.after, "after", 5*time.Second, "how long the load runs after each change")
	return o
}

// runs returns the options for each number of keys.
func (o options) runs() ([]options, error) {
	if o.rounds < 1 || o.mixed < atOnce || o.before < 4*load.Every || o.after < load.Every {
		return nil, fmt.Errorf("use at least -rounds 1, -mixed %s, -before %s and -after %s", atOnce, 4*load.Every, load.Every)
	}
	if o.only != "" {
		if o.variants = slices.DeleteFunc(slices.Clone(o.variants), func(v variant) bool { return strings.ReplaceAll(v.name, " ", "-") != o.only }); len(o.variants) == 0 {
			return nil, fmt.Errorf("-only is %q, which is no variant", o.only)
		}
	}
	var all []options
	for text := range strings.SplitSeq(o.numbers, ",") {
		run := o
		var err error
		if run.keys, err = strconv.Atoi(text); err != nil || run.keys < 1 {
			return nil, fmt.Errorf("-keys has %q: use numbers of at least 1", text)
		}
		if len(all) > 0 {
			run.rounds, run.variants = 1, further
		}
		all = append(all, run)
	}
	return all, nil
}

func (o *options) measure(ctx context.Context, r *report.Run) (report.Result, error) {
	runs, err := o.runs()
	if err != nil {
		return report.Result{}, err
	}
	c, err := cluster.Connect()
	if err != nil {
		return report.Result{}, err
	}
	if o.version == "" {
		if o.version, err = c.DefaultVersion(ctx); err != nil {
			return report.Result{}, err
		}
	}
	machine, err := report.Cluster(ctx, c)
	if err != nil {
		return report.Result{}, err
	}
	var all documents
	for _, run := range runs {
		run.version = o.version
		d := document{options: run, results: make([][]result, len(run.variants))}
		for round := range run.rounds {
			for i := range run.variants {
				// Each round begins with another one: what the machine does does not always hit the same.
				n := (round + i) % len(run.variants)
				v := run.variants[n]
				r.Say("%s keys per shard, round %d of %d, %s: %s", report.Number(run.keys), round+1, run.rounds, v.name, v.does)
				err := report.InNamespace(ctx, c, "bench-scaling-", func(namespace string) error {
					b := &bench{options: run, variant: v, say: r.Say, space: space{Cluster: c, Namespace: namespace, Mebibytes: run.mebibytes(), Shards: few}}
					measured, err := b.measure(ctx)
					d.results[n] = append(d.results[n], measured)
					return err
				})
				if err != nil {
					return report.Result{}, errors.Join(fmt.Errorf("measuring %s", v.name), err)
				}
			}
		}
		all = append(all, d)
	}
	return all.result(machine), nil
}

// mebibytes returns the memory for the items of a shard: more than all of them take when the others have left, so that none is evicted.
func (o options) mebibytes() int { return 64 + o.keys*(load.ValueSize+150)*3/2>>20 }

func keyOf(in space) client.ObjectKey {
	return client.ObjectKey{Namespace: in.Namespace, Name: workload.Name}
}

// serverNames are the same in each run, so that the same keys move.
const serverNames = "{shard}:11211"

func servers(shards int) []string {
	var all []string
	for ordinal := range shards {
		all = append(all, strings.ReplaceAll(serverNames, "{shard}", cluster.ShardName(workload.Name, ordinal)))
	}
	return all
}

func applyWarm(ctx context.Context, in space, version string) error {
	return apply(ctx, in, version, v1beta1.ScalingWarm)
}

func applyCold(ctx context.Context, in space, version string) error {
	return apply(ctx, in, version, v1beta1.ScalingCold)
}

func apply(ctx context.Context, in space, version string, mode v1beta1.ScalingMode) error {
	return in.ApplyMemcached(ctx, keyOf(in), v1beta1.MemcachedSpec{
		Size:    new(int32(in.Shards)), //nolint:gosec // a small number
		Version: version,
		Memory:  new(in.Memory()),
		Access:  v1beta1.MemcachedAccess{Hashing: &v1beta1.Hashing{Algorithm: v1beta1.HashKetama, ServerNameTemplate: serverNames}},
		Scaling: v1beta1.ScalingSpec{Mode: mode},
	}, owner)
}

func memcachedScaled(ctx context.Context, in space, _ string) error {
	m, err := in.Memcached(ctx, keyOf(in))
	if err != nil {
		return err
	}
	if s := m.Status.Scaling; s != nil {
		return fmt.Errorf("%s %s", s.Step, s.Message)
	}
	if m.Status.ObservedGeneration != m.Generation || int(m.Status.Size) != in.Shards || len(m.Status.Servers) != in.Shards {
		return fmt.Errorf("it has %d of %d shards", m.Status.Size, in.Shards)
	}
	return cluster.Available(m)
}

// listPublished returns an error until the items were copied and the new list is in the status.
func listPublished(ctx context.Context, in space) error {
	m, err := in.Memcached(ctx, keyOf(in))
	if err != nil {
		return err
	}
	s := m.Status.Scaling
	if s == nil || s.Step != v1beta1.ScalingWaiting || len(m.Status.Servers) != in.Shards {
		if s == nil {
			s = &v1beta1.ScalingStatus{Message: "the scaling has not begun"}
		}
		return fmt.Errorf("%s %s %s", s.Step, s.Message, s.Problem)
	}
	return nil
}

// confirm does what kubectl memcached scaled does.
func confirm(ctx context.Context, in space) error {
	m, err := in.Memcached(ctx, keyOf(in))
	if err != nil {
		return err
	}
	if m.Status.Scaling == nil {
		return errors.New("the scaling is over before it was confirmed")
	}
	return in.Patch(ctx, m, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1beta1.AnnotationScaled, m.Status.Scaling.ID)))
}

func scaleStatefulSet(ctx context.Context, in space, _ string) error {
	return workload.ScaleStatefulSet(ctx, in)
}

// Package scale measures what the operator does with many Memcacheds: its own program with a real API server and etcd, Kubernetes'
// own controllers, and pods in which nothing runs.
package scale

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/test/bench/internal/scale"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

//go:embed scale.md
var template string

// Benchmark measures the operator with many Memcacheds.
var Benchmark = report.Benchmark{Name: "scale", Summary: "what hundreds and thousands of Memcacheds cost the operator and the API server", Template: template,
	Flags: func(flags *flag.FlagSet) report.Measure {
		o := &options{}
		flags.StringVar(&o.sizes, "n", "100,1000,5000", "numbers of Memcacheds, with a run for each")
		flags.IntVar(&o.perNamespace, "together", 100, "Memcacheds per namespace; with thousands Kubernetes' own controllers become slow, as they go through all pods of a namespace for each change")
		flags.DurationVar(&o.window, "window", time.Minute, "how long to observe an operator that is idle")
		flags.StringVar(&o.from, "from", "1.6.38", "`version` of memcached before the change")
		flags.StringVar(&o.to, "to", "1.6.45", "`version` after the change")
		flags.StringVar(&o.program, "program", "", "`path` of an operator's program to measure, such as one of another release; empty builds this checkout")
		flags.BoolVar(&o.idle, "idle", true, "measure an operator without Memcacheds too, alone and beside foreign objects")
		return o.run
	}}

type options struct {
	sizes        string
	perNamespace int
	// window is how long the bench observes an operator that is idle.
	window time.Duration
	// from and to are the versions of memcached before and after the change.
	from, to string
	// program is the path of the operator; empty means that the bench builds this checkout.
	program string
	idle    bool
}

// maxDisturbance is the share of the processors that other programs may use. The kernel's work for the network is part of it.
const maxDisturbance = 0.15

// parse returns the sizes in ascending order.
func (o *options) parse() (sizes []int, err error) {
	for text := range strings.FieldsFuncSeq(o.sizes, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 20_000 {
			return nil, fmt.Errorf("-n has %q, which is not a number from 1 to 20000", text)
		}
		sizes = append(sizes, n)
	}
	if o.perNamespace < 1 || o.from == o.to {
		return nil, errors.New("-together must be at least 1, and -from another version than -to")
	}
	slices.Sort(sizes)
	return sizes, nil
}

func (o *options) run(ctx context.Context, r *report.Run) (result report.Result, err error) {
	sizes, err := o.parse()
	if err != nil {
		return result, err
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return result, errors.New("KUBEBUILDER_ASSETS is not set, so there is no API server: run make bench-scale")
	}
	log.SetLogger(logr.Discard())
	b := &bench{options: *o, say: r.Say}
	if b.dir, err = os.MkdirTemp("", "bench-scale-"); err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := os.Setenv("TMPDIR", b.dir); err != nil { // of the programs that it starts, too
		return result, err
	}
	if b.program = o.program; b.program == "" {
		if b.program, err = scale.Build(ctx, b.dir); err != nil {
			return result, err
		}
	}
	machine, err := report.Machine()
	if err != nil {
		return result, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(assets, "kube-apiserver"), "--version").Output() //nolint:gosec // one of the test tools
	if err != nil {
		return result, fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	machine = fmt.Sprintf("%s on a %s. Everything runs on that one machine: API server, etcd, controllers, operator and the simulated nodes.", strings.TrimSpace(string(out)), machine)
	d := document{options: *o}
	if o.idle {
		if d.idle, err = b.measureIdle(ctx); err != nil {
			return result, err
		}
	}
	for _, size := range sizes {
		measured, err := b.measure(ctx, size)
		if err != nil {
			return result, err
		}
		d.runs = append(d.runs, measured)
		result = d.result(machine)
		if err := r.Write(result); err != nil { // at once, as the next run may take an hour and fail
			return result, err
		}
	}
	return result, nil
}

type bench struct {
	options options
	// dir is for temporary files.
	dir, program string
	say          func(format string, args ...any)
}

// scene is a scene whose programs' processor time is measured.
type scene struct {
	*scale.Scene
	meter *meter
}

// withScene calls use with a scene for so many Memcacheds.
func (b *bench) withScene(ctx context.Context, size int, use func(context.Context, *scene) error) error {
	return scale.With(ctx, scale.Options{Dir: b.dir, Program: b.program, Size: size, Controllers: true}, func(ctx context.Context, sc *scale.Scene) error {
		m, err := newMeter(sc)
		if err != nil {
			return err
		}
		s := &scene{sc, m}
		if err := s.awaitIdle(ctx); err != nil {
			return err
		}
		return use(ctx, s)
	})
}

// awaitIdle waits until the API server is idle, for at most a minute: it initializes for a few seconds, and longer with new CRDs.
func (s *scene) awaitIdle(ctx context.Context) error {
	const every = 2 * time.Second
	for range 30 {
		before := s.meter.read()
		if err := cluster.Sleep(ctx, every); err != nil {
			return err
		}
		if s.meter.read().minus(before).Server < every/5 {
			return nil
		}
	}
	return nil
}

// stopOperator stops the operator and keeps the processor time that it used.
func (s *scene) stopOperator() {
	s.meter.before = s.meter.read().Operator
	s.Operator.Stop()
}

// run is what the bench measured with Size Memcacheds.
type run struct {
	Size int
	// Limit of the operator's memory in bytes.
	Limit int64
	// Workers is how many Memcacheds the operator reconciles in parallel.
	Workers int
	Phases  []phase
	// CommandLine is how the operator was started.
	CommandLine string
}

func (r run) phase(name string) phase {
	for _, p := range r.Phases {
		if p.Name == name {
			return p
		}
	}
	return phase{}
}

// The phases of a run, in order.
const (
	phaseCreate  = "create"
	phaseSteady  = "steady"
	phaseResync  = "resync"
	phaseRestart = "restart"
	phaseUpdate  = "update"
)

func (b *bench) measure(ctx context.Context, size int) (r run, err error) {
	b.say("%s Memcacheds of %d shards:", report.Number(size), scale.Shards)
	err = b.withScene(ctx, size, func(ctx context.Context, s *scene) error {
		r, err = b.phases(ctx, s, size)
		return err
	})
	return r, err
}

func (b *bench) phases(ctx context.Context, s *scene, size int) (run, error) {
	namespaces := (size + b.options.perNamespace - 1) / b.options.perNamespace
	fleet, err := scale.NewFleet(ctx, s.Client, s.Admin, size, namespaces)
	if err != nil {
		return run{}, err
	}
	if err := scale.StartKubelet(ctx, s.Admin, size*scale.Shards); err != nil {
		return run{}, err
	}
	if err := s.Operator.Start(ctx); err != nil {
		return run{}, err
	}
	r := run{Size: size, Limit: s.Operator.Limit, CommandLine: s.Operator.CommandLine()}
	o := &observer{scene: s, fleet: fleet, say: b.say}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{phaseCreate, func(ctx context.Context) error {
			return o.all(ctx, "Available", scale.IsAvailable, func(ctx context.Context) error { return fleet.Create(ctx, b.options.from) })
		}},
		{phaseSteady, func(ctx context.Context) error { return cluster.Sleep(ctx, b.options.window) }},
		{phaseResync, func(ctx context.Context) error {
			return o.reconciled(ctx, func(ctx context.Context) error {
				return fleet.Patch(ctx, `{"metadata":{"annotations":{"bench":"resync"}}}`)
			})
		}},
		{phaseRestart, func(ctx context.Context) error { return o.reconciled(ctx, s.Operator.Start) }},
		{phaseUpdate, func(ctx context.Context) error {
			return o.all(ctx, "up to date", scale.IsUpToDate(b.options.to), func(ctx context.Context) error {
				return fleet.Patch(ctx, fmt.Sprintf(`{"spec":{"version":%q}}`, b.options.to))
			})
		}},
	} {
		if step.name == phaseRestart {
			s.stopOperator()
		}
		p, err := o.observe(ctx, step.name, step.do)
		if err != nil {
			return r, fmt.Errorf("%s: %w", step.name, err)
		}
		r.Phases, r.Workers = append(r.Phases, p), p.workers
		b.say("%s", p.summary(size))
	}
	return r, nil
}

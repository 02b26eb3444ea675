// Benchscale measures what the operator does with many Memcacheds: its own program with a real API server and etcd,
// Kubernetes' own controllers, and pods in which nothing runs. It prints what it measured and writes it, with a chart, to
// docs/.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	build "github.com/memcached-operator/memcached-operator/test/internal/operator"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

type options struct {
	// sizes are the numbers of Memcacheds of the runs.
	sizes        []int
	perNamespace int
	// window is how long the bench observes an operator that is idle.
	window time.Duration
	// from and to are the versions of memcached before and after the change.
	from, to string
	// program is the path of the operator; empty means that the bench builds this checkout.
	program  string
	requests bool
	idle     bool
	out      string
}

// maxDisturbance is the share of the processors that other programs may use. The kernel's work for the network is part
// of it.
const maxDisturbance = 0.15

type bench struct {
	options options
	// dir is for temporary files.
	dir, program string
	// withoutControllers starts none of Kubernetes' own controllers: a test has a simple one, and needs no program for them.
	withoutControllers bool
	say                func(format string, args ...any)
}

func main() { report.Main(start) }

func start(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return errors.New(`KUBEBUILDER_ASSETS is not set, so there is no API server: run make bench-scale, or eval "$(make -s env)" first`)
	}
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "bench-scale-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Setenv("TMPDIR", dir); err != nil { // of the programs that it starts, too
		return err
	}
	b := &bench{options: o, dir: dir, say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	d := document{options: o, args: args, date: time.Now()}
	if b.program = o.program; b.program == "" {
		if b.program, err = build.Build(ctx, dir); err != nil {
			return err
		}
	}
	if d.machine, err = describe(); err != nil {
		return err
	}
	b.say("%s", d.machine)
	if o.idle {
		i, err := b.measureIdle(ctx)
		if err != nil {
			return err
		}
		d.idle = &i
	}
	for _, size := range o.sizes {
		r, err := b.measure(ctx, size)
		if err != nil {
			return err
		}
		d.runs = append(d.runs, r)
		if o.out == "" {
			continue
		}
		if err := d.write(o.out); err != nil { // at once, as the next run may take an hour and fail
			return err
		}
	}
	b.say("\n%s\nThe benchmark took %s.", d.terminal(), time.Since(d.date).Round(time.Second))
	if share := d.disturbance(); share > maxDisturbance {
		b.say("Other programs used %s of the processors. Run the benchmark again when the machine is idle.", report.Percent(share, 0))
	}
	return nil
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench-scale", flag.ExitOnError)
	sizes := flags.String("n", "100,1000,5000", "numbers of Memcacheds, with a run for each")
	flags.IntVar(&o.perNamespace, "together", 100, "Memcacheds per namespace; with thousands Kubernetes' own controllers become slow, as they go through all pods of a namespace for each change")
	flags.DurationVar(&o.window, "window", time.Minute, "how long to observe an operator that is idle")
	flags.StringVar(&o.from, "from", "1.6.38", "`version` of memcached before the change")
	flags.StringVar(&o.to, "to", "1.6.45", "`version` after the change")
	flags.StringVar(&o.program, "program", "", "`path` of an operator's program to measure, such as one of another release; empty builds this checkout")
	flags.BoolVar(&o.requests, "requests", false, "list the operator's requests to the API server by verb and resource")
	flags.BoolVar(&o.idle, "idle", true, "measure an operator without Memcacheds too, alone and beside foreign objects")
	flags.StringVar(&o.out, "out", "docs", "`folder` for the document and the chart, relative to the project's; empty writes none")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.FieldsFuncSeq(*sizes, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 20_000 {
			return o, fmt.Errorf("-n has %q, which is not a number from 1 to 20000", text)
		}
		o.sizes = append(o.sizes, n)
	}
	slices.Sort(o.sizes)
	if o.perNamespace < 1 || o.from == o.to {
		return o, errors.New("-together must be at least 1, and -from another version than -to")
	}
	var err error
	o.out, err = report.Folder(o.out)
	return o, err
}

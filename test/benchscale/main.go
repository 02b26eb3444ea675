// Benchscale measures what the operator does with many Memcacheds: its own program,
// against a real API server and etcd, with Kubernetes' own controllers and with pods
// of which nothing runs. It prints what it measured and writes it, with a picture, into
// docs/.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	build "github.com/memcached-operator/memcached-operator/test/internal/operator"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// options are what a person may ask for.
type options struct {
	// sizes are how many Memcacheds there are in each run.
	sizes []int
	// together is how many share a namespace.
	together int
	// window is how long an operator is watched that has nothing to do.
	window time.Duration
	// from and to are the versions of memcached before and after the change.
	from, to string
	// program is the operator's; empty is one that is built from this checkout.
	program string
	// requests says whether what was asked of the API server is listed.
	requests bool
	// idle says whether an operator without Memcacheds is measured too.
	idle bool
	out  string
}

// quietEnough is how much of the processors other programs may have, from 0 to 1: the
// kernel's own work for the network is among them.
const quietEnough = 0.15

// bench is a run of this program.
type bench struct {
	options options
	// dir is for everything that is not to stay, and program the operator's.
	dir, program string
	say          func(format string, args ...any)
}

func main() {
	// Until the end: an interrupt is what ends all that was started.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "\nbench: %v\n", err)
		os.Exit(1)
	}
}

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
	if err := os.Setenv("TMPDIR", dir); err != nil { // for what is started, too
		return err
	}
	b := &bench{options: o, dir: dir, say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	began := time.Now()
	if b.program = o.program; b.program == "" {
		if b.program, err = build.Build(ctx, dir); err != nil {
			return err
		}
	}
	d := document{options: o, args: args, date: began}
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
		if err := d.write(o.out); err != nil { // now: the next run may take an hour, and fail
			return err
		}
	}
	b.say("\n%s\nThe whole took %s.", d.terminal(), time.Since(began).Round(time.Second))
	if share := d.disturbed(); share > quietEnough {
		b.say("Other programs had %.0f %% of the processors, so run this again when the machine does nothing else.", 100*share)
	}
	if o.out != "" && len(d.runs) > 0 {
		b.say("It is written to %s.", filepath.Join(o.out, documentFile))
	}
	return nil
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench-scale", flag.ExitOnError)
	sizes := flags.String("n", "100,1000,5000", "how many Memcacheds, a run for each number")
	flags.IntVar(&o.together, "together", 100, "how many share a namespace; thousands do so at the price of Kubernetes' own controllers, which go through all pods of a namespace for each change")
	flags.DurationVar(&o.window, "window", time.Minute, "how long an operator is watched that has nothing to do")
	flags.StringVar(&o.from, "from", "1.6.38", "`version` of memcached before the change")
	flags.StringVar(&o.to, "to", "1.6.45", "`version` after it")
	flags.StringVar(&o.program, "program", "", "`path` of an operator's program to measure, such as one of another release; empty is this checkout's, which is built")
	flags.BoolVar(&o.requests, "requests", false, "list what the operator asked of the API server, by verb and resource")
	flags.BoolVar(&o.idle, "idle", true, "measure an operator without Memcacheds too, alone and beside foreign objects")
	flags.StringVar(&o.out, "out", "docs", "`folder` for the document and the picture; empty writes none. Relative to the project's")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 20_000 {
			return o, fmt.Errorf("-n has %q, which is no number from 1 to 20000", text)
		}
		o.sizes = append(o.sizes, n)
	}
	slices.Sort(o.sizes)
	if o.together < 1 || o.from == o.to {
		return o, errors.New("-together must be at least 1, and -from another version than -to")
	}
	var err error
	o.out, err = report.Folder(o.out)
	return o, err
}

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/scorecard/internal/archive"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scorecard:", err)
		os.Exit(1)
	}
}

// options are what the command line asks for.
type options struct {
	bundle, namespace string
	selector          labels.Selector
	// image has the program of the suite memcached.
	image    string
	waitTime time.Duration
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("scorecard", flag.ContinueOnError)
	flags.StringVar(&o.bundle, "bundle", "", "`FOLDER` with the bundle")
	flags.StringVar(&o.namespace, "namespace", "", "namespace `NAME` to run the tests in")
	selector := flags.String("selector", "", "`LABELS` of the tests to run, such as suite=memcached; empty is all")
	flags.StringVar(&o.image, "image", "", "image `REFERENCE` with "+program+": it unpacks the bundle, and runs the tests that begin so")
	flags.DurationVar(&o.waitTime, "wait-time", 5*time.Minute, "`DURATION` that all tests may take together")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if o.bundle == "" || o.namespace == "" || o.image == "" || flags.NArg() > 0 {
		return options{}, errors.New("--bundle, --namespace and --image are needed, and nothing but flags")
	}
	var err error
	if o.selector, err = labels.Parse(*selector); err != nil {
		return options{}, fmt.Errorf("reading --selector: %w", err)
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	config, err := readConfig(o.bundle)
	if err != nil {
		return err
	}
	if config, err = choose(config, o); err != nil {
		return err
	}
	packed, err := archive.Pack(os.DirFS(o.bundle))
	if err != nil {
		return fmt.Errorf("reading the bundle: %w", err)
	}
	c, err := cluster.Connect()
	if err != nil {
		return err
	}
	if err := useNewest(ctx, c); err != nil {
		return err
	}
	r := &runner{Cluster: c, options: o, account: cmp.Or(config.ServiceAccount, "default"), told: newTeller(os.Stdout)}
	r.told.say("running %d tests in namespace %s as ServiceAccount %s", count(config), o.namespace, r.account)
	results, err := r.runAll(ctx, config, packed)
	if err != nil {
		return err
	}
	report(os.Stdout, results)
	return verdict(results)
}

// useNewest has the operator run the newest memcached that the local cluster has an
// image of, should that have moved on from the release's own.
func useNewest(ctx context.Context, c *cluster.Cluster) error {
	image, err := c.OperatorImage(ctx)
	if err != nil || image == "" {
		return err
	}
	return c.UseNewest(ctx)
}

// count returns how many tests there are.
func count(config v1alpha3.Configuration) int {
	n := 0
	for _, stage := range config.Stages {
		n += len(stage.Tests)
	}
	return n
}

// verdict is an error unless all tests passed.
func verdict(results []result) error {
	failed := 0
	for _, r := range results {
		if r.state() != v1alpha3.PassState {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tests did not pass", failed, len(results))
	}
	return nil
}

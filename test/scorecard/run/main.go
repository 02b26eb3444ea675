// Run runs the scorecard tests of a bundle on the cluster that KUBECONFIG names, as "operator-sdk scorecard" does with
// --pod-security=restricted:
//
//	go run ./scorecard/run --bundle FOLDER --namespace NAME --image REFERENCE [--service-account NAME] [--selector LABELS] [--wait-time DURATION]
//
// Each test is a pod with the bundle at /bundle, which an init container unpacks from a ConfigMap. The log of the pod is
// the result of the test. The exit status is 1 unless all tests pass.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// program is the entrypoint of the tests that run in the image of --image.
const program = "/scorecard-memcached"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scorecard:", err)
		os.Exit(1)
	}
}

type options struct {
	bundle, namespace, account, image string
	selector                          labels.Selector
	waitTime                          time.Duration
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("scorecard", flag.ContinueOnError)
	flags.StringVar(&o.bundle, "bundle", "", "`FOLDER` of the bundle")
	flags.StringVar(&o.namespace, "namespace", "", "namespace `NAME` to run the tests in")
	flags.StringVar(&o.account, "service-account", "default", "`NAME` of the ServiceAccount of the tests")
	selector := flags.String("selector", "", "`LABELS` of the tests to run, such as suite=memcached; empty runs all")
	flags.StringVar(&o.image, "image", "", "image `REFERENCE` that unpacks the bundle and runs the tests of "+program)
	flags.DurationVar(&o.waitTime, "wait-time", 5*time.Minute, "`DURATION` that all tests may take together")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.bundle == "" || o.namespace == "" || o.image == "" || flags.NArg() > 0 {
		return o, errors.New("--bundle, --namespace and --image are required, and there are no other arguments")
	}
	var err error
	if o.selector, err = labels.Parse(*selector); err != nil {
		return o, fmt.Errorf("reading --selector: %w", err)
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	config, err := o.readConfig()
	if err != nil {
		return err
	}
	packed, err := exec.CommandContext(ctx, "tar", "-C", o.bundle, "-czf", "-", ".").Output()
	if err != nil {
		return fmt.Errorf("packing the bundle: %w", err)
	}
	c, err := cluster.Connect()
	if err != nil {
		return err
	}
	if image, err := c.OperatorImage(ctx); err != nil {
		return err
	} else if image != "" {
		if err := c.UseNewest(ctx); err != nil {
			return err
		}
	}
	r := &runner{Cluster: c, options: o, began: time.Now()}
	r.say("running tests in namespace %s as ServiceAccount %s", o.namespace, r.account)
	results, err := r.runAll(ctx, config, packed)
	if err != nil {
		return err
	}
	failed := 0
	for _, result := range results {
		if result.State != v1alpha3.PassState {
			failed++
			described, _ := yaml.Marshal(result) // consists of strings
			fmt.Printf("\n%s", described)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tests did not pass", failed, len(results))
	}
	return nil
}

// readConfig returns the configuration in the bundle with the selected tests, which run in the image of the options if it
// has their program.
func (o options) readConfig() (v1alpha3.Configuration, error) {
	var config v1alpha3.Configuration
	content, err := os.ReadFile(filepath.Join(o.bundle, "tests", "scorecard", "config.yaml"))
	if err != nil {
		return config, fmt.Errorf("reading the scorecard configuration: %w", err)
	}
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		return config, fmt.Errorf("reading the scorecard configuration: %w", err)
	}
	selected := 0
	for i := range config.Stages {
		var tests []v1alpha3.TestConfiguration
		for _, test := range config.Stages[i].Tests {
			if !o.selector.Matches(labels.Set(test.Labels)) {
				continue
			}
			if len(test.Entrypoint) > 0 && test.Entrypoint[0] == program {
				test.Image = o.image
			}
			tests = append(tests, test)
		}
		config.Stages[i].Tests = tests
		selected += len(tests)
	}
	if selected == 0 {
		return config, fmt.Errorf("no test has the labels %q", o.selector)
	}
	return config, nil
}

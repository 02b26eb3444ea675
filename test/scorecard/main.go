package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/test/scorecard/internal/archive"
)

// test is one that config/scorecard may ask for, by its name.
type test struct {
	name string
	run  func(context.Context, *trial) error
}

var tests = []test{
	{"operator-install", operatorInstall},
	{"cr-ready", crReady},
	{"conditions", conditions},
	{"pod-failure", podFailure},
	{"scale", scale},
	{"operand-upgrade", operandUpgrade},
	{"backup-restore", backupRestore},
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "tar" {
		if err := untar(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "scorecard-memcached:", err)
			os.Exit(1)
		}
		return
	}
	// What libraries have to say would spoil the one line.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := write(os.Stdout, run(ctx, os.Args[1:])); err != nil {
		os.Exit(1) // nobody reads, so there is nobody to tell
	}
}

// run does the test that args name and returns what came of it.
func run(ctx context.Context, args []string) (result v1alpha3.TestResult) {
	result.Name = strings.Join(args, " ")
	defer recovered(&result)
	i := slices.IndexFunc(tests, func(t test) bool { return len(args) == 1 && t.name == args[0] })
	if i < 0 {
		return unable(result, fmt.Errorf("one argument is needed, the test: %s", strings.Join(names(), ", ")))
	}
	t, err := newTrial()
	if err != nil {
		return unable(result, err)
	}
	return t.judge(result, t.run(ctx, tests[i].run))
}

// recovered makes a panic a result.
func recovered(result *v1alpha3.TestResult) {
	if trouble := recover(); trouble != nil {
		result.State = v1alpha3.ErrorState
		result.Errors = append(result.Errors, fmt.Sprintf("the test itself is broken: %v", trouble))
	}
}

// names are those of the tests.
func names() []string {
	var all []string
	for _, t := range tests {
		all = append(all, t.name)
	}
	return all
}

// unable is the result of a test that could not be begun.
func unable(result v1alpha3.TestResult, err error) v1alpha3.TestResult {
	result.State, result.Errors = v1alpha3.ErrorState, []string{err.Error()}
	return result
}

// write prints the result as the one line that a scorecard reads.
func write(to io.Writer, result v1alpha3.TestResult) error {
	return json.NewEncoder(to).Encode(v1alpha3.TestStatus{Results: []v1alpha3.TestResult{result}})
}

// untar does what the scorecard asks of its init container, and nothing else that
// tar does.
func untar(args []string) error {
	if len(args) != 4 || args[0] != "xvzf" || args[2] != "-C" {
		return errors.New("use: tar xvzf ARCHIVE -C FOLDER")
	}
	packed, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer packed.Close()
	return archive.Unpack(packed, args[3])
}

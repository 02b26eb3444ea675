// Scorecard-memcached is the image of the scorecard suite "memcached", for "operator-sdk scorecard" and "make scorecard".
// Its argument names the test, which checks the operator on the cluster that the pod runs in.
//
// The program prints one TestStatus of scorecard.operatorframework.io/v1alpha3 as one line of JSON and nothing else. Its
// state is
//
//	pass   if the operator does what the test checks,
//	fail   if it does not: errors say what the test observed, suggestions where to look,
//	error  if the test could not run: no bundle, no permission, interrupted.
//
// The bundle is at /bundle, and SCORECARD_NAMESPACE names the namespace to work in. A test creates a Memcached with a
// generated name, so that tests can run in parallel, and deletes it at the end, also after a failure or an interrupt.
package main

import (
	"context"
	"encoding/json"
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
)

type test struct {
	name string
	run  func(context.Context, *environment) error
}

// tests are those that config/scorecard names.
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
	klog.SetLogger(logr.Discard()) // the output is one line
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := write(os.Stdout, run(ctx, os.Args[1:])); err != nil {
		os.Exit(1)
	}
}

// run returns the result of the test that args name.
func run(ctx context.Context, args []string) (result v1alpha3.TestResult) {
	result.Name = strings.Join(args, " ")
	defer recoverPanic(&result)
	i := slices.IndexFunc(tests, func(t test) bool { return len(args) == 1 && t.name == args[0] })
	if i < 0 {
		return cannotRun(result, fmt.Errorf("one argument is required, the test: %s", strings.Join(testNames(), ", ")))
	}
	e, err := newEnvironment()
	if err != nil {
		return cannotRun(result, err)
	}
	return e.complete(result, e.run(ctx, tests[i].run))
}

func recoverPanic(result *v1alpha3.TestResult) {
	if p := recover(); p != nil {
		result.State = v1alpha3.ErrorState
		result.Errors = append(result.Errors, fmt.Sprintf("the test panicked: %v", p))
	}
}

func testNames() []string {
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	return names
}

func cannotRun(result v1alpha3.TestResult, err error) v1alpha3.TestResult {
	result.State, result.Errors = v1alpha3.ErrorState, []string{err.Error()}
	return result
}

func write(to io.Writer, result v1alpha3.TestResult) error {
	return json.NewEncoder(to).Encode(v1alpha3.TestStatus{Results: []v1alpha3.TestResult{result}})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"github.com/operator-framework/api/pkg/manifests"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	// bundleDir is where the scorecard unpacks the bundle.
	bundleDir = "/bundle"
	// testTimeout is less than the scorecard's wait time, so that a test ends with a result. On a new cluster, pulling
	// images takes most of it.
	testTimeout = 4 * time.Minute
	// stepTimeout bounds one step of a test.
	stepTimeout = 2 * time.Minute
	// observeTimeout is how long an operator on a busy cluster may take to observe a Memcached.
	observeTimeout = 30 * time.Second
	cleanupTimeout = 20 * time.Second
)

// errNoOperator is the error of a Memcached that no operator observes.
var errNoOperator = errors.New("no operator observes it")

// environment is what a test works with and what it observed.
type environment struct {
	*cluster.Cluster
	namespace string
	bundle    *manifests.Bundle
	began     time.Time
	log       strings.Builder
	instances []*instance
	// created are the objects that the test created.
	created []client.Object
}

// newEnvironment reads the bundle and connects to the cluster that this pod runs in.
func newEnvironment() (*environment, error) {
	e := &environment{namespace: os.Getenv("SCORECARD_NAMESPACE"), began: time.Now()}
	if e.namespace == "" {
		return nil, errors.New("SCORECARD_NAMESPACE is not set: run this with operator-sdk scorecard or make scorecard")
	}
	var err error
	if e.bundle, err = manifests.GetBundleFromDir(bundleDir); err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	config.WarningHandler = rest.NoWarnings{}
	if e.Cluster, err = cluster.New(config); err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return e, nil
}

// run runs a test and deletes what it created.
func (e *environment) run(ctx context.Context, test func(context.Context, *environment) error) error {
	limited, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	err := test(limited, e)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(fmt.Errorf("the test was interrupted after %s: %w", e.age(), ctx.Err()), err)
	}
	if err != nil {
		for _, i := range e.instances {
			i.logState()
		}
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	for _, o := range e.created {
		if failed := client.IgnoreNotFound(e.Delete(clean, o)); failed != nil {
			err = errors.Join(err, fmt.Errorf("cleaning up: delete %T %s manually: %w", o, o.GetName(), failed))
		}
	}
	return err
}

// logf adds a line to the log, with the time since the test began.
func (e *environment) logf(format string, args ...any) {
	fmt.Fprintf(&e.log, "%6s %s\n", e.age(), fmt.Sprintf(format, args...))
}

func (e *environment) age() string { return fmt.Sprintf("%.1fs", time.Since(e.began).Seconds()) }

// createObject creates an object that run deletes after the test.
func (e *environment) createObject(ctx context.Context, o client.Object) error {
	if err := e.Create(ctx, o); err != nil {
		return fmt.Errorf("creating a %T: %w", o, err)
	}
	e.created = append(e.created, o)
	return nil
}

// complete completes the result of a test that returned err.
func (e *environment) complete(result v1alpha3.TestResult, err error) v1alpha3.TestResult {
	result.CreationTimestamp = metav1.NewTime(e.began)
	result.State = v1alpha3.PassState
	if err != nil {
		result.State = v1alpha3.FailState
		if !isOfOperator(err) {
			result.State = v1alpha3.ErrorState
		}
		result.Errors = strings.Split(err.Error(), "\n")
		result.Suggestions = e.suggestions(err)
	}
	result.Log = e.log.String()
	return result
}

// isOfOperator reports whether the operator is the cause of an error. It is not if the API server is unreachable or
// rejects the test itself, or if the test was interrupted.
func isOfOperator(err error) bool {
	var unreachable *url.Error
	return !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !errors.As(err, &unreachable) && !errors.Is(err, context.Canceled)
}

// suggestions returns where to look for the cause of an error.
func (e *environment) suggestions(err error) []string {
	var all []string
	for _, s := range []struct {
		applies bool
		text    string
	}{
		{apierrors.IsForbidden(err), "Grant the tests their permissions with kubectl apply -k config/scorecard/rbac, and run them in its namespace."},
		{meta.IsNoMatchError(err), "Install the operator first: the cluster has no CRD Memcached."},
		{errors.Is(err, errNoOperator), "Check whether the operator runs: kubectl get pods -A -l app.kubernetes.io/name=memcached-operator. Then read its log."},
		{errors.Is(err, context.Canceled), "Give the scorecard more time: --wait-time=5m."},
	} {
		if s.applies {
			all = append(all, s.text)
		}
	}
	for _, i := range e.instances {
		if c := meta.FindStatusCondition(i.last.Status.Conditions, v1beta1.ConditionDegraded); c != nil && c.Status == metav1.ConditionTrue {
			all = append(all, fmt.Sprintf("docs/troubleshooting.md says what to do about %s.", c.Reason))
		}
	}
	return all
}

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

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	// bundleDir is where the scorecard puts the bundle.
	bundleDir = "/bundle"
	// limit bounds a test, so that it ends with a result before the scorecard's own
	// wait time is up. On a new cluster most of it is the pull of images.
	limit = 4 * time.Minute
	// patience bounds one step of a test.
	patience = 2 * time.Minute
	// notice is how soon an operator that runs takes notice of a Memcached, on a
	// cluster that is busy.
	notice = 30 * time.Second
	// sweep bounds the cleaning up: a pod that is deleted has 30 s by default.
	sweep = 20 * time.Second
)

// errNoOperator is the error of a Memcached of which nobody takes notice.
var errNoOperator = errors.New("no operator takes notice of it")

// trial is what a test works with and what it saw.
type trial struct {
	*cluster.Cluster
	namespace string
	bundle    *manifests.Bundle
	began     time.Time
	log       strings.Builder
	// subjects are the Memcacheds that the test made.
	subjects []*subject
	// others are what else it made.
	others []client.Object
}

// newTrial reads the bundle and connects to the cluster that this pod runs in.
func newTrial() (*trial, error) {
	t := &trial{namespace: os.Getenv("SCORECARD_NAMESPACE"), began: time.Now()}
	if t.namespace == "" {
		return nil, errors.New("SCORECARD_NAMESPACE is not set: this is run by operator-sdk scorecard or make scorecard")
	}
	var err error
	if t.bundle, err = manifests.GetBundleFromDir(bundleDir); err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	config.WarningHandler = rest.NoWarnings{}
	if t.Cluster, err = cluster.New(config); err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return t, nil
}

// run does a test and cleans up after it.
func (t *trial) run(ctx context.Context, test func(context.Context, *trial) error) error {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := test(timed, t)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(fmt.Errorf("the test was ended from outside after %s: %w", t.age(), ctx.Err()), err)
	}
	if err != nil {
		for _, s := range t.subjects {
			s.tellState()
		}
	}
	// Whatever ended the test must not end this.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweep)
	defer cancel()
	for _, o := range t.others {
		if trouble := client.IgnoreNotFound(t.Delete(clean, o)); trouble != nil {
			err = errors.Join(err, fmt.Errorf("cleaning up: %T %s stays, delete it by hand: %w", o, o.GetName(), trouble))
		}
	}
	for _, s := range t.subjects {
		err = errors.Join(err, s.delete(clean))
	}
	return err
}

// tell adds a line to the log, with the time since the test began.
func (t *trial) tell(format string, args ...any) {
	fmt.Fprintf(&t.log, "%6s %s\n", t.age(), fmt.Sprintf(format, args...))
}

func (t *trial) age() string { return fmt.Sprintf("%.1fs", time.Since(t.began).Seconds()) }

// judge completes the result of a test that ended with err.
func (t *trial) judge(result v1alpha3.TestResult, err error) v1alpha3.TestResult {
	result.CreationTimestamp = metav1.NewTime(t.began)
	result.State = v1alpha3.PassState
	if err != nil {
		result.State = v1alpha3.FailState
		if isUnable(err) {
			result.State = v1alpha3.ErrorState
		}
		result.Errors = strings.Split(err.Error(), "\n")
		result.Suggestions = t.suggestions(err)
	}
	result.Log = t.log.String()
	return result
}

// isUnable says whether an error is not of the operator: the API server did not
// answer or refused the test itself, the cluster lacks what the test takes, or the
// test was ended.
func isUnable(err error) bool {
	var unreachable *url.Error
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || errors.As(err, &unreachable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, errNoStorage)
}

// suggestions say where to look.
func (t *trial) suggestions(err error) []string {
	var all []string
	if apierrors.IsForbidden(err) {
		all = append(all, "Give the tests their permissions: kubectl apply -k config/scorecard/rbac, and run them in its namespace.")
	}
	if meta.IsNoMatchError(err) {
		all = append(all, "Install the operator first: the cluster does not know the kind Memcached.")
	}
	if errors.Is(err, errNoOperator) {
		all = append(all, "See whether the operator runs: kubectl get pods -A -l app.kubernetes.io/name=memcached-operator. Its log says what keeps it.")
	}
	if errors.Is(err, context.Canceled) {
		all = append(all, "Give the scorecard more time: --wait-time=5m.")
	}
	if errors.Is(err, errNoStorage) {
		all = append(all, "Make a StorageClass the default one: kubectl annotate storageclass NAME "+defaultClassAnnotations[0]+"=true")
	}
	var run *runError
	if errors.As(err, &run) && run.reason != "" {
		all = append(all, fmt.Sprintf("docs/backup.md says under \"When it fails\" what to do about %s.", run.reason))
	}
	for _, s := range t.subjects {
		if reason := s.trouble(); reason != "" {
			all = append(all, fmt.Sprintf("docs/user-guide.md says under \"Reading the status\" what to do about %s.", reason))
		}
	}
	return all
}

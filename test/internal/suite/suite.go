// Package suite has what the tests on a cluster share: a namespace for each test, steps on a Memcached that stop the test
// when they fail, and the history of a Memcached and its pods.
package suite

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// parallel is the number of tests that run in parallel. Most wait most of the time; all at once would be slow where memory is
// short.
const parallel = "12"

var (
	// K is the cluster.
	K *cluster.Cluster
	// DefaultVersion is the operator's default version of memcached.
	DefaultVersion string
	// Versions of memcached that are tested, oldest first.
	Versions []string
)

// Run connects to the cluster, on which the operator must run, calls begin, runs the tests and returns the exit code.
func Run(m *testing.M, begin func()) int {
	if err := setUp(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	begin()
	return m.Run()
}

func setUp(ctx context.Context) error {
	err := flag.Set("test.parallel", parallel) // a -parallel of the command line is parsed later
	if err != nil {
		return err
	}
	if Versions, err = versions(os.Getenv(VersionsVariable)); err != nil {
		return err
	}
	if K, err = cluster.Connect(); err != nil {
		return err
	}
	image, err := K.OperatorImage(ctx)
	if err != nil {
		return err
	}
	if image == "" {
		return errors.New(`the operator is not installed: run this through make (make test-e2e), or first "make deploy"`)
	}
	if err := K.OperatorReady(ctx); err != nil {
		return err
	}
	DefaultVersion, err = K.DefaultVersion(ctx)
	return err
}

// VersionsVariable is the environment variable with the versions of memcached, separated by spaces.
const VersionsVariable = "MEMCACHED_VERSIONS"

// versions returns the versions in a list, oldest first.
func versions(list string) ([]string, error) {
	all := strings.Fields(list)
	if len(all) < 3 {
		return nil, fmt.Errorf("%s is %q, and the tests need three versions: run them through make (make test-e2e)", VersionsVariable, list)
	}
	slices.SortFunc(all, func(a, b string) int { return semver.MustParse(a).Compare(semver.MustParse(b)) })
	return all, nil
}

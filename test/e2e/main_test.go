package e2e

import (
	"os"
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

var (
	k              *cluster.Cluster
	defaultVersion string
	versions       []string
)

// testImage is the image in which these tests run.
var testImage = os.Getenv("TEST_IMAGE")

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func() { k, defaultVersion, versions = suite.K, suite.DefaultVersion, suite.Versions }))
}

// space is a test's own namespace with the steps of this package.
type space struct{ *suite.Space }

// newSpace lets the test run beside the others.
func newSpace(t *testing.T) *space {
	t.Helper()
	t.Parallel()
	return &space{suite.New(t)}
}

package host

import (
	"context"
	"fmt"
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

// atEnd is done after the last test.
var atEnd []func(context.Context) error

func TestMain(m *testing.M) {
	code := suite.Run(m, func() { k, defaultVersion, versions = suite.K, suite.DefaultVersion, suite.Versions })
	for _, do := range atEnd {
		if err := do(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// space is a test's own namespace with the steps of this package.
type space struct{ *suite.Space }

func newSpace(t *testing.T) *space {
	t.Helper()
	return &space{suite.New(t)}
}

// in returns the same space for a part of the test.
func (s *space) in(t *testing.T) *space { return &space{s.In(t)} }

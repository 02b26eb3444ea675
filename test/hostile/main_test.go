package hostile

import (
	"flag"
	"os"
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

var (
	k              *cluster.Cluster
	newest, former string // versions of memcached

	walks = flag.Int("walks", 2, "how many walks get conditions that are drawn at random")
	given = flag.String("conditions", "", "the conditions of walks instead, such as quota+labels,sidecar-first for two walks; each is a walk with each condition alone")
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func() {
		k = suite.K
		former, newest = suite.Versions[len(suite.Versions)-2], suite.Versions[len(suite.Versions)-1]
	}))
}

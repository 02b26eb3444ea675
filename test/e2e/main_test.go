package e2e

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// beside is how many tests run beside each other. They mostly wait, so it does
// not depend on the number of cores.
const beside = "5"

var (
	k *cluster.Cluster
	// defaultVersion of memcached, which the operator runs when none is named.
	defaultVersion string
	// versions of memcached whose images the cluster has, oldest first.
	versions []string
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !isGiven("test.parallel") {
		if err := flag.Set("test.parallel", beside); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			os.Exit(1)
		}
	}
	if err := setUp(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	for _, namespace := range shared {
		if err := deleteSpace(context.Background(), namespace); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
		}
	}
	os.Exit(code)
}

// shared are namespaces that several tests use.
var shared []string

// setUp connects to the cluster and installs the operator unless it is there.
func setUp(ctx context.Context) error {
	var err error
	if versions, err = memcachedVersions(); err != nil {
		return err
	}
	if k, err = cluster.Connect(); err != nil {
		return err
	}
	image, err := k.OperatorImage(ctx)
	if err != nil {
		return err
	}
	if image == "" {
		err = k.Install(ctx, os.Getenv("IMG"))
	} else {
		err = k.OperatorReady(ctx)
	}
	if err != nil {
		return err
	}
	if err := k.UseNewest(ctx); err != nil {
		return err
	}
	defaultVersion, err = k.DefaultVersion(ctx)
	return err
}

// memcachedVersions returns the versions that are tested, oldest first.
func memcachedVersions() ([]string, error) {
	dir := os.Getenv("MEMCACHED_DIR")
	if dir == "" {
		return nil, fmt.Errorf(`MEMCACHED_DIR is not set: run this through make (make test, make test-e2e), or first eval "$(make -s env)"`)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading MEMCACHED_DIR: %w", err)
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() && strings.Count(e.Name(), ".") == 2 {
			found = append(found, e.Name())
		}
	}
	if len(found) < 3 {
		return nil, fmt.Errorf("MEMCACHED_DIR %s holds memcached %v, three versions are needed", dir, found)
	}
	slices.SortFunc(found, func(a, b string) int {
		return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(a, b string) int {
			m, _ := strconv.Atoi(a) // what is no number comes first
			n, _ := strconv.Atoi(b)
			return cmp.Compare(m, n)
		})
	})
	return found, nil
}

func isGiven(name string) bool {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// key names an object in a test's namespace.
func (s *space) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: name}
}

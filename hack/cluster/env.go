package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
)

// variables are what tests need, in sets, and what builds it. The cluster comes first, since it contains the API server.
var variables = []struct {
	set, name string
	build     func(cache.Dirs) (string, error)
}{
	{"cluster", "KUBEBUILDER_ASSETS", func(d cache.Dirs) (string, error) { b, err := builds.All(d); return b.Kubernetes, err }},
	{"cluster", "KUBECONFIG", func(d cache.Dirs) (string, error) { return cmp.Or(os.Getenv("KUBECONFIG"), d.Kubeconfig()), nil }},
	{"cluster", "MEMCACHED_DIR", builds.Memcached},
	{"cluster", "MEMCACHED_NEWEST", builds.NewestMemcached},
	{"process", "MEMCACHED_DIR", builds.Memcached},
	{"process", "MEMCACHED_NEWEST", builds.NewestMemcached},
	{"api", "KUBEBUILDER_ASSETS", builds.APIServer},
	{"api", "PROMETHEUS_CRDS", builds.PrometheusCRDs},
	{"peers", "MEMCACHED_CLIENTS", builds.Clients},
	{"peers", "S3_SERVER", in(builds.S3, "s3")},
	{"peers", "PROMETHEUS", in(builds.Prometheus, "prometheus")},
	{"peers", "PROMTOOL", in(builds.Prometheus, "promtool")},
	{"peers", "MEMCACHED_EXPORTER", in(builds.Exporter, "bin/memcached_exporter")},
}

// in returns the path of a file in the folder of a build.
func in(build func(cache.Dirs) (string, error), file string) func(cache.Dirs) (string, error) {
	return func(d cache.Dirs) (string, error) {
		dir, err := build(d)
		return filepath.Join(dir, file), err
	}
}

// env prints the environment of the named sets, by default all, as lines for a shell. It builds what they name first, and
// nothing else.
func env() *cobra.Command {
	return &cobra.Command{Use: "env [api] [process] [peers] [cluster]", Args: cobra.OnlyValidArgs, ValidArgs: []string{"api", "process", "peers", "cluster"},
		Short: "build what tests need of an API server, of memcached, of other programs that use it, or of the cluster (default all), and print export lines for a shell",
		RunE: inDirs(func(d cache.Dirs, sets []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			values := map[string]string{"MEMCACHED_OPERATOR_CLUSTER": program}
			for _, v := range variables {
				if len(sets) > 0 && !slices.Contains(sets, v.set) {
					continue
				}
				if values[v.name], err = v.build(d); err != nil {
					return err
				}
			}
			for _, name := range slices.Sorted(maps.Keys(values)) {
				fmt.Printf("export %s='%s'\n", name, strings.ReplaceAll(values[name], "'", `'\''`))
			}
			return nil
		})}
}

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

// variables are an environment.
type variables map[string]string

// sets are what tests need. Each builds it and adds it to an environment. The cluster comes first, since it contains the API
// server.
var sets = []struct {
	name string
	add  func(v variables, d cache.Dirs, source string) error
}{
	{"cluster", variables.addCluster},
	{"process", variables.addProcess},
	{"api", variables.addAPI},
	{"peers", variables.addPeers},
}

// env prints the environment of the named sets, by default all, as lines for a shell. It builds what they name first, and
// nothing else.
func env() *cobra.Command {
	return &cobra.Command{Use: "env [api] [process] [peers] [cluster]", Args: cobra.OnlyValidArgs, ValidArgs: []string{"api", "process", "peers", "cluster"},
		Short: "build what tests need of an API server, of memcached, of other programs that use it, or of the cluster (default all), and print export lines for a shell",
		RunE: inDirs(func(d cache.Dirs, names []string) error {
			source, err := builds.Source()
			if err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			v := variables{"MEMCACHED_OPERATOR_CLUSTER": program}
			for _, set := range sets {
				if len(names) > 0 && !slices.Contains(names, set.name) {
					continue
				}
				if err := set.add(v, d, source); err != nil {
					return err
				}
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				fmt.Printf("export %s='%s'\n", name, strings.ReplaceAll(v[name], "'", `'\''`))
			}
			return nil
		})}
}

func (v variables) addCluster(d cache.Dirs, _ string) error {
	b, err := builds.All(d)
	if err != nil {
		return err
	}
	v["KUBEBUILDER_ASSETS"], v["KUBECONFIG"] = b.Kubernetes, cmp.Or(os.Getenv("KUBECONFIG"), d.Kubeconfig())
	return v.addProcess(d, "")
}

func (v variables) addProcess(d cache.Dirs, _ string) (err error) {
	if v["MEMCACHED_DIR"], err = builds.Memcached(d); err != nil {
		return err
	}
	versions, err := builds.MemcachedVersions(v["MEMCACHED_DIR"])
	if err != nil {
		return err
	}
	v["MEMCACHED_NEWEST"] = versions[len(versions)-1]
	return nil
}

// addAPI adds an API server, etcd and the CRDs of prometheus-operator.
func (v variables) addAPI(d cache.Dirs, source string) (err error) {
	if v["KUBEBUILDER_ASSETS"], err = builds.APIServer(d, source); err != nil {
		return err
	}
	v["PROMETHEUS_CRDS"], err = builds.PrometheusCRDs(source)
	return err
}

// addPeers adds clients of memcached, an S3 server, Prometheus and memcached_exporter.
func (v variables) addPeers(d cache.Dirs, source string) (err error) {
	if v["MEMCACHED_CLIENTS"], err = builds.Clients(d, source); err != nil {
		return err
	}
	s3, err := builds.S3(d, source)
	if err != nil {
		return err
	}
	prometheus, err := builds.Prometheus(d)
	if err != nil {
		return err
	}
	exporter, err := builds.Exporter(d, source)
	if err != nil {
		return err
	}
	v["S3_SERVER"], v["MEMCACHED_EXPORTER"] = filepath.Join(s3, "s3"), filepath.Join(exporter, "bin", "memcached_exporter")
	v["PROMETHEUS"], v["PROMTOOL"] = filepath.Join(prometheus, "prometheus"), filepath.Join(prometheus, "promtool")
	return nil
}

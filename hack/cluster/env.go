package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
)

// Sets of what tests need.
const (
	forAPI     = "api"     // an API server, etcd and the CRDs of prometheus-operator
	forProcess = "process" // memcached
	forPeers   = "peers"   // clients of memcached, an S3 server, Prometheus and memcached_exporter
	forCluster = "cluster" // the cluster
)

// printEnv prints the environment of the named sets, by default all, as lines for a shell. It builds what they name
// first, and nothing else.
func printEnv(d cache.Dirs, sets []string) error {
	if len(sets) == 0 {
		sets = []string{forAPI, forProcess, forPeers, forCluster}
	}
	source, err := builds.Source()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	variables := map[string]string{"MEMCACHED_OPERATOR_CLUSTER": program}
	var kubernetes, memcached, clients, s3, prometheus, exporter string
	// The cluster first, since it contains the API server.
	if i := slices.Index(sets, forCluster); i > 0 {
		sets[0], sets[i] = sets[i], sets[0]
	}
	for _, set := range sets {
		switch set {
		case forAPI:
			if kubernetes == "" {
				kubernetes, err = builds.APIServer(d, source)
			}
			if err == nil {
				variables["PROMETHEUS_CRDS"], err = builds.PrometheusCRDs(source)
			}
		case forProcess:
			memcached, err = builds.Memcached(d)
		case forPeers:
			if clients, err = builds.Clients(d, source); err == nil {
				s3, err = builds.S3(d, source)
				variables["MEMCACHED_CLIENTS"], variables["S3_SERVER"] = clients, filepath.Join(s3, "s3")
			}
			if err == nil {
				prometheus, err = builds.Prometheus(d)
				variables["PROMETHEUS"], variables["PROMTOOL"] = filepath.Join(prometheus, "prometheus"), filepath.Join(prometheus, "promtool")
			}
			if err == nil {
				exporter, err = builds.Exporter(d, source)
				variables["MEMCACHED_EXPORTER"] = filepath.Join(exporter, "bin", "memcached_exporter")
			}
		case forCluster:
			var b builds.Programs
			b, err = builds.All(d)
			kubernetes, memcached = b.Kubernetes, b.Memcached
			variables["KUBECONFIG"] = cmp.Or(os.Getenv("KUBECONFIG"), d.Kubeconfig())
		default:
			err = fmt.Errorf("unexpected argument %q: %w", set, errUsage)
		}
		if err != nil {
			return err
		}
	}
	if kubernetes != "" {
		variables["KUBEBUILDER_ASSETS"] = kubernetes
	}
	if memcached != "" {
		versions, err := builds.MemcachedVersions(memcached)
		if err != nil {
			return err
		}
		variables["MEMCACHED_DIR"], variables["MEMCACHED_NEWEST"] = memcached, versions[len(versions)-1]
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		quoted := "'" + strings.ReplaceAll(variables[name], "'", `'\''`) + "'"
		if _, err := fmt.Printf("export %s=%s\n", name, quoted); err != nil {
			return err
		}
	}
	return nil
}

func printKubeconfig(d cache.Dirs) error {
	_, err := fmt.Println(d.Kubeconfig())
	return err
}

package cluster

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

// Status prints which processes run. kubectl shows the rest.
func Status(d cache.Dirs) error {
	if _, ok := process.Alive(d, network.First.Name); !ok {
		fmt.Println("the cluster does not run")
		return nil
	}
	for _, n := range network.All() {
		if p, ok := process.Alive(d, n.Name); ok {
			fmt.Printf("%s runs, process %d, pods in %s\n", n.Name, p.PID, n.Pods)
		}
	}
	if p, ok := process.Alive(d, process.OLMv1); ok {
		fmt.Printf("OLM v1 runs, process %d\n", p.PID)
	}
	fmt.Printf("logs are in %s\nKUBECONFIG=%s\n", d.Logs, d.Kubeconfig())
	return nil
}

// Logs prints the log of a component of node1.
func Logs(d cache.Dirs, component string) error {
	f, err := os.Open(filepath.Join(d.Logs, network.First.Name, component+".log"))
	if err != nil {
		return fmt.Errorf("reading the log of %s: %w", component, err)
	}
	defer f.Close()
	_, err = io.Copy(os.Stdout, f)
	return err
}

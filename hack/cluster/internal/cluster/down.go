package cluster

import (
	"fmt"
	"os"
	"slices"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/node"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

// Down stops all nodes and reverts their changes of this machine. With wipe, it deletes the data of the cluster.
func Down(d cache.Dirs, wipe bool) error {
	if err := process.Stop(d, process.OLMv1); err != nil {
		return err
	}
	for _, n := range slices.Backward(network.All()) { // workers before the control plane
		if err := node.Kill(d, n); err != nil {
			return err
		}
	}
	if err := node.RemoveHostDirs(d); err != nil {
		return err
	}
	if wipe {
		if err := os.RemoveAll(d.Cluster); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(os.Stderr, "the cluster is stopped")
	return err
}

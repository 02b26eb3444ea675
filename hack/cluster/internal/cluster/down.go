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
	ran := slices.ContainsFunc(network.All(), func(n network.Node) bool { _, ok := process.Running(d, n); return ok })
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
	said := map[bool]string{true: "the cluster is stopped", false: "no cluster ran"}[ran]
	fmt.Fprintln(os.Stderr, said)
	return nil
}

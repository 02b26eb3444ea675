package node

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

// InitCommand starts a node's process 1. It is internal.
const InitCommand = "node-init"

// Start starts a node's process 1, which then waits for its link.
func Start(d cache.Dirs, n network.Node, b builds.Programs) (int, error) {
	// A node that exited leaves them.
	if err := removeCgroups(n); err != nil {
		return 0, err
	}
	spec, err := newSpec(d, n, b).write()
	if err != nil {
		return 0, err
	}
	logs := filepath.Join(d.Logs, n.Name)
	if err := errors.Join(os.MkdirAll(d.State, 0o755), os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return 0, err
	}
	if err := makeHostDirs(d); err != nil {
		return 0, err
	}
	if err := makeCgroups(n); err != nil {
		return 0, err
	}
	loadModules()
	pid, err := process.Spawn(filepath.Join(logs, "node.log"), InitCommand, spec)
	if err != nil {
		return 0, err
	}
	return pid, process.Remember(d, n.Name, pid)
}

// loadModules loads the kernel modules that nodes need and can't load. They may be built in.
func loadModules() {
	for _, m := range []string{"overlay", "br_netfilter", "nf_tables"} {
		_ = exec.Command("modprobe", "-q", m).Run()
	}
}

// Kill stops a node at once: all its processes, mounts and interfaces end with its process 1. It keeps the nodes of
// another cache folder.
func Kill(d cache.Dirs, n network.Node) error {
	if !host.Exists(process.File(d, n.Name)) {
		return nil
	}
	if err := process.End(d, n.Name); err != nil {
		return err
	}
	if n.Number == network.First.Number {
		network.UnlinkFirst(n)
	}
	if err := removeCgroups(n); err != nil {
		return err
	}
	return os.Remove(process.File(d, n.Name)) // last, so that a run that was cut short is made up for
}

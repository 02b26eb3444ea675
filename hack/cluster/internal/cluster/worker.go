package cluster

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/node"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

// ErrNotRunning is returned for what needs a cluster that runs.
var ErrNotRunning = errors.New("the cluster does not run: start it with up")

// AddNode starts a node. A node that was killed returns with its data.
func AddNode(d cache.Dirs, n network.Node) error {
	first, ok := process.Alive(d, network.First.Name)
	if !ok {
		return ErrNotRunning
	}
	// The programs of the running cluster may be older than the checkout.
	s, err := node.ReadSpec(filepath.Join(d.Etc, network.First.Name, "node.json"))
	if err != nil {
		return err
	}
	return host.Step("starting "+n.Name, func() error {
		var since time.Time
		if _, ok := process.Alive(d, n.Name); !ok {
			since = time.Now()
			pid, err := node.Start(d, n, builds.Programs{Kubernetes: s.Kubernetes, CoreDNS: s.CoreDNS})
			if err != nil {
				return err
			}
			if err := network.LinkWorker(n, pid, first.PID); err != nil {
				return err
			}
		}
		return waitNode(d, n.Name, since)
	})
}

// RemoveNode stops a node and deletes its Node object.
func RemoveNode(d cache.Dirs, n network.Node) error {
	if err := node.Kill(d, n); err != nil {
		return err
	}
	return deleteNodes(d, n)
}

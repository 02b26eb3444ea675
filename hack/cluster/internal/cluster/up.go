// Package cluster starts and stops the cluster and its nodes.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/node"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/pki"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/registry"
)

// Up starts the cluster. It can be repeated, also after an interruption.
func Up(d cache.Dirs) error {
	if err := process.CanRun(); err != nil {
		return err
	}
	if err := node.InstallPackages(); err != nil {
		return err
	}
	b, err := builds.All(d)
	if err != nil {
		return err
	}
	var since time.Time
	_, found := process.Alive(d, network.First.Name)
	if !found {
		since = time.Now()
		if err := startFirst(d, b); err != nil {
			return err
		}
	}
	if err := waitForCluster(d, b, since); err != nil {
		return fmt.Errorf("%w\nlogs are in %s", err, d.Logs)
	}
	state := "runs"
	if found {
		state = "runs already"
	}
	fmt.Fprintf(os.Stderr, "the cluster %s: export KUBECONFIG=%s\n", state, d.Kubeconfig())
	return nil
}

func startFirst(d cache.Dirs, b builds.Programs) error {
	if err := network.Check(); err != nil {
		return err
	}
	if err := pki.Create(d.PKI()); err != nil {
		return err
	}
	// Its network was deleted with the earlier node.
	if err := process.Stop(d, process.OLMv1); err != nil {
		return err
	}
	return host.Step("starting "+network.First.Name, func() error {
		pid, err := node.Start(d, network.First, b)
		if err != nil {
			return err
		}
		return network.LinkFirst(network.First, pid)
	})
}

// waitForCluster waits until pods can run, and loads the images. since is the start of node1, zero if it ran before.
func waitForCluster(d cache.Dirs, b builds.Programs, since time.Time) error {
	do := host.Step
	if since.IsZero() {
		do = host.Quietly
	}
	alive := func() error {
		if _, ok := process.Alive(d, network.First.Name); ok {
			return nil
		}
		why, _ := os.ReadFile(filepath.Join(d.Logs, network.First.Name, "node.log"))
		return host.Permanent{Err: errors.New("its process 1 exited: " + host.LastLines(strings.TrimSpace(string(why)), 3))}
	}
	if err := do("waiting for the API server", func() error { return waitReady(d, alive) }); err != nil {
		return err
	}
	if err := Apply(d, "-", storageClass); err != nil {
		return err
	}
	if err := do("loading images", func() error { return registry.PushLayout(b.Images) }); err != nil {
		return err
	}
	return do("waiting for "+network.First.Name+" to be ready", func() error {
		if err := waitNode(d, network.First.Name, since); err != nil {
			return err
		}
		if err := waitAdmission(d); err != nil {
			return err
		}
		if since.IsZero() {
			return nil
		}
		return deleteNodes(d, network.All()[1:]...) // workers of an earlier run stopped with it
	})
}

// Package cluster starts and stops the cluster and its nodes.
package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/node"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/pki"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
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
	if _, found := process.Alive(d, network.First.Name); !found {
		since = time.Now()
		if err := startFirst(d, b); err != nil {
			return err
		}
	}
	if err := waitForCluster(d, b, since); err != nil {
		return fmt.Errorf("%w\nlogs are in %s", err, d.Logs)
	}
	fmt.Fprintf(os.Stderr, "the cluster runs: export KUBECONFIG=%s\n", d.Kubeconfig())
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
	if err := errors.Join(os.RemoveAll(d.Programs()), os.Mkdir(d.Programs(), 0o755)); err != nil {
		return err
	}
	for name, dir := range map[string]string{"kubernetes": b.Kubernetes, "coredns": b.CoreDNS, "registry": b.Registry} {
		if err := os.Symlink(dir, filepath.Join(d.Programs(), name)); err != nil {
			return err
		}
	}
	return host.Step("starting "+network.First.Name, func() error { return node.Start(d, network.First, 0) })
}

// waitForCluster waits until pods can run, and loads the images. since is the start of node1, zero if it ran before.
func waitForCluster(d cache.Dirs, b builds.Programs, since time.Time) error {
	if err := host.Step("waiting for the API server", func() error { return waitReady(d) }); err != nil {
		return err
	}
	if err := Apply(d, "-", storageClass); err != nil {
		return err
	}
	if err := host.Step("loading images", func() error { return PushLayout(b.Images) }); err != nil {
		return err
	}
	return host.Step("waiting for "+network.First.Name+" to be ready", func() error {
		if err := waitNode(d, network.First.Name, since); err != nil {
			return err
		}
		if err := waitAdmission(d); err != nil {
			return err
		}
		if since.IsZero() {
			return nil
		}
		// Workers of an earlier run stopped with it.
		_, err := Kubectl(d, "", "delete", "nodes", "--field-selector=metadata.name!="+network.First.Name)
		return err
	})
}

// Down stops all nodes and reverts their changes of this machine. With wipe, it deletes the data of the cluster.
func Down(d cache.Dirs, wipe bool) error {
	if err := process.Stop(d, process.OLMv1); err != nil {
		return err
	}
	for _, n := range slices.Backward(network.Nodes) { // workers before the control plane
		if err := node.Kill(d, n); err != nil {
			return err
		}
	}
	if wipe {
		if err := os.RemoveAll(d.Cluster); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "the cluster is stopped")
	return nil
}

// Running returns process 1 of node1, or an error for what needs a cluster that runs.
func Running(d cache.Dirs) (pid int, err error) {
	pid, ok := process.Alive(d, network.First.Name)
	if !ok {
		err = errors.New("the cluster does not run: start it with up")
	}
	return pid, err
}

// AddNode starts a node. A node that was killed returns with its data.
func AddNode(d cache.Dirs, n network.Node) error {
	first, err := Running(d)
	if err != nil {
		return err
	}
	return host.Step("starting "+n.Name, func() error {
		var since time.Time
		if _, ok := process.Alive(d, n.Name); !ok {
			since = time.Now()
			if err := node.Start(d, n, first); err != nil {
				return err
			}
		}
		return waitNode(d, n.Name, since)
	})
}

// RemoveNode stops a node and deletes its Node object, and its pods, which Kubernetes deletes after a minute or two.
func RemoveNode(d cache.Dirs, n network.Node) error {
	if err := node.Kill(d, n); err != nil {
		return err
	}
	if _, err := Kubectl(d, "", "delete", "node", "--ignore-not-found", n.Name); err != nil {
		return err
	}
	_, err := Kubectl(d, "", "delete", "pods", "-A", "--field-selector=spec.nodeName="+n.Name, "--force")
	return err
}

// Status prints which processes run. kubectl shows the rest.
func Status(d cache.Dirs) error {
	if _, ok := process.Alive(d, network.First.Name); !ok {
		fmt.Println("the cluster does not run")
		return nil
	}
	for _, n := range network.Nodes {
		if pid, ok := process.Alive(d, n.Name); ok {
			fmt.Printf("%s runs, process %d, pods in %s\n", n.Name, pid, n.Pods)
		}
	}
	if pid, ok := process.Alive(d, process.OLMv1); ok {
		fmt.Printf("OLM v1 runs, process %d\n", pid)
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

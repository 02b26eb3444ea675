package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func cannotRun(why string) error {
	return errors.New("no local cluster can run here, " + why + ": set KUBECONFIG to a cluster of yours instead")
}

// up starts the cluster. It can be repeated, also after an interruption.
func (d dirs) up() error {
	if err := canRun(); err != nil {
		return err
	}
	if err := installPackages(); err != nil {
		return err
	}
	b, err := d.prepare()
	if err != nil {
		return err
	}
	var since time.Time
	_, found := d.running(firstNode)
	if !found {
		since = time.Now()
		if err := d.startFirst(b); err != nil {
			return err
		}
	}
	if err := d.waitForCluster(b, since); err != nil {
		return fmt.Errorf("%w\nlogs are in %s", err, d.logs)
	}
	state := "runs"
	if found {
		state = "runs already"
	}
	fmt.Fprintf(os.Stderr, "the cluster %s: export KUBECONFIG=%s\n", state, d.kubeconfig())
	return nil
}

func (d dirs) startFirst(b builds) error {
	if err := checkNetworks(); err != nil {
		return err
	}
	if err := makeCertificates(d.pki()); err != nil {
		return err
	}
	// Its network was deleted with the earlier node.
	if err := d.olmv1Down(); err != nil {
		return err
	}
	return step("starting "+firstNode.Name, func() error {
		pid, err := d.start(firstNode, b)
		if err != nil {
			return err
		}
		return linkFirst(firstNode, pid)
	})
}

// start starts a node's process 1, which then waits for its link.
func (d dirs) start(n node, b builds) (int, error) {
	// A node that exited leaves them.
	if err := removeCgroups(n); err != nil {
		return 0, err
	}
	spec, err := d.spec(n, b).write()
	if err != nil {
		return 0, err
	}
	logs := filepath.Join(d.logs, n.Name)
	if err := errors.Join(os.MkdirAll(d.state, 0o755), os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return 0, err
	}
	if err := d.makeHostDirs(); err != nil {
		return 0, err
	}
	if err := makeCgroups(n); err != nil {
		return 0, err
	}
	loadModules()
	pid, err := spawn(spec, filepath.Join(logs, "node.log"))
	if err != nil {
		return 0, err
	}
	return pid, d.remember(n.Name, pid)
}

// loadModules loads the kernel modules that nodes need and can't load. They may be built in.
func loadModules() {
	for _, m := range []string{"overlay", "br_netfilter", "nf_tables"} {
		_ = exec.Command("modprobe", "-q", m).Run()
	}
}

// waitForCluster waits until pods can run, and loads the images. since is the start of node1, zero if it ran before.
func (d dirs) waitForCluster(b builds, since time.Time) error {
	do := step
	if since.IsZero() {
		do = quietly
	}
	alive := func() error {
		if _, ok := d.running(firstNode); ok {
			return nil
		}
		why, _ := os.ReadFile(filepath.Join(d.logs, firstNode.Name, "node.log"))
		return permanent{errors.New("its process 1 exited: " + lastLines(strings.TrimSpace(string(why)), 3))}
	}
	if err := do("waiting for the API server", func() error { return d.waitReady(alive) }); err != nil {
		return err
	}
	if err := d.apply("-", storageClass); err != nil {
		return err
	}
	if err := do("loading images", func() error { return pushLayout(b.images) }); err != nil {
		return err
	}
	return do("waiting for "+firstNode.Name+" to be ready", func() error {
		if err := d.waitNode(firstNode.Name, since); err != nil {
			return err
		}
		if err := d.waitAdmission(); err != nil {
			return err
		}
		if since.IsZero() {
			return nil
		}
		return d.deleteNodes(allNodes()[1:]...) // workers of an earlier run stopped with it
	})
}

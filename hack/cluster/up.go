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

// cannotRun is the error of a machine that cannot run a cluster.
func cannotRun(why string) error {
	return errors.New("no local cluster can run here, " + why + ": set KUBECONFIG to a cluster of yours instead")
}

// lockCluster keeps runs that start or end nodes apart.
func (d dirs) lockCluster() (unlock func(), err error) {
	return lock(filepath.Join(d.cache, "cluster.lock"))
}

// upCommand brings the cluster up. Each step does nothing when it is done
// already, so that a second run, or one after an interruption, ends the same.
func upCommand(d dirs, args []string) error {
	if err := noArguments("up", args); err != nil {
		return err
	}
	if err := canRun(); err != nil {
		return err
	}
	unlock, err := d.lockCluster()
	if err != nil {
		return err
	}
	defer unlock()
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
	// its network ended with a node that ended by itself
	if err := d.endOLMv1(); err != nil {
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
	// of a node that ended by itself
	if err := removeCgroups(n); err != nil {
		return 0, err
	}
	spec, err := d.spec(n, b).write()
	if err != nil {
		return 0, err
	}
	for _, dir := range []string{d.state, filepath.Join(d.logs, n.Name)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return 0, err
		}
	}
	if err := d.makeHostDirs(); err != nil {
		return 0, err
	}
	if err := makeCgroups(n); err != nil {
		return 0, err
	}
	loadModules()
	if err := removeFiles(filepath.Join(d.logs, n.Name, "*.log")); err != nil {
		return 0, err
	}
	pid, err := spawn(spec, filepath.Join(d.logs, n.Name, "node.log"))
	if err != nil {
		return 0, err
	}
	return pid, d.remember(n.Name, pid)
}

// loadModules loads what nodes use of the kernel and cannot load from inside.
// Where there are no modules it is built in, or its absence shows later.
func loadModules() {
	for _, m := range []string{"overlay", "br_netfilter", "nf_tables"} {
		_ = exec.Command("modprobe", "-q", m).Run()
	}
}

func removeFiles(pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return nil
}

// waitForCluster waits until pods can be made, and loads the images meanwhile.
// since is when node1 was started, zero when it ran before: then there is
// nothing to tell.
func (d dirs) waitForCluster(b builds, since time.Time) error {
	a, err := d.api()
	if err != nil {
		return err
	}
	do := step
	if since.IsZero() {
		do = quietly
	}
	alive := func() error {
		if _, ok := d.running(firstNode); ok {
			return nil
		}
		why, _ := os.ReadFile(filepath.Join(d.logs, firstNode.Name, "node.log"))
		return permanent{errors.New("its process 1 ended: " + lastLines(strings.TrimSpace(string(why)), 3))}
	}
	if err := do("waiting for the API server", func() error { return a.waitReady(alive) }); err != nil {
		return err
	}
	if err := a.applyStorageClass(); err != nil {
		return err
	}
	if err := do("loading images", func() error { return pushLayout(b.images) }); err != nil {
		return err
	}
	return do("waiting for "+firstNode.Name+" to be ready", func() error {
		if err := a.waitNode(firstNode.Name, since); err != nil {
			return err
		}
		if err := a.waitAdmission(); err != nil {
			return err
		}
		if since.IsZero() {
			return nil
		}
		return a.forgetWorkers()
	})
}

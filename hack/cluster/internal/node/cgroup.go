package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
)

const cgroupRoot = "/sys/fs/cgroup"

// cgroupName returns the control group of all pods of a node.
func cgroupName(n network.Node) string { return "memcached-operator-" + n.Name }

// makeCgroups creates a node's control group, which kubelet expects. In version 1 there is one for each controller.
func makeCgroups(n network.Node) error {
	if host.Exists(filepath.Join(cgroupRoot, "cgroup.controllers")) {
		return makeCgroupV2(filepath.Join(cgroupRoot, cgroupName(n)))
	}
	controllers, err := filepath.Glob(filepath.Join(cgroupRoot, "*", "tasks"))
	if err != nil {
		return err
	}
	if len(controllers) == 0 {
		return fmt.Errorf("%s holds no control groups", cgroupRoot)
	}
	for _, c := range controllers {
		dir := filepath.Join(filepath.Dir(c), cgroupName(n))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := writeIfExists(filepath.Join(dir, "cpu.shares"), 1024*podsWeight); err != nil {
			return err
		}
		// A new cpuset group is empty, and nothing can run in it.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			all, err := os.ReadFile(filepath.Join(filepath.Dir(c), file))
			if os.IsNotExist(err) {
				continue
			}
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, file), all, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// podsWeight is the weight of all pods of a node, in processes: while something compiles or computes on this machine, they
// would otherwise have as much of the processor as one session of it, and what they are to do in time would wait.
const podsWeight = 8

// writeIfExists writes a number to a file of a control group, which other controllers don't have.
func writeIfExists(path string, value int) error {
	if !host.Exists(path) {
		return nil
	}
	return os.WriteFile(path, []byte(strconv.Itoa(value)), 0)
}

var kubeletControllers = []string{"cpu", "cpuset", "hugetlb", "io", "memory", "pids"}

// makeCgroupV2 creates a group whose children have kubelet's controllers, which each group along the path must
// enable.
func makeCgroupV2(dir string) error {
	parent := filepath.Dir(dir)
	controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	var enable []string
	for c := range strings.FieldsSeq(string(controllers)) {
		if slices.Contains(kubeletControllers, c) {
			enable = append(enable, "+"+c)
		}
	}
	line := []byte(strings.Join(enable, " "))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range []string{parent, dir} {
		if err := os.WriteFile(filepath.Join(d, "cgroup.subtree_control"), line, 0); err != nil {
			return fmt.Errorf("switching on control group controllers (in a container this works only with the machine's own control groups, docker run --cgroupns=host): %w", err)
		}
	}
	return writeIfExists(filepath.Join(dir, "cpu.weight"), 100*podsWeight)
}

// removeCgroups removes control groups, which outlive their processes.
func removeCgroups(n network.Node) error {
	var groups []string
	for _, pattern := range []string{cgroupName(n), filepath.Join("*", cgroupName(n))} {
		found, err := filepath.Glob(filepath.Join(cgroupRoot, pattern))
		if err != nil {
			return err
		}
		groups = append(groups, found...)
	}
	for _, g := range groups {
		// The kernel empties a group a moment after its last process exits. Its files can't be removed, and its folders can, the
		// innermost first.
		if err := host.WaitFor(func() error { return host.Run("find", g, "-depth", "-type", "d", "-delete") }); err != nil {
			return err
		}
	}
	return nil
}

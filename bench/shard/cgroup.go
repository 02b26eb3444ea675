package shard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// group is a control group that counts the memory of a container.
type group struct {
	dir string
	v2  bool
}

// groupsV2 reports whether the machine has version 2 of control groups.
func groupsV2() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

func newGroup(name string) (group, error) {
	name = fmt.Sprintf("bench-%d-%s", os.Getpid(), name)
	if groupsV2() {
		g := group{filepath.Join(cgroupRoot, name), true}
		if err := os.WriteFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"), []byte("+memory"), 0); err != nil {
			return g, fmt.Errorf("enabling the memory controller: %w", err)
		}
		return g, os.Mkdir(g.dir, 0o755)
	}
	g := group{filepath.Join(cgroupRoot, "memory", name), false}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return g, fmt.Errorf("creating a control group: %w", err)
	}
	// Version 1 counts the buffers of sockets apart, and only if they have a limit.
	return g, os.WriteFile(filepath.Join(g.dir, "memory.kmem.tcp.limit_in_bytes"), []byte(strconv.Itoa(1<<40)), 0)
}

// command returns a command that runs in the group, without capabilities as in a pod: with them, each pipe that a program
// forwards with has 1 MiB. The caller starts it.
func (g group) command(ctx context.Context, words ...string) *exec.Cmd {
	join := []string{"-c", `echo $$ >"$0" && exec setpriv --bounding-set=-all "$@"`, filepath.Join(g.dir, "cgroup.procs")}
	c := exec.CommandContext(ctx, "sh", append(join, words...)...) //nolint:gosec // programs of this benchmark
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// usage returns the memory in use in bytes, without the buffers of sockets, and those buffers, which are part of what version 2
// counts.
func (g group) usage() (memory, buffers int64, err error) {
	if !g.v2 {
		if memory, err = g.read("memory.usage_in_bytes"); err == nil {
			buffers, err = g.read("memory.kmem.tcp.usage_in_bytes")
		}
		return memory, buffers, err
	}
	if memory, err = g.read("memory.current"); err != nil {
		return 0, 0, err
	}
	stat, err := os.ReadFile(filepath.Join(g.dir, "memory.stat"))
	for line := range strings.Lines(string(stat)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "sock "); ok {
			buffers, err = strconv.ParseInt(value, 10, 64)
		}
	}
	return memory - buffers, buffers, err
}

// peak returns the most memory in bytes that was in use at once.
func (g group) peak() (int64, error) {
	if g.v2 {
		return g.read("memory.peak")
	}
	return g.read("memory.max_usage_in_bytes")
}

func (g group) read(file string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of a control group: %w", err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// remove removes the group as soon as its processes have exited.
func (g group) remove() error {
	var err error
	for range 100 {
		if err = os.Remove(g.dir); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/memcached-operator/memcached-operator/test/benchscale/usage"
)

// describe describes this machine, without anything that identifies its owner.
func describe() (string, error) {
	out, err := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-apiserver"), "--version").Output() //nolint:gosec // one of the test tools
	if err != nil {
		return "", fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", err
	}
	memory, err := usage.Total()
	if err != nil {
		return "", err
	}
	// the suffix names the distributor
	kernel, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	return fmt.Sprintf("%s on a machine of %d cores and %d GiB of memory, Linux %s. Everything runs on that one machine: API server, etcd, controllers, operator and the simulated nodes.",
		strings.TrimSpace(string(out)), runtime.NumCPU(), (memory+1<<29)>>30, kernel), nil
}

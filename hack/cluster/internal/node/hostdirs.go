package node

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// boundDirs are folders of Kubernetes and containerd. Each node mounts its own data there.
var boundDirs = []string{"/var/lib/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers"}

// volumesDir is where kube-controller-manager creates volumes for claims; the path is fixed in Kubernetes. All nodes
// share it, so that a claim is not bound to a node.
const volumesDir = "/tmp/hostpath_pv"

func hostDirsFile(d cache.Dirs) string { return filepath.Join(d.Cluster, "host-folders") }

// makeHostDirs creates boundDirs and volumesDir where this machine lacks them, as empty mount points.
func makeHostDirs(d cache.Dirs) error {
	f, err := os.OpenFile(hostDirsFile(d), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, dir := range append(boundDirs, volumesDir) {
		if host.Exists(dir) {
			continue
		}
		if _, err := f.WriteString(dir + "\n"); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// RemoveHostDirs removes them unless they are in use.
func RemoveHostDirs(d cache.Dirs) error {
	list, err := os.ReadFile(hostDirsFile(d))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for dir := range strings.FieldsSeq(string(list)) {
		_ = os.Remove(dir) // fails when it is not empty
	}
	return os.Remove(hostDirsFile(d))
}

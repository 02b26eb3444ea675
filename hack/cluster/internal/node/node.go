// Package node starts and kills nodes. Its folder conf has the configuration of a node, and the script of its process 1.
package node

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

// dataDirs are folders of Kubernetes and containerd. Each node mounts its own data there.
var dataDirs = []string{"/var/lib/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers"}

// volumesDir is where kube-controller-manager creates volumes for claims; the path is fixed in Kubernetes. All nodes
// share it, so that a claim is not bound to a node.
const volumesDir = "/tmp/hostpath_pv"

//go:embed all:conf
var confFiles embed.FS

// values are the values of the templates in conf.
type values struct {
	cache.Dirs
	network.Node
	Conf, Cgroup, Plugins, Volumes, Pause, Registry, DNS, PodNetwork, ServiceNetwork string
	DataDirs                                                                         []string
}

// Start starts a node and connects it to node1, whose process 1 is first.
func Start(d cache.Dirs, n network.Node, first int) error {
	// A node that exited leaves them.
	if err := removeCgroups(cgroups, n); err != nil {
		return err
	}
	v := values{
		Dirs: d, Node: n, Conf: filepath.Join(d.Etc, n.Name), Cgroup: cgroup(n), Plugins: filepath.Dir(bridge), Volumes: volumesDir, Pause: builds.PauseImage,
		Registry: network.RegistryAddress(), DNS: network.First.Gateway, PodNetwork: network.PodNetwork, ServiceNetwork: network.ServiceNetwork,
		DataDirs: dataDirs,
	}
	err := fs.WalkDir(confFiles, "conf", func(name string, entry fs.DirEntry, err error) error {
		path := filepath.Join(v.Conf, strings.TrimPrefix(name, "conf"))
		if err != nil || entry.IsDir() {
			return errors.Join(err, os.MkdirAll(path, 0o755))
		}
		t, err := template.ParseFS(confFiles, name)
		if err != nil {
			return err
		}
		var content bytes.Buffer
		return errors.Join(t.Execute(&content, v), os.WriteFile(path, content.Bytes(), 0o644))
	})
	if err != nil {
		return err
	}
	pid, err := process.Start(d, n.Name, filepath.Join(v.Conf, "init.sh"))
	if err != nil {
		return err
	}
	if err := network.Link(n, pid, first); err != nil {
		return errors.Join(err, process.CheckAlive(d, n.Name)) // why process 1 exited
	}
	return nil
}

// Kill stops a node at once: all its processes, mounts and interfaces end with its process 1. It keeps the nodes of
// another cache folder, and the folders that they mount their data on.
func Kill(d cache.Dirs, n network.Node) error {
	if !host.Exists(process.File(d, n.Name)) {
		return nil
	}
	if err := process.End(d, n.Name); err != nil {
		return err
	}
	if n == network.First { // the last one
		network.Unlink()
		for _, dir := range append(dataDirs, volumesDir) {
			_ = os.Remove(dir) // fails when it is not empty; it takes what a node mounted on it along
		}
	}
	if err := removeCgroups(cgroups, n); err != nil {
		return err
	}
	return os.Remove(process.File(d, n.Name)) // last, so that a run that was cut short is made up for
}

// cgroup returns the control group of all pods of a node.
func cgroup(n network.Node) string { return "memcached-operator-" + n.Name }

const cgroups = "/sys/fs/cgroup"

// removeCgroups removes control groups below root, which outlive their processes. In version 1 there is one for each controller.
// Deeper groups of the name are those of clusters in containers. The kernel empties a group a moment after its last process exits.
// Its files can't be removed, and its folders can.
func removeCgroups(root string, n network.Node) error {
	return host.WaitFor(func() error {
		return host.Run("find", root, "-depth", "-type", "d", "-regex", root+`/\([^/]*/\)?`+cgroup(n)+`\(/.*\)?`, "-delete")
	})
}

// bridge is one of the CNI plugins.
const bridge = "/usr/lib/cni/bridge"

// hostPrograms are the Debian packages of the programs that a node runs besides those built here.
var hostPrograms = map[string]string{
	bridge:        "containernetworking-plugins",
	"containerd":  "containerd",
	"runc":        "runc",
	"ip":          "iproute2",
	"nft":         "nftables",
	"iptables":    "iptables", // the CNI plugin for host ports, and kubelet
	"socat":       "socat",    // kubectl port-forward
	"nsenter":     "util-linux",
	"mount":       "mount",
	"openssl":     "openssl",
	"inotifywait": "inotify-tools", // the volumes of claims
}

// InstallPackages installs the programs that nodes need and this machine lacks.
func InstallPackages() error {
	var missing []string
	for program, pkg := range hostPrograms {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	packages := strings.Join(missing, " ")
	return host.Step("installing "+packages, func() error {
		return host.Run("sh", "-c", "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "+packages)
	})
}

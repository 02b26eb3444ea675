package node

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// hostPrograms are the Debian packages of the programs that a node runs besides those built here.
var hostPrograms = map[string]string{
	"containerd": "containerd",
	"runc":       "runc",
	"ip":         "iproute2",
	"nft":        "nftables",
	"iptables":   "iptables", // the CNI plugin for host ports, and kubelet
	"socat":      "socat",    // kubectl port-forward
	"nsenter":    "util-linux",
	"mount":      "mount",
	"openssl":    "openssl",
	// for the volumes of claims
	"inotifywait": "inotify-tools",
}

var pluginDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// pluginDir returns the folder with the CNI plugins, "" without one.
func pluginDir() string {
	i := slices.IndexFunc(pluginDirs, func(dir string) bool { return host.Exists(filepath.Join(dir, "bridge")) })
	if i < 0 {
		return ""
	}
	return pluginDirs[i]
}

// InstallPackages installs the programs that nodes need and this machine lacks.
func InstallPackages() error {
	var missing []string
	for program, pkg := range hostPrograms {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	if pluginDir() == "" {
		missing = append(missing, "containernetworking-plugins")
	}
	if len(missing) == 0 {
		return nil
	}
	packages := strings.Join(missing, " ")
	return host.Step("installing "+packages, func() error {
		return host.Run("sh", "-c", "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "+packages)
	})
}

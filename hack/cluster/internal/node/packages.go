package node

import (
	"os/exec"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

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

package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// hostPrograms are the programs that a node runs besides those built here, and their Debian packages.
var hostPrograms = []struct{ program, pkg string }{
	{"containerd", "containerd"},
	{"runc", "runc"},
	{"bridge", "containernetworking-plugins"},
	{"ip", "iproute2"},
	{"nft", "nftables"},
	{"iptables", "iptables"}, // the CNI plugin for host ports, and kubelet
	{"socat", "socat"},       // kubectl port-forward
	{"nsenter", "util-linux"},
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

func missingPackages() (packages, programs []string) {
	for _, p := range hostPrograms {
		if p.program == "bridge" { // a plugin; iproute2 has a program of the same name
			if pluginDir() != "" {
				continue
			}
		} else if _, err := exec.LookPath(p.program); err == nil {
			continue
		}
		packages = append(packages, p.pkg)
		programs = append(programs, p.program)
	}
	return packages, programs
}

// InstallPackages installs the programs that nodes need and this machine lacks.
func InstallPackages() error {
	packages, programs := missingPackages()
	if len(packages) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("this machine has no %s and no apt-get to install it with: install it yourself (%s on Debian)",
			strings.Join(programs, ", "), strings.Join(packages, ", "))
	}
	return host.Step("installing "+strings.Join(packages, " "), func() error {
		if err := aptGet("update", "-q"); err != nil {
			return err
		}
		return aptGet(append([]string{"install", "-qy", "--no-install-recommends"}, packages...)...)
	})
}

func aptGet(args ...string) error {
	cmd := exec.Command("apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	_, err := host.Output(cmd)
	return err
}

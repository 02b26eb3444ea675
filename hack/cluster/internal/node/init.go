package node

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

// Init is process 1 of a node: it sets up the node in its new namespaces and supervises it.
func Init(spec string) error {
	s, err := ReadSpec(spec)
	if err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(s.Node.Name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := s.mounts(); err != nil {
		return err
	}
	// Like podsWeight, for the node's own processes. Not each kernel groups processes by session.
	_ = os.WriteFile("/proc/self/autogroup", []byte("-5"), 0)
	if err := s.joinNetwork(); err != nil {
		return err
	}
	if s.Node.Number == 1 {
		if err := openVolumes(volumesDir); err != nil {
			return fmt.Errorf("watching for new volumes: %w", err)
		}
	}
	process.Supervise(filepath.Join(s.Logs, s.Node.Name), s.components())
	return nil
}

// mounts mounts /proc, /run and the data folders of the node, invisible for the host.
func (s Spec) mounts() error {
	const recursive = syscall.MS_REC
	if err := mount("none", "/", "", syscall.MS_PRIVATE|recursive, ""); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := mount("tmpfs", "/run", "tmpfs", 0, "mode=755,size=1g"); err != nil {
		return err
	}
	if err := os.Mkdir("/run/lock", 0o755); err != nil {
		return err
	}
	for _, dir := range boundDirs {
		if err := bind(filepath.Join(s.State, dir), dir); err != nil {
			return err
		}
	}
	if err := bind(filepath.Join(s.Shared, "volumes"), volumesDir); err != nil {
		return err
	}
	// Pods must see the volumes that kubelet mounts.
	return mount("none", "/", "", syscall.MS_SHARED|recursive, "")
}

func bind(own, place string) error {
	if err := os.MkdirAll(own, 0o755); err != nil {
		return err
	}
	return mount(own, place, "", syscall.MS_BIND, "")
}

func mount(source, target, fstype string, flags uintptr, options string) error {
	if err := syscall.Mount(source, target, fstype, flags, options); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", source, target, err)
	}
	return nil
}

func (s Spec) joinNetwork() error {
	if err := network.WaitForLink(); err != nil {
		return err
	}
	commands := []string{
		"link set lo up",
		"addr add " + s.Node.Addr + "/30 dev eth0",
		"link set eth0 up",
		// Not the bridge of the CNI plugin: DNS and registry listen on it before the first pod.
		"link add cni0 type bridge",
		"addr add " + s.Node.Gateway + "/24 dev cni0",
		"link set cni0 up",
	}
	if s.Node.Number == 1 {
		// Without a default route, packets to ClusterIPs need this one until kube-proxy redirects them.
		commands = append(commands, "route add "+network.ServiceNetwork+" dev cni0")
	} else {
		commands = append(commands, "route add default via "+s.Node.Peer)
	}
	if err := network.IP(commands...); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return err
	}
	// That route makes the kernel send ICMP redirects, and for each one it omits the message that a Service without pods
	// refuses the connection.
	for _, of := range []string{"all", "cni0"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+of+"/send_redirects", []byte("0"), 0); err != nil {
			return err
		}
	}
	// Pods need it to reach a Service whose pod is on the same bridge. The file exists when the kernel has bridge
	// filters.
	const bridgeFilter = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	if err := os.WriteFile(bridgeFilter, []byte("1"), 0); err != nil {
		fmt.Fprintf(os.Stderr, "pods may not reach Services whose pods are on their own node: %v\n", err)
	}
	return nil
}

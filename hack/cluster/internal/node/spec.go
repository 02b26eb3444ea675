// Package node starts and kills nodes, and is process 1 of them.
package node

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

//go:embed all:conf
var confFiles embed.FS

// Spec is the input of process 1 of a node.
type Spec struct {
	Node       network.Node
	Conf       string // its configuration
	PKI        string
	State      string // its data
	Shared     string // data of the control plane
	Logs       string
	Kubernetes string
	CoreDNS    string
	Images     string // the program of the registry
	Plugins    string // CNI plugins

	// the same for every node
	Pause, Registry, DNS, PodNetwork string
	Cgroup                           string
}

func newSpec(d cache.Dirs, n network.Node, b builds.Programs) Spec {
	return Spec{
		Node:       n,
		Conf:       filepath.Join(d.Etc, n.Name),
		PKI:        d.PKI(),
		State:      filepath.Join(d.State, n.Name),
		Shared:     d.State,
		Logs:       d.Logs,
		Kubernetes: b.Kubernetes,
		CoreDNS:    b.CoreDNS,
		Images:     b.Registry,
		Plugins:    pluginDir(),
		Pause:      builds.PauseImage,
		Registry:   network.RegistryAddress(),
		DNS:        network.First.Gateway,
		PodNetwork: network.PodNetwork,
		Cgroup:     cgroupName(n),
	}
}

// write writes the configuration of a node, and returns the file with the input of its process 1.
func (s Spec) write() (string, error) {
	err := fs.WalkDir(confFiles, "conf", func(name string, entry fs.DirEntry, err error) error {
		path := filepath.Join(s.Conf, strings.TrimPrefix(name, "conf"))
		if err != nil || entry.IsDir() {
			return errors.Join(err, os.MkdirAll(path, 0o755))
		}
		t, err := template.ParseFS(confFiles, name)
		if err != nil {
			return err
		}
		var content bytes.Buffer
		return errors.Join(t.Execute(&content, s), os.WriteFile(path, content.Bytes(), 0o644))
	})
	if err != nil {
		return "", err
	}
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.Conf, "node.json")
	return path, os.WriteFile(path, content, 0o644)
}

// ReadSpec reads the input of a node that runs.
func ReadSpec(path string) (Spec, error) {
	var s Spec
	content, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(content, &s)
}

// components lists what runs on a node. Each program retries until those that it needs are available.
func (s Spec) components() []process.Component {
	all := []process.Component{{Name: "containerd", Path: "containerd", Args: []string{"-c", filepath.Join(s.Conf, "containerd.toml")}}}
	if s.Node.Number == 1 {
		all = append(all, s.controlPlane()...)
	}
	kubelet := []string{
		"--config=" + filepath.Join(s.Conf, "kubelet.yaml"), "--kubeconfig=" + s.pki(s.Node.Name+".conf"),
		"--hostname-override=" + s.Node.Name, "--node-ip=" + s.Node.Addr,
	}
	if s.Node.Number > 1 { // a node that comes and goes takes only pods that want it
		kubelet = append(kubelet, "--node-labels="+network.WorkerLabel+"=", "--register-with-taints="+network.WorkerLabel+"=:NoSchedule")
	}
	return append(all,
		s.kubernetes("kubelet", kubelet...),
		s.kubernetes("kube-proxy",
			"--config="+filepath.Join(s.Conf, "kube-proxy.yaml"), "--hostname-override="+s.Node.Name),
	)
}

func (s Spec) controlPlane() []process.Component {
	const (
		etcd     = "http://127.0.0.1:2379"
		etcdPeer = "http://127.0.0.1:2380"
	)
	return []process.Component{
		s.kubernetes("etcd",
			"--name="+s.Node.Name, "--data-dir="+filepath.Join(s.Shared, "etcd"), "--log-level=warn",
			"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
			"--listen-peer-urls="+etcdPeer, "--initial-advertise-peer-urls="+etcdPeer, "--initial-cluster="+s.Node.Name+"="+etcdPeer,
			// A power cut may cost this cluster its data.
			"--unsafe-no-fsync", "--quota-backend-bytes=536870912"),
		s.kubernetes("kube-apiserver",
			"--etcd-servers="+etcd,
			"--advertise-address="+s.Node.Addr, "--bind-address=0.0.0.0", "--secure-port=6443",
			"--tls-cert-file="+s.pki("apiserver.crt"), "--tls-private-key-file="+s.pki("apiserver.key"), "--client-ca-file="+s.pki("ca.crt"),
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file="+s.pki("service-accounts.key"), "--service-account-signing-key-file="+s.pki("service-accounts.key"),
			"--service-cluster-ip-range="+network.ServiceNetwork,
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--kubelet-client-certificate="+s.pki("apiserver-kubelet-client.crt"), "--kubelet-client-key="+s.pki("apiserver-kubelet-client.key"),
			"--kubelet-certificate-authority="+s.pki("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
			// For aggregated API servers: the control plane has no pod and reaches them at their pods.
			"--requestheader-client-ca-file="+s.pki("ca.crt"), "--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file="+s.pki("front-proxy.crt"), "--proxy-client-key-file="+s.pki("front-proxy.key"), "--enable-aggregator-routing=true",
			"--audit-policy-file="+filepath.Join(s.Conf, "audit.yaml"), "--audit-log-path="+filepath.Join(s.Logs, s.Node.Name, "audit.log"),
			"--allow-privileged=true", "--profiling=false"),
		s.kubernetes("kube-controller-manager",
			"--kubeconfig="+s.pki("controller-manager.conf"), "--authentication-kubeconfig="+s.pki("controller-manager.conf"), "--authorization-kubeconfig="+s.pki("controller-manager.conf"),
			"--bind-address=127.0.0.1", "--leader-elect=false", "--use-service-account-credentials=true",
			"--root-ca-file="+s.pki("ca.crt"), "--service-account-private-key-file="+s.pki("service-accounts.key"),
			"--cluster-signing-cert-file="+s.pki("ca.crt"), "--cluster-signing-key-file="+s.pki("ca.key"),
			// Creates volumes for claims: see volumesDir.
			"--enable-hostpath-provisioner=true",
			// Tests wait until the loss of a node is noticed; the default is 50 s.
			"--node-monitor-grace-period=20s",
			// At the start each controller requests a token: with the default of 20 a second that takes 5 s.
			"--kube-api-qps=200", "--kube-api-burst=400",
			"--profiling=false"),
		s.kubernetes("kube-scheduler",
			"--kubeconfig="+s.pki("scheduler.conf"), "--authentication-kubeconfig="+s.pki("scheduler.conf"), "--authorization-kubeconfig="+s.pki("scheduler.conf"),
			"--bind-address=127.0.0.1", "--leader-elect=false", "--profiling=false"),
		{Name: "coredns", Path: filepath.Join(s.CoreDNS, "coredns"), Args: []string{"-conf", filepath.Join(s.Conf, "Corefile")}},
		{Name: "registry", Path: filepath.Join(s.Images, "docker-registry"), Args: []string{"serve", filepath.Join(s.Conf, "registry.yaml")}},
	}
}

func (s Spec) kubernetes(name string, args ...string) process.Component {
	return process.Component{Name: name, Path: filepath.Join(s.Kubernetes, name), Args: args}
}

func (s Spec) pki(file string) string { return filepath.Join(s.PKI, file) }

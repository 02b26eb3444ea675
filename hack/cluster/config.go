package main

import (
	"embed"
	"encoding/json"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed conf
var confFiles embed.FS

var confTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(confFiles, "conf/*"))

// confPlaces are the places of the configuration files in a node's folder.
var confPlaces = map[string]string{
	"containerd.toml": "containerd.toml",
	"hosts.toml":      "certs.d/_default/hosts.toml",
	"pods.conflist":   "cni/10-pods.conflist",
	"kubelet.yaml":    "kubelet.yaml",
	"kube-proxy.yaml": "kube-proxy.yaml",
	"Corefile":        "Corefile",
	"resolv.conf":     "resolv.conf",
	"audit.yaml":      "audit.yaml",
}

// nodeSpec is the input of process 1 of a node.
type nodeSpec struct {
	Node       node
	Conf       string // its configuration
	PKI        string
	State      string // its data
	Shared     string // data of the control plane
	Logs       string
	Kubernetes string
	CoreDNS    string
	Plugins    string // CNI plugins

	// the same for every node
	Pause, Registry, DNS, PodNetwork string
	Cgroup                           string
}

func (d dirs) spec(n node, b builds) nodeSpec {
	return nodeSpec{
		Node:       n,
		Conf:       filepath.Join(d.etc, n.Name),
		PKI:        d.pki(),
		State:      filepath.Join(d.state, n.Name),
		Shared:     d.state,
		Logs:       d.logs,
		Kubernetes: b.kubernetes,
		CoreDNS:    b.coredns,
		Plugins:    pluginDir(),
		Pause:      pauseImage,
		Registry:   registryAddress(),
		DNS:        firstNode.Gateway,
		PodNetwork: podNetwork,
		Cgroup:     cgroupName(n),
	}
}

func (s nodeSpec) write() (string, error) {
	for name, place := range confPlaces {
		path := filepath.Join(s.Conf, place)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		f, err := os.Create(path)
		if err != nil {
			return "", err
		}
		err = confTemplates.ExecuteTemplate(f, name, s)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return "", err
		}
	}
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.Conf, "node.json")
	return path, os.WriteFile(path, content, 0o644)
}

func readSpec(path string) (nodeSpec, error) {
	var s nodeSpec
	content, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(content, &s)
}

func (d dirs) pki() string { return filepath.Join(d.etc, "pki") }

func (d dirs) kubeconfig() string { return filepath.Join(d.pki(), "admin.conf") }

// component is a supervised program.
type component struct {
	Name string
	Path string
	Args []string
	Root string // the folder that is / for it, "" for that of who starts it
}

// components lists what runs on a node. Each program retries until those that it needs are available.
func (s nodeSpec) components() []component {
	all := []component{{Name: "containerd", Path: "containerd", Args: []string{"-c", filepath.Join(s.Conf, "containerd.toml")}}}
	if s.Node.Number == 1 {
		all = append(all, s.controlPlane()...)
	}
	return append(all,
		s.kubernetes("kubelet",
			"--config="+filepath.Join(s.Conf, "kubelet.yaml"), "--kubeconfig="+s.pki(s.Node.Name+".conf"),
			"--hostname-override="+s.Node.Name, "--node-ip="+s.Node.Addr),
		s.kubernetes("kube-proxy",
			"--config="+filepath.Join(s.Conf, "kube-proxy.yaml"), "--hostname-override="+s.Node.Name),
	)
}

func (s nodeSpec) controlPlane() []component {
	const (
		etcd     = "http://127.0.0.1:2379"
		etcdPeer = "http://127.0.0.1:2380"
	)
	return []component{
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
			"--service-cluster-ip-range="+serviceNetwork,
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
	}
}

func (s nodeSpec) kubernetes(name string, args ...string) component {
	return component{Name: name, Path: filepath.Join(s.Kubernetes, name), Args: args}
}

func (s nodeSpec) pki(file string) string { return filepath.Join(s.PKI, file) }

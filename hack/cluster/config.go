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

// confPlaces says where each configuration file goes in a node's folder.
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

// nodeSpec is all that process 1 of a node has to know.
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

// write renders the node's configuration and returns the file for its process 1.
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

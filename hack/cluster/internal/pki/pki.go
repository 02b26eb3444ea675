// Package pki creates certificates and kubeconfigs, with openssl.
package pki

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
)

// Identity is the subject of a certificate. Kubernetes reads user and groups from it.
type Identity struct {
	File       string
	User       string
	Group      string
	Names      string // under which a server is reached, as openssl writes them
	Kubeconfig bool
}

func identities() []Identity {
	first := network.First
	all := []Identity{
		{File: "apiserver", User: "kube-apiserver", Names: "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc," +
			"DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:" + first.Addr + ",IP:" + first.Gateway + ",IP:" + network.APIServiceIP},
		{File: "apiserver-kubelet-client", User: "kube-apiserver-kubelet-client", Group: "system:masters"},
		{File: "front-proxy", User: "front-proxy-client"},
		{File: "admin", User: "kubernetes-admin", Group: "system:masters", Kubeconfig: true},
		{File: "controller-manager", User: "system:kube-controller-manager", Kubeconfig: true},
		{File: "scheduler", User: "system:kube-scheduler", Kubeconfig: true},
		{File: "proxy", User: "system:kube-proxy", Kubeconfig: true},
		{File: "coredns", User: "coredns", Group: "system:masters", Kubeconfig: true},
	}
	for _, n := range network.Nodes {
		all = append(all,
			Identity{File: n.Name, User: "system:node:" + n.Name, Group: "system:nodes", Kubeconfig: true},
			Identity{File: n.Name + "-server", User: n.Name, Names: "DNS:" + n.Name + ",IP:" + n.Addr + ",IP:127.0.0.1"})
	}
	return all
}

// Create creates a folder with an authority, all certificates and kubeconfigs, and the key that signs
// service account tokens. An existing folder is kept, so that tokens stay valid after a restart.
func Create(dir string) error {
	if host.Exists(dir) {
		return nil
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.MkdirAll(part, 0o700); err != nil {
		return err
	}
	err := certificate(filepath.Join(part, "ca"), nil, "/CN=memcached-operator local cluster", "basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")
	if err != nil {
		return err
	}
	for _, id := range identities() {
		if err := Issue(part, id); err != nil {
			return fmt.Errorf("certificate of %s: %w", id.File, err)
		}
	}
	// The API server takes no PKCS #8 for service accounts.
	if err := host.Run("openssl", "ecparam", "-genkey", "-noout", "-name", "prime256v1", "-out", filepath.Join(part, "service-accounts.key")); err != nil {
		return err
	}
	return os.Rename(part, dir)
}

// Issue writes FILE.crt, FILE.key and, if there is one, the kubeconfig FILE.conf into a folder, signed by its authority.
func Issue(dir string, id Identity) error {
	subject := "/CN=" + id.User
	if id.Group != "" {
		subject = "/O=" + id.Group + subject
	}
	extensions := []string{"keyUsage=digitalSignature", "extendedKeyUsage=clientAuth,serverAuth"}
	if id.Names != "" {
		extensions = append(extensions, "subjectAltName="+id.Names)
	}
	file, ca := filepath.Join(dir, id.File), filepath.Join(dir, "ca")
	if err := certificate(file, []string{"-CA", ca + ".crt", "-CAkey", ca + ".key"}, subject, extensions...); err != nil || !id.Kubeconfig {
		return err
	}
	var pems [3][]byte
	for i, path := range []string{ca + ".crt", file + ".crt", file + ".key"} {
		var err error
		if pems[i], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	config, err := kubeconfig(id.User, pems[0], pems[1], pems[2])
	if err != nil {
		return err
	}
	return os.WriteFile(file+".conf", config, 0o600)
}

// certificate writes FILE.crt and FILE.key with a signer, or signed by itself.
func certificate(file string, signer []string, subject string, extensions ...string) error {
	words := append([]string{
		"req", "-config", "/dev/stdin", "-x509", "-days", "3650", "-subj", subject,
		"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-out", file + ".crt", "-keyout", file + ".key",
	}, signer...)
	for _, e := range extensions {
		words = append(words, "-addext", e)
	}
	cmd := exec.Command("openssl", words...)
	cmd.Stdin = strings.NewReader("[req]\ndistinguished_name = none\n[none]\n") // instead of this machine's openssl.cnf
	_, err := host.Output(cmd)
	return err
}

// kubeconfig contains its certificates, so that a copy of the file works anywhere on this machine.
func kubeconfig(user string, ca, cert, keyPEM []byte) ([]byte, error) {
	const name = "memcached-operator"
	return json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": map[string]any{"server": "https://" + network.APIAddress(), "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": user, "user": map[string]any{"client-certificate-data": cert, "client-key-data": keyPEM}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": user}}},
	}, "", "  ")
}

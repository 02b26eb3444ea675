package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 10 * 365 * 24 * time.Hour

// identity is the subject of a certificate. Kubernetes reads user and groups from it.
type identity struct {
	file       string
	user       string
	group      string
	server     []string // names and addresses it is reached under; nil for a client
	kubeconfig bool
}

func identities() []identity {
	all := []identity{
		{file: "apiserver", user: "kube-apiserver", server: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local", "127.0.0.1", firstNode.Addr, firstNode.Gateway, apiServiceIP}},
		{file: "apiserver-kubelet-client", user: "kube-apiserver-kubelet-client", group: "system:masters"},
		{file: "front-proxy", user: "front-proxy-client"},
		{file: "admin", user: "kubernetes-admin", group: "system:masters", kubeconfig: true},
		{file: "controller-manager", user: "system:kube-controller-manager", kubeconfig: true},
		{file: "scheduler", user: "system:kube-scheduler", kubeconfig: true},
		{file: "proxy", user: "system:kube-proxy", kubeconfig: true},
		{file: "coredns", user: "coredns", group: "system:masters", kubeconfig: true},
	}
	for i := 1; i <= maxNodes; i++ {
		n := nodeNumber(i)
		all = append(all,
			identity{file: n.Name, user: "system:node:" + n.Name, group: "system:nodes", kubeconfig: true},
			identity{file: n.Name + "-server", user: n.Name, server: []string{n.Name, n.Addr, "127.0.0.1"}})
	}
	return all
}

// makeCertificates creates a folder with an authority, all certificates and kubeconfigs, and the key that signs
// service account tokens. An existing folder is kept, so that tokens stay valid after a restart.
func makeCertificates(dir string) error {
	if exists(dir) {
		return nil
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.MkdirAll(part, 0o700); err != nil {
		return err
	}
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(part, "ca.crt"), ca.pem, 0o600); err != nil {
		return err
	}
	if err := writeKey(filepath.Join(part, "ca.key"), ca.key); err != nil {
		return err
	}
	for _, id := range identities() {
		if err := ca.write(part, id); err != nil {
			return fmt.Errorf("certificate of %s: %w", id.file, err)
		}
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(filepath.Join(part, "service-accounts.key"), tokens); err != nil {
		return err
	}
	return os.Rename(part, dir)
}

type authority struct {
	cert *x509.Certificate
	pem  []byte
	key  *ecdsa.PrivateKey
}

func newAuthority() (authority, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template := x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "memcached-operator local cluster"},
		NotBefore:             time.Now().Add(-time.Hour), // clocks that were set back
		NotAfter:              time.Now().Add(validity),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, k.Public(), k)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, err
	}
	return authority{cert: cert, pem: pemBlock("CERTIFICATE", der), key: k}, nil
}

func loadAuthority(dir string) (authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		return authority{}, err
	}
	k, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return authority{}, fmt.Errorf("%s/ca.key is of another kind than this program makes", dir)
	}
	return authority{cert: pair.Leaf, pem: pemBlock("CERTIFICATE", pair.Leaf.Raw), key: k}, nil
}

// write writes FILE.crt, FILE.key and, if there is one, the kubeconfig FILE.conf.
func (a authority) write(dir string, id identity) error {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert, err := a.issue(id, k)
	if err != nil {
		return err
	}
	base := filepath.Join(dir, id.file)
	if err := os.WriteFile(base+".crt", cert, 0o600); err != nil {
		return err
	}
	if err := writeKey(base+".key", k); err != nil {
		return err
	}
	if !id.kubeconfig {
		return nil
	}
	keyPEM, err := os.ReadFile(base + ".key")
	if err != nil {
		return err
	}
	config, err := kubeconfig(id.user, a.pem, cert, keyPEM)
	if err != nil {
		return err
	}
	return os.WriteFile(base+".conf", config, 0o600)
}

func (a authority) issue(id identity, k *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.user},
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if id.group != "" {
		template.Subject.Organization = []string{id.group}
	}
	if id.server != nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, s := range id.server {
		if addr := net.ParseIP(s); addr != nil {
			template.IPAddresses = append(template.IPAddresses, addr)
		} else {
			template.DNSNames = append(template.DNSNames, s)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, a.cert, k.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return pemBlock("CERTIFICATE", der), nil
}

func writeKey(path string, k *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(k) // the API server takes no PKCS #8 for service accounts
	if err != nil {
		return err
	}
	return os.WriteFile(path, pemBlock("EC PRIVATE KEY", der), 0o600)
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// kubeconfig contains its certificates, so that a copy of the file works anywhere on this machine.
func kubeconfig(user string, ca, cert, keyPEM []byte) ([]byte, error) {
	const name = "memcached-operator"
	return json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": map[string]any{"server": "https://" + apiAddress(), "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": user, "user": map[string]any{"client-certificate-data": cert, "client-key-data": keyPEM}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": user}}},
	}, "", "  ")
}

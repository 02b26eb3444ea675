// Package pki creates certificates and kubeconfigs.
package pki

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

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
)

const validity = 10 * 365 * 24 * time.Hour

// Identity is the subject of a certificate. Kubernetes reads user and groups from it.
type Identity struct {
	File       string
	User       string
	Group      string
	Server     []string // names and addresses it is reached under; nil for a client
	Kubeconfig bool
}

func identities() []Identity {
	all := []Identity{
		{File: "apiserver", User: "kube-apiserver", Server: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local", "127.0.0.1", network.First.Addr, network.First.Gateway, network.APIServiceIP}},
		{File: "apiserver-kubelet-client", User: "kube-apiserver-kubelet-client", Group: "system:masters"},
		{File: "front-proxy", User: "front-proxy-client"},
		{File: "admin", User: "kubernetes-admin", Group: "system:masters", Kubeconfig: true},
		{File: "controller-manager", User: "system:kube-controller-manager", Kubeconfig: true},
		{File: "scheduler", User: "system:kube-scheduler", Kubeconfig: true},
		{File: "proxy", User: "system:kube-proxy", Kubeconfig: true},
		{File: "coredns", User: "coredns", Group: "system:masters", Kubeconfig: true},
	}
	for i := 1; i <= network.MaxNodes; i++ {
		n := network.Number(i)
		all = append(all,
			Identity{File: n.Name, User: "system:node:" + n.Name, Group: "system:nodes", Kubeconfig: true},
			Identity{File: n.Name + "-server", User: n.Name, Server: []string{n.Name, n.Addr, "127.0.0.1"}})
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
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(part, "ca.crt"), ca.PEM, 0o600); err != nil {
		return err
	}
	if err := writeKey(filepath.Join(part, "ca.key"), ca.key); err != nil {
		return err
	}
	for _, id := range identities() {
		if err := ca.Write(part, id); err != nil {
			return fmt.Errorf("certificate of %s: %w", id.File, err)
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

// Authority signs the certificates of a cluster.
type Authority struct {
	cert *x509.Certificate
	PEM  []byte
	key  *ecdsa.PrivateKey
}

func newAuthority() (Authority, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Authority{}, err
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
		return Authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return Authority{}, err
	}
	return Authority{cert: cert, PEM: pemBlock("CERTIFICATE", der), key: k}, nil
}

// Load reads the authority in a folder.
func Load(dir string) (Authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		return Authority{}, err
	}
	k, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return Authority{}, fmt.Errorf("%s/ca.key is of another kind than this program makes", dir)
	}
	return Authority{cert: pair.Leaf, PEM: pemBlock("CERTIFICATE", pair.Leaf.Raw), key: k}, nil
}

// Write writes FILE.crt, FILE.key and, if there is one, the kubeconfig FILE.conf.
func (a Authority) Write(dir string, id Identity) error {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert, err := a.issue(id, k)
	if err != nil {
		return err
	}
	base := filepath.Join(dir, id.File)
	if err := os.WriteFile(base+".crt", cert, 0o600); err != nil {
		return err
	}
	if err := writeKey(base+".key", k); err != nil {
		return err
	}
	if !id.Kubeconfig {
		return nil
	}
	keyPEM, err := os.ReadFile(base + ".key")
	if err != nil {
		return err
	}
	config, err := kubeconfig(id.User, a.PEM, cert, keyPEM)
	if err != nil {
		return err
	}
	return os.WriteFile(base+".conf", config, 0o600)
}

func (a Authority) issue(id Identity, k *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.User},
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if id.Group != "" {
		template.Subject.Organization = []string{id.Group}
	}
	if id.Server != nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, s := range id.Server {
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
		"clusters": []any{map[string]any{"name": name, "cluster": map[string]any{"server": "https://" + network.APIAddress(), "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": user, "user": map[string]any{"client-certificate-data": cert, "client-key-data": keyPEM}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": user}}},
	}, "", "  ")
}

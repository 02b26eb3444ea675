package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

func TestCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := makeCertificates(dir); err != nil {
		t.Fatal(err)
	}
	ca := read(t, filepath.Join(dir, "ca.crt"))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)

	tests := map[string]struct {
		usage  x509.ExtKeyUsage
		user   string
		groups []string
		names  []string
	}{
		"apiserver":    {usage: x509.ExtKeyUsageServerAuth, user: "kube-apiserver", names: []string{"kubernetes.default.svc", firstNode.Addr, apiServiceIP}},
		"node2-server": {usage: x509.ExtKeyUsageServerAuth, user: "node2", names: []string{"node2", nodeNumber(2).Addr}},
		"node2":        {usage: x509.ExtKeyUsageClientAuth, user: "system:node:node2", groups: []string{"system:nodes"}},
		"admin":        {usage: x509.ExtKeyUsageClientAuth, user: "kubernetes-admin", groups: []string{"system:masters"}},
		"scheduler":    {usage: x509.ExtKeyUsageClientAuth, user: "system:kube-scheduler"},
	}
	for file, want := range tests {
		t.Run(file, func(t *testing.T) {
			pair, err := tls.LoadX509KeyPair(filepath.Join(dir, file+".crt"), filepath.Join(dir, file+".key"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{want.usage}}); err != nil {
				t.Error(err)
			}
			subject := pair.Leaf.Subject
			if subject.CommonName != want.user || len(subject.Organization) != len(want.groups) || len(want.groups) == 1 && subject.Organization[0] != want.groups[0] {
				t.Errorf("subject %v, want %s of %v", subject, want.user, want.groups)
			}
			for _, n := range want.names {
				if err := pair.Leaf.VerifyHostname(n); err != nil {
					t.Error(err)
				}
			}
		})
	}

	info, err := os.Stat(filepath.Join(dir, "admin.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the administrator's key: %v %v", info.Mode(), err)
	}
	if err := makeCertificates(dir); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ca, read(t, filepath.Join(dir, "ca.crt"))) {
		t.Error("a second run replaced the authority: existing certificates are no longer valid")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

package agent

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/agent/files"
)

// certificate is what a generation of the Secret contains.
type certificate struct {
	// combined is the key and the chain as PEM, and ca the CAs, which may be empty. They contain
	// nothing else, as memcached's reload fails for text that it can't parse.
	combined, ca []byte
	leaf         *x509.Certificate
	cas          []*x509.Certificate
	// problem is why clients may reject it; nil if they don't.
	problem error
}

func fingerprint(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}

func (c *certificate) fingerprint() string { return fingerprint(c.leaf.Raw) }

func (c *certificate) keyType() string { return c.leaf.PublicKeyAlgorithm.String() }

// readCertificate reads one generation of the Secret in a volume, and checks it for a host name. The
// error says why memcached can't use it.
func readCertificate(volume, host string, now time.Time) (*certificate, error) {
	var parts [3][]byte
	err := files.ReadGeneration(volume, func(dir string) error {
		for i, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			parts[i] = content
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return parseCertificate(parts[0], parts[1], parts[2], host, now)
}

// parseCertificate returns an error if memcached can't use the certificate, or would keep using another
// one. What clients may reject is the problem of the certificate that it returns.
func parseCertificate(crt, key, ca []byte, host string, now time.Time) (*certificate, error) {
	switch {
	case len(crt) == 0:
		return nil, errors.New("the Secret doesn't exist, or has no tls.crt")
	case len(key) == 0:
		return nil, errors.New("the Secret has no tls.key")
	}
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		return nil, fmt.Errorf("tls.crt and tls.key: %w", err)
	}
	c := &certificate{}
	var chain bytes.Buffer
	intermediates := x509.NewCertPool()
	for i, der := range pair.Certificate {
		parsed, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("tls.crt: %w", err)
		}
		if i == 0 {
			c.leaf = parsed
		} else {
			intermediates.AddCert(parsed)
		}
		_ = pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	switch pair.PrivateKey.(type) {
	case *rsa.PrivateKey, *ecdsa.PrivateKey:
	default:
		return nil, fmt.Errorf("tls.key: a key of type %s; use RSA or ECDSA", c.keyType())
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("tls.key: %w", err)
	}
	c.combined = append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), chain.Bytes()...)
	roots := x509.NewCertPool()
	for rest := ca; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("ca.crt: %w", err)
		}
		roots.AddCert(parsed)
		c.cas = append(c.cas, parsed)
		c.ca = append(c.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})...)
	}
	if len(c.cas) == 0 && len(bytes.TrimSpace(ca)) > 0 {
		return nil, errors.New("ca.crt contains no certificate")
	}
	c.problem = c.check(host, now, roots, intermediates)
	return c, nil
}

// throwawayCertificate returns a certificate that no client accepts.
func throwawayCertificate() (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return parseCertificate(crt, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), crt, "", now)
}

// check returns why clients may reject the certificate.
func (c *certificate) check(host string, now time.Time, roots, intermediates *x509.CertPool) error {
	day := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case now.After(c.leaf.NotAfter):
		return fmt.Errorf("tls.crt expired at %s", day(c.leaf.NotAfter))
	case now.Before(c.leaf.NotBefore):
		return fmt.Errorf("tls.crt isn't valid before %s", day(c.leaf.NotBefore))
	}
	if err := c.leaf.VerifyHostname(host); err != nil {
		return fmt.Errorf("tls.crt isn't valid for %s: %w", host, err)
	}
	if !c.allows(x509.ExtKeyUsageServerAuth) {
		return errors.New("tls.crt isn't valid for servers: its extended key usages lack serverAuth")
	}
	if len(c.cas) > 0 {
		if _, err := c.leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: now}); err != nil {
			return fmt.Errorf("ca.crt doesn't verify tls.crt: %w", err)
		}
	}
	return nil
}

func (c *certificate) allows(usage x509.ExtKeyUsage) bool {
	return len(c.leaf.ExtKeyUsage)+len(c.leaf.UnknownExtKeyUsage) == 0 || slices.Contains(c.leaf.ExtKeyUsage, usage) ||
		slices.Contains(c.leaf.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// lacks returns a CA that another certificate's CAs contain and this one's don't, or nil.
func (c *certificate) lacks(others []*x509.Certificate) *x509.Certificate {
	for _, other := range others {
		if !slices.ContainsFunc(c.cas, other.Equal) {
			return other
		}
	}
	return nil
}

// serves reports whether memcached can use the certificate with an argument's mode: if it verifies
// clients without a CA, it rejects all.
func (c *certificate) serves(mode cmdline.TLSMode) error {
	switch {
	case mode.VerifiesClients && len(c.cas) == 0:
		return errors.New("the Secret has no ca.crt, which client certificates require")
	case mode.VerifiesClients && !c.allows(x509.ExtKeyUsageClientAuth):
		return errors.New("tls.crt isn't valid for clients, as which backups and restores present it: its extended key usages lack clientAuth")
	}
	return nil
}

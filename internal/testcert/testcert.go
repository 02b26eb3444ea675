// Package testcert issues certificates for tests.
package testcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// CA signs certificates with an ECDSA key.
type CA struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// Options of a certificate.
type Options struct {
	// Names are host names and IP addresses.
	Names []string
	// NotBefore is an hour ago by default, and NotAfter in a day.
	NotBefore, NotAfter time.Time
	// RSA is whether the key is of that type instead of ECDSA.
	RSA bool
	// ClientOnly and ServerOnly restrict what the certificate is valid for.
	ClientOnly, ServerOnly bool
}

// NewCA returns a CA with that common name.
func NewCA(name string) *CA { return (&CA{}).Intermediate(name) }

// Intermediate returns a CA that this one has signed.
func (c *CA) Intermediate(name string) *CA {
	template, key := newTemplate(name, Options{}), newKey(false)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	if c.key == nil {
		c = &CA{template, key}
	}
	return &CA{parse(create(template, c.certificate, key, c.key)), key}
}

// PEM returns the CA's own certificate.
func (c *CA) PEM() []byte { return encode("CERTIFICATE", c.certificate.Raw) }

// Issue returns a certificate and its key (PKCS #8) as PEM.
func (c *CA) Issue(o Options) (certificate, key []byte) {
	template := newTemplate("leaf", o)
	for _, name := range o.Names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	if o.ClientOnly {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if o.ServerOnly {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	private := newKey(o.RSA)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(err)
	return encode("CERTIFICATE", create(template, c.certificate, private, c.key)), encode("PRIVATE KEY", der)
}

// Fingerprint returns the SHA-256 of a certificate in PEM, as hexadecimal digits.
func Fingerprint(certificate []byte) string {
	block, _ := pem.Decode(certificate)
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:])
}

func newTemplate(name string, o Options) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	must(err)
	if o.NotBefore.IsZero() {
		o.NotBefore = time.Now().Add(-time.Hour)
	}
	if o.NotAfter.IsZero() {
		o.NotAfter = time.Now().Add(24 * time.Hour)
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: o.NotBefore, NotAfter: o.NotAfter}
}

func create(template, parent *x509.Certificate, key, parentKey crypto.Signer) []byte {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	must(err)
	return der
}

func parse(der []byte) *x509.Certificate {
	certificate, err := x509.ParseCertificate(der)
	must(err)
	return certificate
}

func newKey(isRSA bool) crypto.Signer {
	if isRSA {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		must(err)
		return key
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	return key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func must(err error) {
	if err != nil { // as crypto/rand does not fail, only wrong options lead here
		panic(err)
	}
}

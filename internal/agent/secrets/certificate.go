package secrets

import (
	"bytes"
	"context"
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
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// certificate is what memcached serves TLS with.
type certificate struct {
	// combined is the key and the chain as PEM, and ca the CAs, which may be empty. They contain
	// nothing else, as memcached's reload fails for text that it can't parse.
	combined, ca []byte
	leaf         *x509.Certificate
	cas          []*x509.Certificate
}

// newCertificates returns what lets memcached use the certificate in a volume. host is the name of this shard for clients.
func newCertificates(volume, dir, host string, log *slog.Logger) secret[*certificate] {
	return secret[*certificate]{
		name: "certificate", log: log, volume: volume, dir: dir,
		requires: func(arguments []string) bool { return cmdline.TLSModeOf(arguments).On },
		read: func(dir string, now time.Time) (*certificate, error) {
			return readCertificate(dir, "tls.crt", "tls.key", "ca.crt", host, now)
		},
		restore: func(dir string, now time.Time) (*certificate, error) {
			return readCertificate(dir, combinedFile, combinedFile, caFile, host, now)
		},
	}
}

// The names of the files that memcached reads.
const (
	combinedFile = "tls.pem"
	caFile       = "ca.pem"
)

func readCertificate(dir, crt, key, ca, host string, now time.Time) (c *certificate, problem error) {
	var contents [3][]byte
	for i, name := range []string{crt, key, ca} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		contents[i] = content
	}
	return parseCertificate(contents[0], contents[1], contents[2], host, now)
}

func (c *certificate) files() map[string][]byte {
	return map[string][]byte{combinedFile: c.combined, caFile: c.ca}
}

func (c *certificate) attributes() []any {
	return []any{"sha256", c.fingerprint(), "notAfter", c.leaf.NotAfter}
}

func (c *certificate) fingerprint() string { return fingerprint(c.leaf.Raw) }

// identity is another one if the CAs are others: memcached restarts once for each, as it keeps accepting a CA that was removed.
func (c *certificate) identity() string { return fingerprint(slices.Concat(c.leaf.Raw, c.ca)) }

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// suits knows that a memcached that verifies clients without a CA would reject all of them.
func (c *certificate) suits(arguments []string) error {
	mode := cmdline.TLSModeOf(arguments)
	switch {
	case mode.VerifiesClients && len(c.cas) == 0:
		return errors.New("the Secret has no ca.crt, which client certificates require")
	case mode.VerifiesClients && !c.allows(x509.ExtKeyUsageClientAuth):
		return errors.New("tls.crt isn't valid for clients, as which backups and restores present it: its extended key usages lack clientAuth")
	}
	return nil
}

// load lets memcached read the files again, and compares what it serves.
func (c *certificate) load(m running, former []*certificate) (used *certificate, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	used = former[len(former)-1]
	if err = m.Command(ctx, (*protocol.Conn).RefreshCertificates); err != nil {
		// It can have loaded a part, with which it rejects all connections.
		if protocol.IsAnswer(err) && !protocol.IsFull(err) && write(m.dir, used) == nil {
			_ = m.Command(ctx, (*protocol.Conn).RefreshCertificates)
		}
		return nil, err
	}
	served, err := servedFingerprint(ctx, m.Server, m.tlsAddress())
	if err != nil {
		return nil, err
	}
	for _, candidate := range append(former, c) {
		if candidate.fingerprint() == served {
			used = candidate
		}
	}
	return used, nil
}

// servedFingerprint returns that of the certificate at an address.
func servedFingerprint(ctx context.Context, server protocol.Server, address string) (served string, err error) {
	conn, err := protocol.Server{Address: address, DialContext: server.DialContext}.Connect(ctx)
	if err == nil {
		err = tls.Client(conn, &tls.Config{
			InsecureSkipVerify: true, // the caller compares it with the ones that are expected
			MinVersion:         tls.VersionTLS12,
			VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
				served = fingerprint(raw[0])
				return nil
			},
		}).HandshakeContext(ctx)
		_ = conn.Close()
	}
	if _, plain := err.(tls.RecordHeaderError); plain { //nolint:errorlint // it is never wrapped, and AsType needs 8 KiB
		err = protocol.ErrFull // memcached answers nothing else without TLS
	}
	if served != "" { // a server that requires a client certificate ends the handshake after that
		return served, nil
	}
	return "", fmt.Errorf("reading the certificate that memcached serves: %w", err)
}

// replaces knows that memcached never removes a CA or a key type that it has loaded.
func (c *certificate) replaces(former *certificate) bool {
	return c.keyType() == former.keyType() && c.lacks(former) == nil
}

func (c *certificate) keyType() string { return c.leaf.PublicKeyAlgorithm.String() }

// lacks returns a CA of another certificate that this one doesn't have, or nil.
func (c *certificate) lacks(other *certificate) *x509.Certificate {
	for _, ca := range other.cas {
		if !slices.ContainsFunc(c.cas, ca.Equal) {
			return ca
		}
	}
	return nil
}

// restartReason returns why memcached has to restart to use only the latest certificate that it has loaded; empty if it
// doesn't.
func restartReason(loaded []*certificate, used *certificate, arguments []string) string {
	if len(loaded) == 0 {
		return ""
	}
	latest := loaded[len(loaded)-1]
	for _, former := range loaded {
		if former.keyType() != latest.keyType() || used != latest {
			return fmt.Sprintf("memcached can still serve the previous certificate beside the new one, whose key is of type %s", latest.keyType())
		}
	}
	for _, former := range loaded {
		if ca := latest.lacks(former); ca != nil && cmdline.TLSModeOf(arguments).VerifiesClients {
			return fmt.Sprintf("memcached still accepts clients of CA %s, which ca.crt no longer contains", ca.Subject)
		}
	}
	return ""
}

// parseCertificate returns only a problem if memcached can't use the certificate, or would keep using another
// one, and both if clients can reject it.
func parseCertificate(crt, key, ca []byte, host string, now time.Time) (c *certificate, problem error) {
	switch {
	case len(crt) == 0:
		return nil, errors.New("the Secret doesn't exist, or has no tls.crt")
	case len(key) == 0:
		return nil, errors.New("the Secret has no tls.key")
	case hasLargeKey(key):
		return nil, fmt.Errorf("tls.key has more than %d KiB; use a smaller key", maxKey>>10)
	}
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		return nil, fmt.Errorf("tls.crt and tls.key: %w", err)
	}
	c = &certificate{}
	var chain bytes.Buffer
	intermediates := x509.NewCertPool()
	for i, der := range pair.Certificate {
		parsed, err := parseOne(der)
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
		parsed, err := parseOne(block.Bytes)
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
	return c, c.check(host, now, roots, intermediates)
}

// maxPublicKey is more than the size, in bytes, of any that OpenSSL verifies with: RSA of 16,384 bits, or ML-DSA-87. The time to verify
// with RSA grows with the square of its size: 20 ms for this one, and 32 s for one of 128 KiB, once for each CA of the same name.
const maxPublicKey = 2700

// parseOne parses a certificate.
func parseOne(der []byte) (*x509.Certificate, error) {
	parsed, err := x509.ParseCertificate(der)
	if err == nil && len(parsed.RawSubjectPublicKeyInfo) > maxPublicKey {
		err = errors.New("a public key is too large; use RSA with at most 16384 bits")
	}
	return parsed, err
}

// maxKey is the size, in bytes, of the largest key. The time to check an RSA key grows with the cube of its size: 9 ms for
// one of 12 KiB, and 4 s for one of 100 KiB, in which the supervisor does nothing else.
const maxKey = 16 << 10

// hasLargeKey reports whether a block of PEM that is no certificate is larger than maxKey.
func hasLargeKey(text []byte) bool {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return false
		}
		if block.Type != "CERTIFICATE" && len(block.Bytes) > maxKey {
			return true
		}
		text = rest
	}
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
	block := func(name string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der}) }
	crt := block("CERTIFICATE", der)
	c, problem := parseCertificate(crt, block("PRIVATE KEY", pkcs8), crt, "", now)
	if c == nil {
		return nil, problem
	}
	return c, nil // the problem is one of clients
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

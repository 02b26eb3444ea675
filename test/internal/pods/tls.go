package pods

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"net"
	"path/filepath"
	"strconv"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

// TLSHost is the name of the shards of these tests.
const TLSHost = "localhost"

// TLSShard is a shard whose pod mounts a Secret.
type TLSShard struct{ *Shard }

// NewTLSShard returns a shard with a mounted certificate.
func NewTLSShard(t testing.TB) *TLSShard {
	t.Helper()
	s := &TLSShard{Shard: NewShard(t)}
	s.Secret, s.LoopbackPort, s.Service = filepath.Join(s.Dir, "secret"), FreePort(t), TLSHost+":1"
	MakeDir(t, s.Secret)
	Project(t, s.Secret, nil)
	return s
}

// Put replaces the content of the Secret. A nil part is missing.
func (s *TLSShard) Put(crt, key, ca []byte) {
	s.T.Helper()
	content := map[string]string{}
	for name, part := range map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": ca} {
		if part != nil {
			content[name] = string(part)
		}
	}
	Project(s.T, s.Secret, content)
}

// Issue puts a new certificate of a CA into the Secret, and returns its fingerprint.
func (s *TLSShard) Issue(ca *testcert.CA, o testcert.Options) string {
	s.T.Helper()
	if o.Names == nil {
		o.Names = []string{TLSHost}
	}
	crt, key := ca.Issue(o)
	s.Put(crt, key, ca.PEM())
	return testcert.Fingerprint(crt)
}

// Loopback is where memcached serves the agent.
func (s *TLSShard) Loopback() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.LoopbackPort))
}

// WaitForCertificate waits until the agent reports a state of the certificate.
func (s *TLSShard) WaitForCertificate(what string, wanted func(agentwire.Certificate) bool) agentwire.Status {
	s.T.Helper()
	return s.WaitFor(what, func(status agentwire.Status) bool { return status.Secrets != nil && wanted(status.Secrets.Certificate) })
}

// WaitUntilServed waits until memcached uses the certificate of a fingerprint, and returns the status.
func (s *TLSShard) WaitUntilServed(fingerprint string) agentwire.Status {
	s.T.Helper()
	return s.WaitFor("certificate "+fingerprint, func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseServing && status.Secrets != nil && status.Secrets.Certificate.SHA256 == fingerprint && status.Secrets.Certificate.Error == ""
	})
}

// The words with which the operator switches TLS on.
var (
	WordsRequired   = []string{"-Z"}
	WordsPermissive = []string{"-Z", "-l", "*:11211", "-l", "notls:*:11211"}
	WordsClients    = []string{"-Z", "-o", "ssl_verify_mode=2,ssl_session_cache"}
)

// ClientConfig is that of a client which trusts a CA, and presents a certificate of another one, if any.
func ClientConfig(t testing.TB, ca, clients *testcert.CA) *tls.Config {
	t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: TLSHost, MinVersion: tls.VersionTLS12}
	c.RootCAs.AppendCertsFromPEM(ca.PEM())
	if clients != nil {
		pair, err := tls.X509KeyPair(clients.Issue(testcert.Options{Names: []string{"client"}, ClientOnly: true}))
		Must(t, err)
		// Certificates would not be presented to a server that doesn't list their CA.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return c
}

// RequestVersion returns the certificate's fingerprint of a server that answers over TLS; a nil config is a plain connection.
func RequestVersion(ctx context.Context, address string, config *tls.Config) (fingerprint string, err error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	server := protocol.At(address)
	if config != nil {
		server.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
			if err == nil {
				sum := sha256.Sum256(conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw)
				fingerprint = hex.EncodeToString(sum[:])
			}
			return conn, err
		}
	}
	conn, err := server.Dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_, err = conn.Version(ctx)
	return fingerprint, err
}

// WantServed fails the test unless a client connects and gets the certificate of a fingerprint.
func (s *TLSShard) WantServed(config *tls.Config, fingerprint string) {
	s.T.Helper()
	if served, err := RequestVersion(s.T.Context(), s.Address(), config); err != nil || served != fingerprint {
		s.T.Errorf("served certificate %q, %v; want %q", served, err, fingerprint)
	}
}

// WantRejected fails the test if a client connects.
func (s *TLSShard) WantRejected(config *tls.Config) {
	s.T.Helper()
	if served, err := RequestVersion(s.T.Context(), s.Address(), config); err == nil {
		s.T.Errorf("memcached accepts a client that it should reject, with certificate %q", served)
	}
}

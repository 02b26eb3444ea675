package process

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

// tlsHost is the name of the shards of these tests.
const tlsHost = "localhost"

// tlsShard is a shard whose pod mounts a Secret.
type tlsShard struct {
	*shard
	generation int
}

func newTLSShard(t testing.TB) *tlsShard {
	t.Helper()
	s := &tlsShard{shard: newShard(t)}
	s.secret, s.loopbackPort, s.service = filepath.Join(s.dir, "secret"), freePort(t), tlsHost+":1"
	makeDir(t, s.secret)
	project(t, s.secret, 0, nil)
	return s
}

// put replaces the content of the Secret. A nil part is missing.
func (s *tlsShard) put(crt, key, ca []byte) {
	s.t.Helper()
	s.generation++
	content := map[string]string{}
	for name, part := range map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": ca} {
		if part != nil {
			content[name] = string(part)
		}
	}
	project(s.t, s.secret, s.generation, content)
}

// issue puts a new certificate of a CA into the Secret, and returns its fingerprint.
func (s *tlsShard) issue(ca *testcert.CA, o testcert.Options) string {
	s.t.Helper()
	if o.Names == nil {
		o.Names = []string{tlsHost}
	}
	crt, key := ca.Issue(o)
	s.put(crt, key, ca.PEM())
	return fingerprintOf(s.t, crt, key)
}

func fingerprintOf(t testing.TB, crt, key []byte) string {
	t.Helper()
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(pair.Certificate[0])
	return hex.EncodeToString(sum[:])
}

// loopback is where memcached serves the agent.
func (s *tlsShard) loopback() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.loopbackPort))
}

// apply changes memcached's arguments in place.
func (s *tlsShard) apply(more ...string) agentwire.Status {
	s.t.Helper()
	before := s.status()
	s.annotate(agentwire.ArgumentsFile, s.arguments(more...))
	return s.waitFor("the new arguments", func(status agentwire.Status) bool {
		if status.ArgumentsError != "" {
			s.t.Fatal(status.ArgumentsError)
		}
		return status.Phase == agentwire.PhaseServing && status.PID != before.PID
	})
}

// waitForCertificate waits until the agent reports a state of the certificate.
func (s *tlsShard) waitForCertificate(what string, wanted func(agentwire.Certificate) bool) agentwire.Status {
	s.t.Helper()
	return s.waitFor(what, func(status agentwire.Status) bool { return status.Secrets != nil && wanted(status.Secrets.Certificate) })
}

func (s *tlsShard) waitUntilServed(fingerprint string) agentwire.Status {
	s.t.Helper()
	return s.waitFor("certificate "+fingerprint, func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseServing && status.Secrets != nil && status.Secrets.Certificate.SHA256 == fingerprint && status.Secrets.Certificate.Error == ""
	})
}

// The words with which the operator switches TLS on.
var (
	wordsRequired   = []string{"-Z"}
	wordsPermissive = []string{"-Z", "-l", "*:11211", "-l", "notls:*:11211"}
	wordsClients    = []string{"-Z", "-o", "ssl_verify_mode=2,ssl_session_cache"}
)

// clientConfig is that of a client which trusts a CA, and presents a certificate of another one, if any.
func clientConfig(t testing.TB, ca, clients *testcert.CA) *tls.Config {
	t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: tlsHost, MinVersion: tls.VersionTLS12}
	c.RootCAs.AppendCertsFromPEM(ca.PEM())
	if clients != nil {
		pair, err := tls.X509KeyPair(clients.Issue(testcert.Options{Names: []string{"client"}, ClientOnly: true}))
		if err != nil {
			t.Fatal(err)
		}
		// Certificates would not be presented to a server that doesn't list their CA.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return c
}

// requestVersion returns the certificate's fingerprint of a server that answers over TLS; a nil config is a plain
// connection.
func requestVersion(ctx context.Context, address string, config *tls.Config) (fingerprint string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var conn net.Conn
	if config == nil {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if secured, ok := conn.(*tls.Conn); ok {
		sum := sha256.Sum256(secured.ConnectionState().PeerCertificates[0].Raw)
		fingerprint = hex.EncodeToString(sum[:])
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := io.WriteString(conn, "version\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "VERSION ") {
		err = fmt.Errorf("the answer is %q", line)
	}
	return fingerprint, err
}

func (s *tlsShard) wantServed(config *tls.Config, fingerprint string) {
	s.t.Helper()
	if served, err := requestVersion(s.t.Context(), s.address(), config); err != nil || served != fingerprint {
		s.t.Errorf("served certificate %q, %v; want %q", served, err, fingerprint)
	}
}

func (s *tlsShard) wantRejected(config *tls.Config) {
	s.t.Helper()
	if served, err := requestVersion(s.t.Context(), s.address(), config); err == nil {
		s.t.Errorf("memcached accepts a client that it should reject, with certificate %q", served)
	}
}

// casOf returns the CAS values of the items of fill.
func casOf(t testing.TB, address string, size int) map[string]string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	all, r := map[string]string{}, bufio.NewReader(conn)
	go func() {
		requests := bufio.NewWriter(conn)
		for i := range size {
			_, _ = fmt.Fprintf(requests, "mg item-%d k c\r\n", i)
		}
		_ = requests.Flush()
	}()
	for range size {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "HD" {
			all[fields[1]] = fields[2]
		}
	}
	if len(all) != size {
		t.Fatalf("%d items have a CAS value, want %d", len(all), size)
	}
	return all
}

func TestTLSIsSwitchedOnAndOffWithItsItems(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			const size = 20_000
			ca := testcert.NewCA("shards")
			s := newTLSShard(t)
			s.memcached = memcachedPath(version)
			served := s.issue(ca, testcert.Options{})
			s.run()
			fill(t, s.address(), size)
			want := casOf(t, s.address(), size)
			secured, withCertificate := clientConfig(t, ca, nil), clientConfig(t, ca, ca)
			for _, step := range []struct {
				name     string
				words    []string
				loopback bool
				accepts  []*tls.Config
				rejects  []*tls.Config
			}{
				{"Permissive", wordsPermissive, true, []*tls.Config{nil, secured}, nil},
				{"Required", wordsRequired, true, []*tls.Config{secured, withCertificate}, []*tls.Config{nil}},
				{"client certificates", wordsClients, true, []*tls.Config{withCertificate}, []*tls.Config{nil, secured, clientConfig(t, ca, testcert.NewCA("others"))}},
				{"TLS 1.3", append([]string{"-o", "ssl_min_version=3"}, wordsRequired...), true, []*tls.Config{secured}, []*tls.Config{nil, {RootCAs: secured.RootCAs, ServerName: tlsHost, MaxVersion: tls.VersionTLS12}}},
				{"Permissive again", wordsPermissive, true, []*tls.Config{nil, secured}, nil},
				{"plain", nil, false, []*tls.Config{nil}, []*tls.Config{secured}},
			} {
				status := s.apply(step.words...)
				wantWarm(t, status, size)
				t.Logf("%s: unavailable for %.3f s", step.name, status.Start.UnavailableSeconds)
				own := s.address()
				if step.loopback {
					own = s.loopback()
				}
				if n := count(t, own, size); n != size {
					t.Errorf("%s: %d items, want %d", step.name, n, size)
				}
				for key, cas := range casOf(t, own, size) {
					if want[key] != cas {
						t.Fatalf("%s: %s has %s, want %s", step.name, key, cas, want[key])
					}
				}
				for _, config := range step.accepts {
					fingerprint := served
					if config == nil {
						fingerprint = ""
					}
					s.wantServed(config, fingerprint)
				}
				for _, config := range step.rejects {
					s.wantRejected(config)
				}
				wantProbes(t, s.shard)
			}
		})
	}
}

func TestRotatedCertificateIsServedWithoutARestart(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ca := testcert.NewCA("shards")
			s := newTLSShard(t)
			s.memcached = memcachedPath(version)
			s.annotate(agentwire.ArgumentsFile, s.arguments(wordsRequired...))
			s.issue(ca, testcert.Options{})
			first := s.run()
			config := clientConfig(t, ca, nil)
			long, err := tls.Dial("tcp", s.address(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer long.Close()
			ctx, stop := context.WithCancel(t.Context())
			var dials, failed atomic.Int64
			var dialers sync.WaitGroup
			for range 2 {
				dialers.Go(func() {
					for ctx.Err() == nil {
						if _, err := requestVersion(ctx, s.address(), config); err != nil && ctx.Err() == nil {
							failed.Add(1)
							t.Logf("a client failed: %v", err)
						}
						dials.Add(1)
					}
				})
			}
			const swaps = 1000
			var last string
			for range swaps {
				last = s.issue(ca, testcert.Options{})
			}
			status := s.waitUntilServed(last)
			stop()
			dialers.Wait()
			s.wantServed(config, last)
			t.Logf("%d swaps, %d connections", swaps, dials.Load())
			if failed.Load() > 0 || dials.Load() == 0 || status.PID != first.PID || status.Secrets.Certificate.RestartRequired != "" {
				t.Errorf("%d of %d connections failed; %+v", failed.Load(), dials.Load(), status)
			}
			if _, err := io.WriteString(long, "version\r\n"); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(long).ReadString('\n'); err != nil {
				t.Errorf("the open connection: %q, %v", line, err)
			}
		})
	}
}

func TestSecretThatCannotBeUsedChangesNothing(t *testing.T) {
	t.Parallel()
	ca, other := testcert.NewCA("shards"), testcert.NewCA("others")
	crt, key := ca.Issue(testcert.Options{Names: []string{tlsHost}})
	otherCrt, otherKey := ca.Issue(testcert.Options{Names: []string{tlsHost}})
	issue := func(o testcert.Options) (crt, key, ca []byte) {
		if o.Names == nil {
			o.Names = []string{tlsHost}
		}
		c := testcert.NewCA("more")
		crt, key = c.Issue(o)
		return crt, key, c.PEM()
	}
	put := func(crt, key, ca []byte) func(*tlsShard) { return func(s *tlsShard) { s.put(crt, key, ca) } }
	for name, c := range map[string]struct {
		put  func(*tlsShard)
		want string
	}{
		"new certificate with the old key": {put(otherCrt, key, ca.PEM()), "private key does not match public key"},
		"old certificate with the new key": {put(crt, otherKey, ca.PEM()), "private key does not match public key"},
		"no certificate":                   {put(nil, key, ca.PEM()), "has no tls.crt"},
		"no key":                           {put(crt, nil, ca.PEM()), "has no tls.key"},
		"deleted Secret":                   {put(nil, nil, nil), "doesn't exist, or has no tls.crt"},
		"garbage":                          {put([]byte("garbage"), []byte("garbage"), ca.PEM()), "tls.crt and tls.key: "},
		"half of a chain":                  {put(append(crt[:len(crt):len(crt)], "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"...), key, ca.PEM()), "tls.crt: "},
		"garbage as CA":                    {put(otherCrt, otherKey, []byte("garbage")), "ca.crt contains no certificate"},
		"half of a CA":                     {put(otherCrt, otherKey, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")), "ca.crt: "},
		"another CA":                       {put(otherCrt, otherKey, other.PEM()), "ca.crt doesn't verify tls.crt"},
		"expired":                          {put(issue(testcert.Options{NotAfter: time.Now().Add(-time.Minute)})), "tls.crt expired at"},
		"not valid yet":                    {put(issue(testcert.Options{NotBefore: time.Now().Add(time.Hour)})), "isn't valid before"},
		"another name":                     {put(issue(testcert.Options{Names: []string{"example.com"}})), "isn't valid for localhost"},
		"for clients only":                 {put(issue(testcert.Options{ClientOnly: true})), "lack serverAuth"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTLSShard(t)
			s.annotate(agentwire.ArgumentsFile, s.arguments(wordsRequired...))
			served := s.issue(ca, testcert.Options{})
			first := s.run()
			c.put(s)
			status := s.waitForCertificate("the problem", func(c agentwire.Certificate) bool { return c.Error != "" })
			wantContains(t, "the error", status.Secrets.Certificate.Error, c.want)
			if status.PID != first.PID || status.Secrets.Certificate.SHA256 != served || status.Secrets.Certificate.Offered != "" {
				t.Errorf("status %+v, certificate %+v", status, status.Secrets.Certificate)
			}
			s.wantServed(clientConfig(t, ca, nil), served)
			wantProbes(t, s.shard)
			// The container starts with the last certificate that could be used.
			fill(t, s.loopback(), 10)
			s.stopContainer()
			nextSecond(s.lastStop().Unix())
			wantWarm(t, s.run(), 10)
			s.wantServed(clientConfig(t, ca, nil), served)
			next := s.issue(ca, testcert.Options{})
			s.waitUntilServed(next)
			s.wantServed(clientConfig(t, ca, nil), next)
		})
	}
}

func TestRestartServesWhatAReloadCannot(t *testing.T) {
	t.Parallel()
	first, second := testcert.NewCA("first"), testcert.NewCA("second")
	for name, c := range map[string]struct {
		words         []string
		before, after testcert.Options
		casBefore     []*testcert.CA
		want          string
		// rejected is only rejected after the restart.
		rejected *testcert.CA
	}{
		"RSA after ECDSA": {wordsRequired, testcert.Options{}, testcert.Options{RSA: true}, []*testcert.CA{first}, "whose key is of type RSA", nil},
		"ECDSA after RSA": {wordsRequired, testcert.Options{RSA: true}, testcert.Options{}, []*testcert.CA{first}, "whose key is of type ECDSA", nil},
		"removed CA":      {wordsClients, testcert.Options{}, testcert.Options{}, []*testcert.CA{first, second}, "memcached still accepts clients of CA CN=second", second},
	} {
		for _, version := range versions {
			t.Run(name+" with "+version, func(t *testing.T) {
				t.Parallel()
				s := newTLSShard(t)
				s.memcached = memcachedPath(version)
				s.annotate(agentwire.ArgumentsFile, s.arguments(c.words...))
				c.before.Names, c.after.Names = []string{tlsHost}, []string{tlsHost}
				crt, key := first.Issue(c.before)
				var cas []byte
				for _, ca := range c.casBefore {
					cas = append(cas, ca.PEM()...)
				}
				s.put(crt, key, cas)
				pid := s.run().PID
				fill(t, s.loopback(), 100)
				offered := s.issue(first, c.after)
				status := s.waitForCertificate("the required restart", func(c agentwire.Certificate) bool { return c.RestartRequired != "" })
				wantContains(t, "the reason", status.Secrets.Certificate.RestartRequired, c.want)
				if status.PID != pid || status.Secrets.Certificate.Offered != offered || status.Secrets.Certificate.Error != "" {
					t.Errorf("status %+v, certificate %+v", status, status.Secrets.Certificate)
				}
				if c.rejected != nil {
					s.wantServed(clientConfig(t, first, c.rejected), offered)
				}
				s.annotate(agentwire.RestartFile, "certificate")
				status = s.waitFor("the restart", func(status agentwire.Status) bool { return status.Restart == "certificate" && status.PID != pid })
				wantWarm(t, status, 100)
				if status.Secrets.Certificate.RestartRequired != "" || status.Secrets.Certificate.SHA256 != offered {
					t.Errorf("certificate %+v, want %s", status.Secrets.Certificate, offered)
				}
				s.wantServed(clientConfig(t, first, first), offered)
				if c.rejected != nil {
					s.wantRejected(clientConfig(t, first, c.rejected))
				}
			})
		}
	}
}

func TestPodWaitsForItsCertificate(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA("shards")
	s := newTLSShard(t)
	s.annotate(agentwire.ArgumentsFile, s.arguments(wordsRequired...))
	s.launch()
	for !strings.Contains(s.log.String(), "Waiting for a Secret") {
		time.Sleep(10 * time.Millisecond)
	}
	served := s.issue(ca, testcert.Options{})
	s.waitUntilServed(served)
	s.wantServed(clientConfig(t, ca, nil), served)
}

func TestPodWithoutItsCertificateFailsWithTheReason(t *testing.T) {
	t.Parallel()
	s := newTLSShard(t)
	s.annotate(agentwire.ArgumentsFile, s.arguments(wordsRequired...))
	s.launch()
	if code := s.exit(); code == 0 {
		t.Error("the agent exited with code 0")
	}
	wantContains(t, "the termination log", s.reason(), "the certificate for TLS can't be used: the Secret doesn't exist, or has no tls.crt")
}

func TestTLSIsNotSwitchedOnWithoutItsCertificate(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA("shards")
	s := newTLSShard(t)
	pid := s.run().PID
	fill(t, s.address(), 100)
	for _, c := range []struct {
		put  func()
		want string
	}{
		{func() {}, "the Secret doesn't exist, or has no tls.crt"},
		{func() { s.issue(ca, testcert.Options{Names: []string{"example.com"}}) }, "isn't valid for localhost"},
	} {
		c.put()
		s.waitForCertificate("the problem", func(certificate agentwire.Certificate) bool { return strings.Contains(certificate.Error, c.want) })
		s.annotate(agentwire.ArgumentsFile, s.arguments(wordsRequired...))
		status := s.waitFor("the rejection", func(status agentwire.Status) bool { return strings.Contains(status.ArgumentsError, c.want) })
		if status.PID != pid {
			t.Errorf("memcached was restarted: %+v", status)
		}
	}
	served := s.issue(ca, testcert.Options{})
	status := s.waitUntilServed(served)
	wantWarm(t, status, 100)
	s.wantServed(clientConfig(t, ca, nil), served)
}

func TestPermissiveModeCountsPlainConnections(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA("shards")
	s := newTLSShard(t)
	s.annotate(agentwire.ArgumentsFile, s.arguments(wordsPermissive...))
	s.issue(ca, testcert.Options{})
	s.run()
	var open []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", s.address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	secured, err := tls.Dial("tcp", s.address(), clientConfig(t, ca, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer secured.Close()
	for _, conn := range append(open, secured) {
		// A value that needs more than one read, in both directions.
		value := strings.Repeat("v", 500_000)
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := fmt.Fprintf(conn, "set k 0 0 %d\r\n%s\r\nget k\r\n", len(value), value); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("STORED\r\nVALUE k 0 %d\r\n%s\r\nEND\r\n", len(value), value)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	plain := func(n int64) {
		t.Helper()
		s.waitForCertificate(fmt.Sprintf("%d plain connections", n), func(c agentwire.Certificate) bool { return c.PlainConnections == n })
	}
	plain(3)
	for _, conn := range open {
		_ = conn.Close()
	}
	plain(0)
	if code, body, err := s.get("/status"); err != nil || code != 200 {
		t.Errorf("%d %s %v", code, body, err)
	}
}

// A client that resumes sessions fails with client certificates unless memcached has a session cache.
func TestClientWithACertificateResumesItsSession(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ca := testcert.NewCA("shards")
			s := newTLSShard(t)
			s.memcached = memcachedPath(version)
			s.annotate(agentwire.ArgumentsFile, s.arguments(wordsClients...))
			s.issue(ca, testcert.Options{})
			s.run()
			config := clientConfig(t, ca, ca)
			config.ClientSessionCache = tls.NewLRUClientSessionCache(8)
			for range 3 {
				if _, err := requestVersion(t.Context(), s.address(), config); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestPreflightAcceptsTLSWithoutASecret(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		for _, words := range [][]string{wordsRequired, wordsPermissive, wordsClients} {
			s := newShard(t)
			s.memcached = memcachedPath(version)
			s.wantPreflight(s.arguments(words...), version)
		}
	}
	s := newShard(t)
	if code, _, _ := s.preflight(s.arguments("-Z", "-o", "ssl_unknown=1")); code == 0 {
		t.Error("the preflight check accepted an unknown option")
	}
}

func TestPodsWithTLSHandOverTheirItems(t *testing.T) {
	t.Parallel()
	const size = 10_000
	ca := testcert.NewCA("shards")
	old, next, r := newPair(t)
	pods := map[*shard][]string{old: wordsRequired, next: wordsPermissive}
	const host = "127.0.0.1" // of the router
	for pod, words := range pods {
		pod.secret, pod.loopbackPort = filepath.Join(pod.dir, "secret"), freePort(t)
		makeDir(t, pod.secret)
		crt, key := ca.Issue(testcert.Options{Names: []string{host}})
		project(t, pod.secret, 0, map[string]string{"tls.crt": string(crt), "tls.key": string(key), "ca.crt": string(ca.PEM())})
		pod.annotate(agentwire.ArgumentsFile, pod.arguments(words...))
	}
	old.run()
	fill(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(old.loopbackPort)), size)
	for r.address() != old.address() {
		time.Sleep(5 * time.Millisecond)
	}
	next.launch()
	next.waitFor("the pod to wait for the items", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseReceiving })
	old.signal(syscall.SIGTERM)
	status := next.waitFor("the items", func(status agentwire.Status) bool { return status.Phase == agentwire.PhaseServing })
	if status.Start.Result != agentwire.StartHandedOver || status.Start.Items != size {
		t.Errorf("start %+v", status.Start)
	}
	config := clientConfig(t, ca, nil)
	config.ServerName = host
	for _, config := range []*tls.Config{config, nil} {
		if _, err := requestVersion(t.Context(), next.address(), config); err != nil {
			t.Error(err)
		}
	}
	if code := old.exit(); code != 0 {
		t.Error(errors.New(old.log.String()))
	}
}

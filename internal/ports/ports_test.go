package ports

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

// runner is a manager that isn't elected.
type runner struct {
	manager.Manager
	t       *testing.T
	address string
	stop    func()
}

func (r *runner) Add(runnable manager.Runnable) error {
	if runnable.(manager.LeaderElectionRunnable).NeedLeaderElection() {
		r.t.Errorf("%T waits for the election", runnable)
	}
	if server, ok := runnable.(*manager.Server); ok {
		r.address = server.Listener.Addr().String()
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- runnable.Start(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-stopped; err != nil {
			r.t.Error(err)
		}
		stopped <- nil
	}
	r.t.Cleanup(r.stop)
	return nil
}

func (*runner) GetConfig() *rest.Config     { return &rest.Config{} }
func (*runner) GetHTTPClient() *http.Client { return http.DefaultClient }
func (*runner) GetLogger() logr.Logger      { return logr.Discard() }

// port is one of the operator's two.
type port struct {
	url    string
	secure bool
	*runner
}

// ports serves both of them, with what they answer without a token.
func ports(t *testing.T) map[port]int {
	t.Helper()
	probes, metrics := &runner{t: t}, &runner{t: t}
	if err := errors.Join(serveProbes(&readiness{Manager: probes}, "127.0.0.1:0"), serveMetrics(metrics, "127.0.0.1:0", "")); err != nil {
		t.Fatal(err)
	}
	return map[port]int{
		{"http://" + probes.address + "/healthz", false, probes}:   http.StatusOK,
		{"https://" + metrics.address + "/metrics", true, metrics}: http.StatusUnauthorized,
	}
}

// answer returns the status of an answer to a request with a header, and the protocol. An empty conn is a new connection.
func (p port) answer(t *testing.T, conn net.Conn, http2 bool, header string) (status, protocol int) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: http2}
	defer transport.CloseIdleConnections()
	if conn != nil {
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url, nil)
	request.Header.Set("Accept", header)
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Errorf("%s: %v", p.url, err)
		return 0, 0
	}
	defer response.Body.Close()
	return response.StatusCode, response.ProtoMajor
}

// The first connection is the oldest one, so that it has no answer if timeouts have closed those of the flood.
func TestFloodOfAPodKeepsNoOtherFromTheOperator(t *testing.T) {
	for p, want := range ports(t) {
		dial := func(from string) net.Conn {
			t.Helper()
			conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", p.address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		first := dial("127.0.0.1")
		var flood []net.Conn
		for range 2 * MaxConnections {
			flood = append(flood, dial("127.0.0.2"))
		}
		for _, conn := range flood[:MaxConnections] {
			_, _ = io.Copy(io.Discard, conn)
		}
		for _, conn := range []net.Conn{first, nil} {
			if got, _ := p.answer(t, conn, false, "*/*"); got != want {
				t.Errorf("%s answers %d beside a flood, want %d", p.url, got, want)
			}
		}
	}
}

func TestLongHeadersAreRejected(t *testing.T) {
	for p, want := range ports(t) {
		for header, want := range map[string]int{strings.Repeat("a", 16<<10): http.StatusRequestHeaderFieldsTooLarge, strings.Repeat("a", MaxHeader-1<<10): want} {
			if got, _ := p.answer(t, nil, false, header); got != want {
				t.Errorf("%s answers a header of %d bytes with %d, want %d", p.url, len(header), got, want)
			}
		}
	}
}

// A connection with HTTP/2 can send many requests at once. What is bounded is what the server announces.
func TestAConnectionWithHTTP2HasFewRequests(t *testing.T) {
	for p, want := range ports(t) {
		if !p.secure {
			continue
		}
		if got, protocol := p.answer(t, nil, true, "*/*"); got != want || protocol != 2 {
			t.Errorf("%d by HTTP/%d, want %d by HTTP/2", got, protocol, want)
		}
		conn, err := tls.Dial("tcp", p.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, 9)
		if _, err := io.ReadFull(conn, frame); err != nil || frame[3] != 4 {
			t.Fatalf("%v; the first frame is of type %d, want settings", err, frame[3])
		}
		settings := make([]byte, int(frame[1])<<8|int(frame[2]))
		if _, err := io.ReadFull(conn, settings); err != nil {
			t.Fatal(err)
		}
		got := map[uint16]uint32{}
		for ; len(settings) > 0; settings = settings[6:] {
			got[binary.BigEndian.Uint16(settings)] = binary.BigEndian.Uint32(settings[2:])
		}
		const requests, frameSize = 3, 5
		if got[requests] != 4 || got[frameSize] != 16<<10 {
			t.Errorf("%d requests with frames of %d bytes", got[requests], got[frameSize])
		}
	}
}

func TestProbesAnswerByTheChecks(t *testing.T) {
	r := &runner{t: t}
	mgr := &readiness{r, map[string]healthz.Checker{}}
	if err := serveProbes(mgr, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var problem error
	if err := mgr.AddReadyzCheck("cache", func(*http.Request) error { return problem }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path    string
		problem error
		want    int
	}{
		{"/readyz", nil, http.StatusOK}, {"/readyz/cache", nil, http.StatusOK}, {"/readyz", io.EOF, http.StatusInternalServerError}, {"/readyz/cache", io.EOF, http.StatusInternalServerError},
		{"/healthz", io.EOF, http.StatusOK}, {"/healthz/ping", io.EOF, http.StatusOK}, {"/metrics", nil, http.StatusNotFound},
	} {
		problem = c.problem
		if got, _ := (port{url: "http://" + r.address + c.path}).answer(t, nil, false, "*/*"); got != c.want {
			t.Errorf("%s answers %d with the problem %v, want %d", c.path, got, c.problem, c.want)
		}
	}
}

func TestAProbeThatWaitsDelaysNoStop(t *testing.T) {
	r, waits, answered := &runner{t: t}, make(chan struct{}), make(chan int)
	check := func(probe *http.Request) error {
		close(waits)
		<-probe.Context().Done()
		return probe.Context().Err()
	}
	if err := serveProbes(&readiness{r, map[string]healthz.Checker{"cache": check}}, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go func() {
		status, _ := port{url: "http://" + r.address + "/readyz"}.answer(t, nil, false, "*/*")
		answered <- status
	}()
	<-waits
	r.stop()
	if got := <-answered; got != http.StatusInternalServerError {
		t.Errorf("the answer is %d", got)
	}
}

func TestMetricsAreServedWithTheCertificateOfTheirFolder(t *testing.T) {
	ca, dir := testcert.NewCA("metrics"), t.TempDir()
	issue := func(name string) {
		t.Helper()
		crt, key := ca.Issue(testcert.Options{Names: []string{name}})
		for file, content := range map[string][]byte{"tls.crt": crt, "tls.key": key} {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	issue("metrics.example")
	r := &runner{t: t}
	if err := serveMetrics(r, "127.0.0.1:0", dir); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	connect := func(name string) error {
		conn, err := tls.Dial("tcp", r.address, &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12})
		if err != nil {
			return err
		}
		return conn.Close()
	}
	if err := connect("metrics.example"); err != nil {
		t.Error(err)
	}
	issue("renewed.example")
	if err := wait.PollUntilContextCancel(t.Context(), 10*time.Millisecond, true, func(context.Context) (bool, error) {
		return connect("renewed.example") == nil, nil
	}); err != nil {
		t.Error(err)
	}
}

package copy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/clusterdns"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// ioTimeout is how long a shard may send nothing, or take for what is written at a
	// time, before its connection counts as lost.
	ioTimeout = 30 * time.Second
	// dialTimeout of one attempt, and of its handshake.
	dialTimeout = 5 * time.Second
	// maxTLSWrite is less than the 16 KiB of a TLS record.
	maxTLSWrite = 8000
	// remoteError is the operation of a net.OpError that crypto/tls returns for an alert.
	remoteError = "remote error"
)

// conn is a connection to a shard.
type conn struct {
	protocol.BoundedConn
	r *bufio.Reader // reads from this conn
	// maxWrite bounds what writeRequests writes at a time, in bytes; 0 means no limit.
	maxWrite int
	// stats, clock and time are the server's general stats, its clock and its Unix time when the connection was opened.
	stats protocol.Stats
	clock protocol.Clock
	time  int64
}

func newConn(c net.Conn, buffer int) *conn {
	wrapped := &conn{BoundedConn: protocol.BoundedConn{Conn: c, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout}}
	wrapped.r = bufio.NewReaderSize(wrapped, buffer)
	return wrapped
}

// Write lets the next answer take ioTimeout again: memcached keeps answers while it waits for the rest of a value.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.BoundedConn.Write(p)
	if err == nil {
		err = c.SetReadDeadline(time.Now().Add(ioTimeout))
	}
	return n, err
}

// writeRequests writes requests that end at these offsets of the text.
//
// With TLS, memcached can wait for more data although it has received a request, if one record contained the first
// part of the request after others (1.6.45, and often before 1.6.39). So what is written at a time has whole requests,
// and fits into a record unless it is a single one.
func (c *conn) writeRequests(text []byte, ends []int) error {
	if c.maxWrite == 0 {
		_, err := c.Write(text)
		return err
	}
	for from := 0; from < len(text); {
		to := from
		for len(ends) > 0 && (to == from || ends[0]-from <= c.maxWrite) {
			to, ends = ends[0], ends[1:]
		}
		if _, err := c.Write(text[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// heads writes some requests and calls visit with the first line of each answer, which has no other.
func (c *conn) heads(text []byte, requests int, visit func(i int, head protocol.Head)) error {
	if _, err := c.Write(text); err != nil {
		return err
	}
	for i := range requests {
		head, err := protocol.ReadHead(c.r)
		if err != nil {
			return err
		}
		visit(i, head)
	}
	return nil
}

// closeAfter closes the connection when ctx is done, until stop is called.
func (c *conn) closeAfter(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.Close() })
}

// target is a shard to connect to.
type target struct {
	ordinal int
	address string
	// tls is nil for a plain connection; its files are in tlsDir.
	tls    *wire.TLS
	tlsDir string
	// usersDir has the users that may log in; empty if the server requires no login.
	usersDir    string
	dialContext protocol.DialContext
	now         func() time.Time
}

func newTarget(task wire.Task, ordinal int, o Options) target {
	t := target{ordinal: ordinal, address: task.Servers[ordinal], tls: task.TLS, tlsDir: o.TLSDir, dialContext: o.DialContext.OrTCP(), now: o.Now}
	if task.Login {
		t.usersDir = o.UsersDir
	}
	return t
}

func (t target) dial(ctx context.Context, buffer int) (*conn, error) {
	raw, maxWrite, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	c := newConn(raw, buffer)
	c.maxWrite = maxWrite
	if err = t.logIn(raw); err == nil {
		err = t.greet(c)
	}
	if err != nil {
		_ = raw.Close()
		if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == remoteError {
			return nil, t.rejected(alert.Err)
		}
		return nil, err
	}
	return c, nil
}

// logIn logs in as the first user that the server accepts: while passwords rotate, the Secret can have a user that the
// server doesn't know yet, or not any more.
func (t target) logIn(raw net.Conn) error {
	if t.usersDir == "" {
		return nil
	}
	entries, err := os.ReadDir(t.usersDir)
	if err != nil {
		return err
	}
	err = errors.New("the Secret of spec.auth has no users")
	_ = raw.SetDeadline(time.Now().Add(dialTimeout)) // a request fails too
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") { // of the kubelet
			continue
		}
		password, readErr := os.ReadFile(filepath.Join(t.usersDir, entry.Name()))
		if readErr != nil {
			return readErr
		}
		if err = protocol.Login(raw, entry.Name(), strings.TrimRight(string(password), "\r\n")); err == nil || !protocol.IsAnswer(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("logging in: %w", err)
	}
	return nil
}

// connect returns a connection, and how many bytes to write to it at a time; 0 means no limit.
func (t target) connect(ctx context.Context) (raw net.Conn, maxWrite int, err error) {
	if raw, err = t.dialTCP(ctx); err != nil || t.tls == nil {
		return raw, 0, err
	}
	secured, err := t.secure(ctx, raw)
	if err == nil {
		return secured, maxTLSWrite, nil
	}
	_ = raw.Close()
	if _, isPlain := errors.AsType[tls.RecordHeaderError](err); isPlain {
		if t.tls.AllowPlain {
			raw, err = t.dialTCP(ctx)
			return raw, 0, err
		}
		err = errors.New("it answers without TLS; wait until the Memcached is Ready, and its clients leave a connection free")
	}
	return nil, 0, err
}

func (t target) dialTCP(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return t.dialContext(ctx, "tcp", clusterdns.Absolute(t.address))
}

// secure returns a connection with TLS. It reads the files each time, since they can be replaced while the
// task runs.
func (t target) secure(ctx context.Context, raw net.Conn) (net.Conn, error) {
	name := t.tls.ServerNames[t.ordinal]
	// Go would otherwise split the first writes into smaller records, see writeRequests.
	config := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}
	switch ca, err := os.ReadFile(filepath.Join(t.tlsDir, "ca.crt")); {
	case err == nil:
		config.RootCAs = rootsOf(ca)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("reading the CA: %w; correct the Secret of spec.tls", err)
	}
	if t.tls.ClientCertificate {
		pair, err := tls.LoadX509KeyPair(filepath.Join(t.tlsDir, "tls.crt"), filepath.Join(t.tlsDir, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w; correct the Secret of spec.tls", err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	secured := tls.Client(raw, config)
	err := secured.HandshakeContext(ctx)
	if _, rejected := errors.AsType[*tls.CertificateVerificationError](err); rejected {
		return nil, fmt.Errorf("its certificate isn't accepted for %s: %w; correct the Secret of spec.tls", name, err)
	}
	return secured, err
}

// rootsOf returns the CAs of a Secret, and nil, those of the system, if its ca.crt is empty: the agent, too, takes that for
// absent.
func rootsOf(ca []byte) *x509.CertPool {
	if len(bytes.TrimSpace(ca)) == 0 {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return pool
}

// rejected returns the error of a server that rejects a connection by an alert after the handshake: with TLS 1.3, it
// verifies the client only then.
func (t target) rejected(alert error) error {
	if t.tls.ClientCertificate {
		return fmt.Errorf("it rejects the client certificate: %w; correct the Secret of spec.tls", alert)
	}
	return fmt.Errorf("it requires a client certificate: %w; wait until the Memcached is Ready", alert)
}

// greet reads the stats: a proxy may accept a connection and then close it, and a
// server that requires authentication rejects the request. 1.6.45 closes the
// connection after mn.
func (t target) greet(c *conn) (err error) {
	_ = c.SetDeadline(time.Now().Add(dialTimeout)) // the write fails too
	_, _ = c.Conn.Write([]byte("stats\r\n"))       // reading then fails too, and may get the alert that explains it
	if c.stats, err = protocol.ReadStats(bufio.NewReaderSize(c.Conn, protocol.MaxLine)); err == nil {
		now := t.now()
		c.clock, err = protocol.ClockOf(c.stats, now)
		c.time = c.clock.Unix(now)
	}
	if err != nil {
		return fmt.Errorf("reading its stats: %w", err)
	}
	return c.SetDeadline(time.Time{})
}

package secrets

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

const testHost = "cache-0.team.svc"

func usersWith(password string) map[string][]byte {
	return map[string][]byte{"shop": []byte(password + "\n")}
}

// issue returns a certificate for the shard.
func issue(ca *testcert.CA, o testcert.Options) map[string][]byte {
	o.Names = []string{testHost}
	crt, key := ca.Issue(o)
	return map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": ca.PEM()}
}

func parse(t *testing.T, content map[string][]byte) *certificate {
	t.Helper()
	c, err := parseCertificate(content["tls.crt"], content["tls.key"], content["ca.crt"], testHost, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// memcached is a running one with Secrets. It runs in a bubble of synctest.
type memcached struct {
	*Set
	t   *testing.T
	dir string
	log *strings.Builder
	// refresh is why it doesn't load its certificate; lazy ones don't read their users again.
	refresh error
	lazy    bool
	// full is whether clients use all connections.
	full atomic.Bool
	// hung is not nil while it answers nothing, and closed when it continues.
	hung chan struct{}
	done chan struct{}
	// server is how the agent connects to it.
	server protocol.Server

	mu          sync.Mutex // its users and its certificate are read and replaced by different goroutines
	certificate tls.Certificate
	users       map[string]string
	// results are those of attempts that have finished.
	results chan Loaded
}

// start starts a memcached with its arguments.
func start(t *testing.T, volumes Volumes, arguments ...string) *memcached {
	t.Helper()
	m := &memcached{t: t, dir: t.TempDir(), log: &strings.Builder{}, results: make(chan Loaded, 2)}
	m.Set = NewSet(volumes, m.dir, testHost, 11215, slog.New(slog.NewTextHandler(m.log, nil)))
	m.restart(arguments...)
	t.Cleanup(func() { close(m.done) })
	return m
}

func (m *memcached) restart(arguments ...string) {
	m.t.Helper()
	prepared, err := m.Prepare(arguments, time.Now())
	if err != nil {
		m.t.Fatal(err)
	}
	if m.done != nil {
		close(m.done)
	}
	m.done = make(chan struct{})
	m.load()
	m.readUsers()
	_, m.server = prepared.Line()
	m.server.DialContext = m.dial
	m.Started(prepared, Memcached{Server: m.server, Command: m.refreshCertificates, Signal: m.signal, Done: m.done})
}

// load reads the certificate, if there is one.
func (m *memcached) load() {
	path := filepath.Join(m.dir, combinedFile)
	if c, err := tls.LoadX509KeyPair(path, path); err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.certificate = c
	}
}

func (m *memcached) readUsers() {
	users := map[string]string{}
	if read, err := restoreUsers(m.dir, ""); err == nil {
		for _, u := range read.list {
			users[u.name] = u.password
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users = users
}

// await returns an error if memcached still hangs when ctx ends.
func (m *memcached) await(ctx context.Context) error {
	if m.hung == nil {
		return nil
	}
	select {
	case <-m.hung:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *memcached) refreshCertificates(ctx context.Context, _ func(*protocol.Conn, context.Context) error) error {
	if err := m.await(ctx); err != nil {
		return err
	}
	if m.refresh == nil {
		m.load()
	}
	return m.refresh
}

func (m *memcached) signal(os.Signal) error {
	if !m.lazy {
		time.AfterFunc(time.Second, m.readUsers)
	}
	return nil
}

// dial answers one login at the address for the agent, and one handshake at that for clients.
func (m *memcached) dial(ctx context.Context, _, address string) (net.Conn, error) {
	if err := m.await(ctx); err != nil {
		return nil, err
	}
	client, server := fake.Pipe()
	go func() {
		defer server.Close()
		if m.full.Load() {
			_, _ = io.WriteString(server, "ERROR Too many open connections\r\n")
			return
		}
		if address != m.server.Address {
			m.mu.Lock()
			certificate := m.certificate
			m.mu.Unlock()
			_ = tls.Server(server, &tls.Config{Certificates: []tls.Certificate{certificate}}).Handshake()
			return
		}
		r := bufio.NewReader(server)
		_, _ = r.ReadString('\n')
		value, _ := r.ReadString('\n')
		name, password, _ := strings.Cut(strings.TrimSpace(value), " ")
		answer := "CLIENT_ERROR authentication failure\r\n"
		m.mu.Lock()
		has := m.users[name] == password
		m.mu.Unlock()
		if has {
			answer = "STORED\r\n"
		}
		_, _ = io.WriteString(server, answer)
	}()
	return client, nil
}

// poll lets the Secrets be read for a time, and what has changed be loaded.
func (m *memcached) poll(d time.Duration) {
	for end := time.Now().Add(d); !time.Now().After(end); <-time.After(mountInterval) {
		m.Poll(time.Now())
		m.Load(time.Now(), func(l Loaded) { m.results <- l })
		synctest.Wait()
		for len(m.results) > 0 {
			(<-m.results).Record()
		}
	}
}

// soon is enough for a memcached that is not slow.
const soon = 10 * time.Second

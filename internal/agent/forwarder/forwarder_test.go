package forwarder

import (
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/connlimit"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
)

// pipeListener accepts connections in memory.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{make(chan net.Conn), make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { close(l.closed); return nil }

func (l *pipeListener) Addr() net.Addr { return nil }

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	from string
}

func (c addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1} }

func (l *pipeListener) dial(from string) net.Conn {
	client, server := fake.Pipe()
	l.conns <- addressed{server, from}
	return client
}

// halfConn stands for a connection to memcached, which closes it when the client has.
type halfConn struct{ net.Conn }

func (c halfConn) CloseWrite() error { return c.Close() }

// start starts a forwarder with two places, to a memcached that returns what it gets. The channel receives the address
// of each connection to it.
func start(idle time.Duration) (*Forwarder, *pipeListener, chan string) {
	listener, dialed := newPipeListener(), make(chan string, 3)
	f := &Forwarder{listener: &connlimit.Listener{Listener: listener, Limit: 2}, limit: 2, release: func() {}, withTLS: "tls", without: "plain", idle: idle,
		dial: func(address string) (net.Conn, error) {
			dialed <- address
			client, server := fake.Pipe()
			go func() { _, _ = io.Copy(server, server) }()
			return halfConn{client}, nil
		}}
	f.serve(slog.New(slog.DiscardHandler))
	return f, listener, dialed
}

func wantEcho(t *testing.T, conn net.Conn, request string) {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len(request))
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != request {
		t.Fatalf("a connection with requests answers %q, %v", answer, err)
	}
}

func wantConnections(t *testing.T, f *Forwarder, want Connections) {
	t.Helper()
	synctest.Wait()
	if want.LastPlain.IsZero() {
		want.LastPlain = time.Now()
	}
	want.LastPlain = want.LastPlain.UTC()
	if got := f.Connections(); got != want {
		t.Errorf("the connections are %+v, want %+v", got, want)
	}
}

// memcached doesn't know of a connection before its first byte, and can't close it.
func TestForwarderClosesOnlyConnectionsWithoutAFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 30 * time.Second
		f, listener, dialed := start(idle)
		began := time.Now()
		wantConnections(t, f, Connections{LastPlain: began})
		<-time.After(time.Hour)
		wantConnections(t, f, Connections{LastPlain: began})
		began = time.Now()
		active, silent := listener.dial("127.0.0.1"), listener.dial("127.0.0.1")
		wantEcho(t, active, "mn\r\n")
		if _, err := silent.Read(make([]byte, 1)); err == nil || time.Since(began) != idle {
			t.Fatalf("a silent connection is closed after %s: %v", time.Since(began), err)
		}
		<-time.After(2 * idle)
		wantEcho(t, active, "mn\r\n")
		encrypted := listener.dial("127.0.0.1") // in the place of the silent one
		wantEcho(t, encrypted, "\x16\x03")
		if first, second := <-dialed, <-dialed; first != "plain" || second != "tls" {
			t.Errorf("the connections lead to %s and %s", first, second)
		}
		wantConnections(t, f, Connections{Forwarded: 2, Plain: 1, AllPlain: 1, LastPlain: began})
		_ = active.Close()
		closed := time.Now()
		wantConnections(t, f, Connections{Forwarded: 1, AllPlain: 1, LastPlain: closed})
		<-time.After(time.Hour)
		_ = encrypted.Close()
		wantConnections(t, f, Connections{AllPlain: 1, LastPlain: closed})
		f.Close()
	})
}

// Without a first byte, there was no login and no certificate. memcached sees none of these connections.
func TestSilentAndSurplusClientsLetNoOtherWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, listener, _ := start(0)
		defer f.Close()
		var silent []net.Conn
		for range 4 {
			silent = append(silent, listener.dial("127.0.0.1"))
		}
		wantConnections(t, f, Connections{Silent: 2, Refused: 2})
		var clients []net.Conn
		for range 2 {
			clients = append(clients, listener.dial("127.0.0.2"))
			wantEcho(t, clients[0], "mn\r\n")
			wantEcho(t, clients[len(clients)-1], "mn\r\n")
		}
		wantConnections(t, f, Connections{Silent: 1, Forwarded: 2, Plain: 2, AllPlain: 2, Refused: 3})
		surplus := listener.dial("127.0.0.2")
		if _, err := io.WriteString(surplus, "m"); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(surplus); string(answer) != refusal {
			t.Errorf("a client more than memcached may have reads %q, %v", answer, err)
		}
		wantConnections(t, f, Connections{Silent: 1, Forwarded: 2, Plain: 2, AllPlain: 2, Refused: 4})
		for _, conn := range append(silent, clients...) {
			_ = conn.Close()
		}
		wantConnections(t, f, Connections{AllPlain: 2, Refused: 4})
	})
}

// The memory limit counts each of the connections, and not as many silent ones in addition.
func TestSilentClientsAreBoundedForAnyNumberOfConnections(t *testing.T) {
	for connections, silent := range map[int64]int{64: 64, 100_000: maxSilent} {
		f, err := Start([]string{"-Z", "-l", "notls:127.0.0.1", "-p", "0", "-c", strconv.FormatInt(connections, 10)}, 1, "", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if f.limit != connections || f.listener.Limit != silent {
			t.Errorf("of %d connections, %d are forwarded and %d can be silent, want %d", connections, f.limit, f.listener.Limit, silent)
		}
	}
}

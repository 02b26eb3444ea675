package forwarder

import (
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"
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

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// halfConn stands for a connection to memcached, which closes it when the client has.
type halfConn struct{ net.Conn }

func (c halfConn) CloseWrite() error { return c.Close() }

// memcached doesn't know of a connection before its first byte, and can't close it.
func TestForwarderClosesOnlyConnectionsWithoutAFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 30 * time.Second
		listener, dialed := newPipeListener(), make(chan string, 3)
		f := &Forwarder{listener: listener, tls: "tls", plain: "plain", idle: idle, slots: make(chan struct{}, 2),
			dial: func(address string) (net.Conn, error) {
				dialed <- address
				client, server := net.Pipe()
				go func() { _, _ = io.Copy(server, server) }()
				return halfConn{client}, nil
			}}
		go f.serve(slog.New(slog.DiscardHandler))
		echoes := func(conn net.Conn, request, address string) {
			t.Helper()
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			answer := make([]byte, len(request))
			if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != request {
				t.Fatalf("a connection with requests answers %q, %v", answer, err)
			}
			if address != "" && <-dialed != address {
				t.Errorf("it does not lead to %s", address)
			}
		}
		began := time.Now()
		active, silent := listener.dial(), listener.dial()
		echoes(active, "mn\r\n", "plain")
		if _, err := silent.Read(make([]byte, 1)); err == nil || time.Since(began) != idle {
			t.Fatalf("a silent connection is closed after %s: %v", time.Since(began), err)
		}
		<-time.After(2 * idle)
		echoes(active, "mn\r\n", "")
		encrypted := listener.dial() // in the slot of the silent one
		echoes(encrypted, "\x16\x03", "tls")
		if n := f.PlainConnections(); n != 1 {
			t.Errorf("%d connections without TLS", n)
		}
		for _, conn := range []net.Conn{active, encrypted} {
			_ = conn.Close()
		}
		f.Close()
	})
}

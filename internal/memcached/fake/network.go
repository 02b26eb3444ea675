package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Network connects clients and servers in memory, as TCP does: what one side has written doesn't wait for the
// other side to read it. The zero value is a network without servers.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	conns     []net.Conn
	closed    bool
}

// Listen returns the listener of an address. The next one of the same address replaces it.
func (n *Network) Listen(address string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{network: n, address: addr(address), accept: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[address] = l
	return l
}

// DialContext connects to a listener, from an address that all clients share.
func (n *Network) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	refused := l == nil || n.closed
	n.mu.Unlock()
	if refused {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: addr(address), Err: syscall.ECONNREFUSED}
	}
	client, server := pair("10.0.0.1:1000", l.address)
	n.mu.Lock()
	n.conns = append(n.conns, client, server)
	n.mu.Unlock()
	var err error
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		err = &net.OpError{Op: "dial", Net: "tcp", Addr: l.address, Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return nil, errors.Join(err, client.Close())
}

// Close closes all connections and listeners.
func (n *Network) Close() {
	n.mu.Lock()
	conns, listeners := n.conns, n.listeners
	n.conns, n.listeners, n.closed = nil, nil, true
	n.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	for _, c := range conns {
		_ = c.Close()
	}
}

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

type listener struct {
	network *Network
	address addr
	accept  chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accept:
		return conn, nil
	case <-l.closed:
		return nil, fmt.Errorf("accepting at %s: %w", l.address, net.ErrClosed)
	}
}

func (l *listener) Addr() net.Addr { return l.address }

func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		if l.network.listeners[string(l.address)] == l {
			delete(l.network.listeners, string(l.address))
		}
		close(l.closed)
	})
	return nil
}

// end is one side of a connection. Its errors are those of TCP, which lets a side whose peer has closed the connection set
// deadlines. net.Pipe refuses that, so that a call would fail or not depending on which goroutine runs first.
type end struct {
	net.Conn
	local, remote addr
	closed        atomic.Bool
}

func (e *end) Close() error {
	e.closed.Store(true)
	return e.Conn.Close()
}

func (e *end) Read(p []byte) (int, error) {
	n, err := e.Conn.Read(p)
	return n, e.asTCP(err, io.EOF)
}

func (e *end) Write(p []byte) (int, error) {
	n, err := e.Conn.Write(p)
	return n, e.asTCP(err, syscall.EPIPE)
}

func (e *end) SetDeadline(t time.Time) error      { return e.asTCP(e.Conn.SetDeadline(t), nil) }
func (e *end) SetReadDeadline(t time.Time) error  { return e.asTCP(e.Conn.SetReadDeadline(t), nil) }
func (e *end) SetWriteDeadline(t time.Time) error { return e.asTCP(e.Conn.SetWriteDeadline(t), nil) }

// asTCP returns an error of a pipe as that of TCP, which is left if the other side has closed the connection.
func (e *end) asTCP(err, left error) error {
	switch {
	case !errors.Is(err, io.ErrClosedPipe):
		return err
	case e.closed.Load():
		return net.ErrClosed
	}
	return left
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

// Pipe returns the two sides of a connection.
func Pipe() (client, server net.Conn) { return pair("10.0.0.1:1000", "10.0.0.2:1000") }

func pair(from, to addr) (client, server net.Conn) {
	client, ofClient := net.Pipe()
	server, ofServer := net.Pipe()
	go pump(ofServer, ofClient)
	go pump(ofClient, ofServer)
	return &end{Conn: client, local: from, remote: to}, &end{Conn: server, local: to, remote: from}
}

// pump passes on what it reads, and closes both once one of them is closed and the other has everything. If the other is
// closed, what it has written comes first: the pump of that direction closes both.
func pump(to, from net.Conn) {
	var mu sync.Mutex
	var buffer []byte
	filled := make(chan struct{}, 1)
	go func() {
		for range filled {
			for {
				mu.Lock()
				text := buffer
				buffer = nil
				mu.Unlock()
				if len(text) == 0 {
					break
				}
				if _, err := to.Write(text); err != nil {
					return
				}
			}
		}
		_ = to.Close()
		_ = from.Close()
	}()
	defer close(filled)
	chunk := make([]byte, 64<<10)
	for {
		n, err := from.Read(chunk)
		mu.Lock()
		buffer = append(buffer, chunk[:n]...)
		mu.Unlock()
		select {
		case filled <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

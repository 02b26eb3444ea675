package fake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
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

// end is one side of a connection.
type end struct {
	net.Conn
	local, remote addr
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

// pair returns the two sides of a connection.
func pair(from, to addr) (client, server net.Conn) {
	client, ofClient := net.Pipe()
	server, ofServer := net.Pipe()
	go pump(ofServer, ofClient)
	go pump(ofClient, ofServer)
	return &end{client, from, to}, &end{server, to, from}
}

// pump passes on what it reads, and closes both once one of them is closed and the other has everything.
func pump(to, from net.Conn) {
	var mu sync.Mutex
	var buffer []byte
	filled := make(chan struct{}, 1)
	go func() {
		defer to.Close()
		defer from.Close()
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

package agent

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
)

const (
	// handshake is the first byte of a client with TLS. No request of memcached begins with it.
	handshake = 0x16
	// forwarderMemory is what a forwarded connection costs the agent, in bytes.
	forwarderMemory = 24 << 10
	// forwardTimeout bounds the connection to memcached, which is in the same pod.
	forwardTimeout = 5 * time.Second
)

// forwarder accepts clients with and without TLS at one port, which memcached can't, while clients are
// migrated.
type forwarder struct {
	listener net.Listener
	dial     func(address string) (net.Conn, error)
	// tls and plain are memcached's addresses.
	tls, plain string
	// idle bounds the wait for the first byte, as memcached's idle_timeout bounds that for all others; 0 is no bound.
	idle time.Duration
	// slots bounds the connections: each has one element.
	slots            chan struct{}
	plainConnections atomic.Int64
}

// close ends the listener. The connections end with memcached's.
func (f *forwarder) close() {
	if f != nil {
		_ = f.listener.Close()
		memory.Limit(0)
	}
}

func (f *forwarder) serve() {
	for {
		f.slots <- struct{}{}
		conn, err := f.listener.Accept()
		switch {
		case err == nil:
			go func() {
				defer func() { <-f.slots }()
				f.forward(conn)
			}()
			continue
		case errors.Is(err, net.ErrClosed):
			return
		}
		<-f.slots
		time.Sleep(100 * time.Millisecond) // such as too many open files
	}
}

// forward copies in both directions until memcached or the client closes its connection.
func (f *forwarder) forward(client net.Conn) {
	defer client.Close()
	first := make([]byte, 1)
	if f.idle > 0 {
		_ = client.SetReadDeadline(time.Now().Add(f.idle))
	}
	if _, err := io.ReadFull(client, first); err != nil {
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	address := f.tls
	if first[0] != handshake {
		address = f.plain
		f.plainConnections.Add(1)
		defer f.plainConnections.Add(-1)
	}
	server, err := f.dial(address)
	if err != nil {
		if tcp, ok := client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as from a port without a listener
		}
		return
	}
	defer server.Close()
	if _, err := server.Write(first); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	_, _ = io.Copy(server, client)
	if half, ok := server.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // memcached answers what it has read, and closes
	}
	<-done
}

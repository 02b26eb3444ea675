// Package forwarder accepts clients with and without TLS at one port, which memcached can't, while clients are
// migrated.
package forwarder

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/connlimit"
)

const (
	// handshake is the first byte of a client with TLS. No request of memcached begins with it.
	handshake = 0x16
	// connectionMemory is what a forwarded connection costs the agent, in bytes.
	connectionMemory = 24 << 10
	// dialTimeout bounds the connection to memcached, which is in the same pod.
	dialTimeout = 5 * time.Second
)

// Forwarder accepts the clients of one memcached.
type Forwarder struct {
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

// Start accepts clients if memcached's arguments require a forwarder, and returns nil if they don't. loopbackPort is
// that of memcached with TLS, and plain its address without.
func Start(arguments []string, loopbackPort int, plain string, log *slog.Logger) (*Forwarder, error) {
	mode := cmdline.TLSModeOf(arguments)
	if !mode.On || !mode.Plain {
		return nil, nil
	}
	listener, err := net.Listen("tcp", ":"+mode.Port)
	if err != nil {
		return nil, fmt.Errorf("listening for clients: %w", err)
	}
	limit := cmdline.Connections(arguments)
	memory.Limit(Memory(arguments))
	dial := func(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, dialTimeout) }
	f := &Forwarder{listener: listener, dial: dial, tls: mode.Address("127.0.0.1", loopbackPort),
		plain: plain, idle: cmdline.IdleTimeout(arguments), slots: make(chan struct{}, limit)}
	go f.serve(log)
	return f, nil
}

// Memory returns how much memory a forwarder needs at most with memcached's arguments, in bytes.
func Memory(arguments []string) int64 {
	if mode := cmdline.TLSModeOf(arguments); !mode.On || !mode.Plain {
		return 0
	}
	return cmdline.Connections(arguments) * connectionMemory
}

// PlainConnections returns how many clients are connected without TLS.
func (f *Forwarder) PlainConnections() int64 { return f.plainConnections.Load() }

// Close ends the listener. The connections end with memcached's.
func (f *Forwarder) Close() {
	if f != nil {
		_ = f.listener.Close()
		memory.Limit(0)
	}
}

func (f *Forwarder) serve(log *slog.Logger) {
	connlimit.Serve(f.listener, log, func(conn net.Conn) {
		f.slots <- struct{}{}
		go func() {
			defer func() { <-f.slots }()
			f.forward(conn)
		}()
	})
}

// forward copies in both directions until memcached or the client closes its connection.
func (f *Forwarder) forward(client net.Conn) {
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

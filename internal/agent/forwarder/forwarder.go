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
	// connectionMemory is what a forwarded connection costs the agent and the kernel, in bytes.
	connectionMemory = 24 << 10
	// maxSilent bounds the connections without a first byte. Each costs 6 KiB, with the kernel's.
	maxSilent = 1024
	// dialTimeout bounds the connection to memcached, which is in the same pod.
	dialTimeout = 5 * time.Second
	// refusal is what memcached answers, too.
	refusal = "ERROR Too many open connections\r\n"
)

// Forwarder accepts the clients of one memcached. It closes silent clients when there are too many, and refuses others
// when it forwards as many connections as memcached may have: memcached sees neither, so the agent counts them.
type Forwarder struct {
	listener *connlimit.Listener
	dial     func(address string) (net.Conn, error)
	// withTLS and without are memcached's addresses.
	withTLS, without string
	// idle bounds the wait for the first byte, as memcached's idle_timeout bounds that for all others; 0 is no bound.
	idle time.Duration
	// limit is how many connections it forwards at most.
	limit int64
	// release returns the memory for the connections.
	release func()

	forwarded, plain, allPlain, refused atomic.Int64
	// lastPlain is in seconds of Unix time.
	lastPlain atomic.Int64
}

// Connections are numbers of clients' connections.
type Connections struct {
	// Silent ones have sent nothing yet. Forwarded ones are connected to memcached, of which Plain are without TLS.
	Silent, Forwarded, Plain int64
	// AllPlain is how many without TLS there were since the start.
	AllPlain int64
	// LastPlain is when one without TLS was last opened or closed, or the start: what was before is unknown.
	LastPlain time.Time
	// Refused is how many were refused since the start, or closed because they were silent.
	Refused int64
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
	f := &Forwarder{release: memory.Use(Memory(arguments)), listener: &connlimit.Listener{Listener: listener, Limit: int(min(limit, maxSilent))}, limit: limit, dial: dial,
		withTLS: mode.Address("127.0.0.1", loopbackPort), without: plain, idle: cmdline.IdleTimeout(arguments)}
	f.serve(log)
	return f, nil
}

// Memory returns how much memory a forwarder needs at most with memcached's arguments, in bytes.
func Memory(arguments []string) int64 {
	if mode := cmdline.TLSModeOf(arguments); !mode.On || !mode.Plain {
		return 0
	}
	return cmdline.Connections(arguments) * connectionMemory
}

// Connections returns how many connections clients have.
func (f *Forwarder) Connections() Connections {
	silent, closed := f.listener.Counts()
	return Connections{
		Silent: silent, Forwarded: f.forwarded.Load(), Plain: f.plain.Load(), AllPlain: f.allPlain.Load(),
		LastPlain: time.Unix(f.lastPlain.Load(), 0).UTC(), Refused: f.refused.Load() + closed,
	}
}

// Close ends the listener. The connections end with memcached's.
func (f *Forwarder) Close() {
	if f != nil {
		_ = f.listener.Close()
		f.release()
	}
}

// dial connects on a goroutine of its own, with whose end the stack is free that a connect needs: 4 KiB.
func dial(address string) (server net.Conn, err error) {
	dialed := make(chan struct{})
	go func() {
		defer close(dialed)
		server, err = net.DialTimeout("tcp", address, dialTimeout)
	}()
	<-dialed
	return server, err
}

func (f *Forwarder) serve(log *slog.Logger) {
	f.countPlain(0)
	go connlimit.Serve(f.listener, log, func(conn net.Conn) { go f.accept(conn) })
}

// accept waits for the first byte of a client.
func (f *Forwarder) accept(silent net.Conn) {
	first := make([]byte, 1)
	if f.idle > 0 {
		_ = silent.SetReadDeadline(time.Now().Add(f.idle))
	}
	if _, err := io.ReadFull(silent, first); err != nil {
		_ = silent.Close()
		return
	}
	// Not the listener's own type, from which the kernel couldn't copy without the agent.
	client := connlimit.Keep(silent)
	defer client.Close()
	_ = client.SetReadDeadline(time.Time{})
	defer f.forwarded.Add(-1)
	if f.forwarded.Add(1) > f.limit {
		f.refused.Add(1)
		_, _ = io.WriteString(client, refusal)
		return
	}
	f.forward(client, first)
}

func (f *Forwarder) countPlain(change int64) {
	f.plain.Add(change)
	f.lastPlain.Store(time.Now().Unix())
}

// forward copies in both directions until memcached or the client closes its connection.
func (f *Forwarder) forward(client net.Conn, first []byte) {
	address := f.withTLS
	if first[0] != handshake {
		address = f.without
		f.allPlain.Add(1)
		f.countPlain(1)
		defer f.countPlain(-1)
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

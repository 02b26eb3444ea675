// Package connlimit accepts and bounds the connections of a server, and lets no client keep others out.
package connlimit

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

// acceptRetry is the pause after a connection could not be accepted, such as with too many open files.
const acceptRetry = 100 * time.Millisecond

// Serve passes each connection to handle, until the listener is closed. The next connection waits until handle returns.
func Serve(listener net.Listener, log *slog.Logger, handle func(net.Conn)) {
	for accepts := true; ; {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			handle(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			if accepts {
				log.Warn("Cannot accept connections", "address", listener.Addr(), "error", err)
			}
			time.Sleep(acceptRetry)
		}
		accepts = err == nil
	}
}

// Listener accepts all connections. When more than Limit of them are open, it closes the oldest one of the address
// that has the most. So a client at another address, such as a probe of the kubelet, is served during a flood.
type Listener struct {
	net.Listener
	Limit int

	mu sync.Mutex
	// open are the connections that count, oldest first.
	open []*conn
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l, host: hostOf(accepted.RemoteAddr())}
	l.mu.Lock()
	l.open = append(l.open, c)
	surplus := l.surplus()
	l.mu.Unlock()
	if surplus != nil {
		_ = surplus.Close()
	}
	return c, nil
}

// surplus returns the connection to close, or nil. Of addresses with the same number, it is the oldest one's.
func (l *Listener) surplus() *conn {
	if len(l.open) <= l.Limit {
		return nil
	}
	counts, most := map[string]int{}, 0
	for _, c := range l.open {
		counts[c.host]++
		most = max(most, counts[c.host])
	}
	i := slices.IndexFunc(l.open, func(c *conn) bool { return counts[c.host] == most })
	return l.open[i]
}

// Keep excludes a connection of a Listener from the limit: the server trusts its client.
func Keep(accepted net.Conn) {
	if c, ok := accepted.(*conn); ok {
		c.release()
	}
}

type conn struct {
	net.Conn
	listener *Listener
	host     string
}

func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}

func (c *conn) release() {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.open, c); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
	}
}

// hostOf returns an address without its port.
func hostOf(address net.Addr) string {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil { // a Unix socket
		return address.String()
	}
	return host
}

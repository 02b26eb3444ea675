// Package connlimit accepts and bounds the connections of a server, and lets no client keep others out.
package connlimit

import (
	"container/list"
	"errors"
	"log/slog"
	"net"
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
	// open are the connections that count, oldest first, and counts their number by address.
	open   list.List
	counts map[string]int
	closed int64
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l, host: hostOf(accepted.RemoteAddr())}
	if surplus := l.add(c); surplus != nil {
		_ = surplus.Close()
	}
	return c, nil
}

// Counts returns how many connections count towards the limit, and how many the listener has closed.
func (l *Listener) Counts() (open, closed int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.open.Len()), l.closed
}

// add returns the connection to close, or nil. Of addresses with the same number, it is the oldest one's.
func (l *Listener) add(c *conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	c.element = l.open.PushBack(c)
	l.counts[c.host]++
	if l.open.Len() <= l.Limit {
		return nil
	}
	l.closed++
	most := 0
	for _, n := range l.counts {
		most = max(most, n)
	}
	for e := l.open.Front(); ; e = e.Next() {
		if oldest := e.Value.(*conn); l.counts[oldest.host] == most {
			return oldest
		}
	}
}

// Keep excludes a connection of a Listener from the limit, since the server trusts its client, and returns the
// connection as it was accepted. The listener doesn't close it any more.
func Keep(accepted net.Conn) net.Conn {
	c, ok := accepted.(*conn)
	if !ok {
		return accepted
	}
	c.release()
	return c.Conn
}

type conn struct {
	net.Conn
	listener *Listener
	host     string
	// element is nil when the connection doesn't count any more.
	element *list.Element
}

func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}

func (c *conn) release() {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.element == nil {
		return
	}
	l.open.Remove(c.element)
	c.element = nil
	if l.counts[c.host]--; l.counts[c.host] == 0 {
		delete(l.counts, c.host)
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

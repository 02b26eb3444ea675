package agent

import (
	"net"
	"slices"
	"sync"
)

// maxConnections bounds the memory that HTTP clients cost the agent, about 20 KiB each.
const maxConnections = 128

// boundedListener closes the oldest connection when there are more than limit. So it
// always accepts a probe of the kubelet, even when other clients occupy all
// connections.
type boundedListener struct {
	net.Listener
	limit int

	mu sync.Mutex
	// open are the connections that are not closed, oldest first.
	open []*boundedConn
}

func (l *boundedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &boundedConn{Conn: accepted, listener: l}
	l.mu.Lock()
	l.open = append(l.open, c)
	oldest := l.open[0]
	full := len(l.open) > l.limit
	l.mu.Unlock()
	if full {
		_ = oldest.Close()
	}
	return c, nil
}

type boundedConn struct {
	net.Conn
	listener *boundedListener
}

func (c *boundedConn) Close() error {
	l := c.listener
	l.mu.Lock()
	if i := slices.Index(l.open, c); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
	}
	l.mu.Unlock()
	return c.Conn.Close()
}

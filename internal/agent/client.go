package agent

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// client queries one memcached process. It keeps its connection, so that it gets
// responses even when clients occupy all others. Any number of goroutines may use
// it; it runs one query at a time.
type client struct {
	server protocol.Server
	recent *recentLookups
	// idle is the last sample of the memory file, nil before it.
	idle atomic.Pointer[metrics.Idle]
	// lock contains one token; its owner may use conn and closed. A channel, since the
	// wait for it ends with a context.
	lock   chan struct{}
	conn   *protocol.Conn
	closed bool
}

func newClient(server protocol.Server) *client {
	c := &client{server: server, recent: newRecentLookups(time.Now()), lock: make(chan struct{}, 1)}
	c.lock <- struct{}{}
	return c
}

func (c *client) generalStats(ctx context.Context) (stats protocol.General, err error) {
	err = c.do(ctx, func(conn *protocol.Conn) (err error) {
		stats, err = conn.General(ctx)
		return err
	})
	return stats, err
}

// ping returns nil if memcached responds, even with an error such as too many
// connections.
func (c *client) ping(ctx context.Context) error {
	err := c.do(ctx, func(conn *protocol.Conn) error {
		_, err := conn.Version(ctx)
		return err
	})
	if protocol.IsAnswer(err) {
		return nil
	}
	return err
}

// do runs a query, and again over a new connection if the kept one was dead, as
// after memcached's idle_timeout.
func (c *client) do(ctx context.Context, query func(*protocol.Conn) error) error {
	select {
	case <-c.lock:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.lock <- struct{}{} }()
	if c.closed {
		return net.ErrClosed
	}
	for {
		kept := c.conn != nil
		if !kept {
			conn, err := c.server.Dial(ctx)
			if err != nil {
				return err
			}
			c.conn = conn
		}
		err := query(c.conn)
		if err == nil {
			return nil
		}
		// A connection closes itself after an error.
		c.conn = nil
		if !kept || protocol.IsAnswer(err) || ctx.Err() != nil {
			return err
		}
	}
}

// poke opens a connection and closes it, which wakes memcached's event loop.
func (c *client) poke() {
	conn, err := net.DialTimeout("tcp", c.server.Address, time.Second)
	if err == nil {
		_ = conn.Close()
	}
}

// close is called when memcached has exited. Later queries return net.ErrClosed.
func (c *client) close() {
	<-c.lock
	c.closed = true
	if c.conn != nil {
		_ = c.conn.Close()
	}
	c.lock <- struct{}{}
}

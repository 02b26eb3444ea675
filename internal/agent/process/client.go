package process

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
	"github.com/memcached-operator/memcached-operator/internal/agent/sizing"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Client queries one memcached process. It keeps its connection, so that it gets
// responses even when clients occupy all others. Any number of goroutines may use
// it; it runs one query at a time.
type Client struct {
	// Server is how the agent connects to memcached.
	Server protocol.Server
	recent *recentLookups
	// Clock is the best reading of memcached's clock, nil before the first one.
	Clock atomic.Pointer[protocol.Clock]
	// Idle is the last sample of the memory file, nil before it.
	Idle atomic.Pointer[metrics.Idle]
	// Size is what follows from the samples for the size of the shard, nil if the last one failed.
	Size atomic.Pointer[sizing.Report]
	// Restored counts the settings that a client had changed, and DroppedLines those of memcached's log that the agent
	// has not logged.
	Restored, DroppedLines atomic.Int64
	// life ends when the process has exited. Later queries return net.ErrClosed.
	life context.Context
	end  context.CancelCauseFunc
	// lock contains one token; its owner may use conn. A channel, since the wait for it
	// ends with a context.
	lock chan struct{}
	conn *protocol.Conn
}

// NewClient doesn't connect before the first query.
func NewClient(server protocol.Server) *Client {
	c := &Client{Server: server, recent: newRecentLookups(time.Now()), lock: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.lock <- struct{}{}
	return c
}

// GeneralStats returns what memcached answers to "stats", and keeps a better reading of its clock in Clock.
func (c *Client) GeneralStats(ctx context.Context) (protocol.General, error) {
	stats, err := Query(ctx, c, func(conn *protocol.Conn, ctx context.Context) (protocol.Stats, error) {
		stats, err := conn.Stats(ctx, "stats")
		if clock, unreadable := protocol.ClockOf(stats, time.Now()); err == nil && unreadable == nil {
			if former := c.Clock.Load(); former != nil {
				clock = clock.Best(*former)
			}
			c.Clock.Store(&clock)
		}
		return stats, err
	})
	return protocol.ParseGeneral(stats), err
}

// QueryStats returns the answers to such requests, over a connection of its own unless clients use all others.
func (c *Client) QueryStats(ctx context.Context, requests ...string) ([]protocol.Stats, error) {
	answers, err := c.Server.QueryStats(ctx, requests...)
	if !protocol.IsFull(err) {
		return answers, err
	}
	return Query(ctx, c, func(conn *protocol.Conn, ctx context.Context) ([]protocol.Stats, error) {
		return conn.QueryStats(ctx, requests...)
	})
}

// Ping returns nil if memcached responds, even with an error such as too many
// connections.
func (c *Client) Ping(ctx context.Context) error {
	err := c.Command(ctx, func(conn *protocol.Conn, ctx context.Context) error {
		_, err := conn.Version(ctx)
		return err
	})
	if protocol.IsAnswer(err) {
		return nil
	}
	return err
}

// Query returns memcached's answer. It is as Command otherwise.
func Query[T any](ctx context.Context, c *Client, ask func(*protocol.Conn, context.Context) (T, error)) (answer T, err error) {
	late := new(T)
	err = c.Command(ctx, func(conn *protocol.Conn, ctx context.Context) (err error) {
		*late, err = ask(conn, ctx)
		return err
	})
	if err == nil {
		answer = *late // the answer may still arrive after an error
	}
	return answer, err
}

// Command sends a request, and returns the error of ctx when that ends before the answer. The
// connection then waits for the late answer: if it were closed, clients could occupy
// the one that becomes free.
func (c *Client) Command(ctx context.Context, send func(*protocol.Conn, context.Context) error) error {
	select {
	case <-c.lock:
	case <-ctx.Done():
		return ctx.Err()
	}
	result := make(chan error, 1)
	go func() {
		defer func() { c.lock <- struct{}{} }()
		result <- c.do(func(conn *protocol.Conn) error { return send(conn, c.life) })
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do runs a query, and again over a new connection if the kept one was dead, as
// after memcached's idle_timeout.
func (c *Client) do(ask func(*protocol.Conn) error) error {
	for {
		if c.life.Err() != nil {
			return context.Cause(c.life)
		}
		kept := c.conn != nil
		if !kept {
			conn, err := c.Server.Dial(c.life)
			if err != nil {
				return err
			}
			c.conn = conn
		}
		err := ask(c.conn)
		if err == nil {
			return nil
		}
		// A connection closes itself after an error.
		c.conn = nil
		if !kept || protocol.IsAnswer(err) {
			return err
		}
	}
}

// poke opens a connection and closes it, which wakes memcached's event loop.
func (c *Client) poke() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := protocol.Server{Address: c.Server.Address, DialContext: c.Server.DialContext}.Connect(ctx)
	if err == nil {
		_ = conn.Close()
	}
}

// close is called when the process has exited.
func (c *Client) close() {
	c.end(net.ErrClosed)
	<-c.lock
	if c.conn != nil {
		_ = c.conn.Close()
	}
	c.lock <- struct{}{}
}

// QueryTimeout bounds the time for which the supervisor waits for memcached.
const QueryTimeout = 500 * time.Millisecond

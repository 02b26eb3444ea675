package copy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/clusterdns"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// ioTimeout is how long a shard may send nothing, or take for what is written at a
	// time, before its connection counts as lost.
	ioTimeout = 30 * time.Second
	// dialTimeout of one attempt.
	dialTimeout = 5 * time.Second
)

// conn is a connection to a shard. Its reads and writes fail after ioTimeout.
type conn struct {
	net.Conn
	r *bufio.Reader // reads from this conn
}

func newConn(c net.Conn, buffer int) *conn {
	wrapped := &conn{Conn: c}
	wrapped.r = bufio.NewReaderSize(wrapped, buffer)
	return wrapped
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(ioTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *conn) Write(p []byte) (n int, err error) {
	if err := c.SetWriteDeadline(time.Now().Add(ioTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// closeAfter closes the connection when ctx is done, until stop is called.
func (c *conn) closeAfter(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.Close() })
}

func dial(ctx context.Context, address string, ordinal, buffer int) (*conn, error) {
	raw, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", clusterdns.Absolute(address))
	if err != nil {
		return nil, err
	}
	if err := greet(raw); err != nil {
		_ = raw.Close()
		if _, rejected := errors.AsType[*protocol.ClientError](err); rejected {
			return nil, wire.FailFinally(wire.ReasonShardUnreachable, "shard %d at %s: %w; only servers without authentication can be copied", ordinal, address, err)
		}
		return nil, fmt.Errorf("reading its version: %w", err)
	}
	return newConn(raw, buffer), nil
}

// greet reads the version: a proxy may accept a connection and then close it, and a
// server that requires authentication rejects the request. 1.6.45 closes the
// connection after mn.
func greet(raw net.Conn) error {
	_ = raw.SetDeadline(time.Now().Add(dialTimeout)) // the write fails too
	if _, err := raw.Write([]byte("version\r\n")); err != nil {
		return err
	}
	if _, err := protocol.ReadVersion(bufio.NewReaderSize(raw, protocol.MaxLine)); err != nil {
		return err
	}
	return raw.SetDeadline(time.Time{})
}

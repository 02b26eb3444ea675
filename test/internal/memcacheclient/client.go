// Package memcacheclient is a client for tests that choose the connection and the
// timeout of each request. Other tests use gomemcache.
package memcacheclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Client is a connection to one memcached, for one caller at a time. An error closes it.
type Client struct {
	conn net.Conn
	r    *bufio.Reader
}

// Item is an item as Get returns it.
type Item struct {
	Value []byte
	Flags uint64
	// TTL is the remaining time to live in seconds; -1 means forever.
	TTL int64
}

// Dial connects to a server.
func Dial(ctx context.Context, address string) (*Client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, r: bufio.NewReader(conn)}, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Get returns an item, nil for a miss. Flags of mg such as " T60" may be appended to
// the request.
func (c *Client) Get(ctx context.Context, key, flags string) (*Item, error) {
	request, ok := protocol.AppendMetaGet(nil, []byte(key), " v f t"+flags)
	if !ok {
		return nil, fmt.Errorf("invalid key %q", key)
	}
	head, value, err := c.do(ctx, request)
	if err != nil || head.Code == protocol.MetaMiss {
		return nil, err
	}
	return &Item{Value: value, Flags: head.Flags, TTL: head.TTL}, nil
}

// Set stores an item. exptime is memcached's: 0 means never, up to 30 days are seconds
// from now.
func (c *Client) Set(ctx context.Context, key string, value []byte, flags uint64, exptime int64) error {
	request, ok := protocol.AppendMetaSet(nil, []byte(key), len(value), flags, exptime, false)
	if !ok {
		return fmt.Errorf("invalid key %q", key)
	}
	head, _, err := c.do(ctx, append(append(request, value...), "\r\n"...))
	if err == nil && head.Code != protocol.MetaHit {
		return fmt.Errorf("the answer to a set is %s", head.Code)
	}
	return err
}

// do sends a request and reads its answer until ctx is done.
func (c *Client) do(ctx context.Context, request []byte) (head protocol.Head, value []byte, err error) {
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetDeadline(deadline); err != nil {
		return head, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	if _, err = c.conn.Write(request); err == nil {
		head, err = protocol.ReadHead(c.r)
	}
	if err == nil && head.Code == protocol.MetaValue {
		value, err = protocol.ReadValue(c.r, nil, head.Size)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = errors.Join(err, c.Close())
	}
	return head, value, err
}

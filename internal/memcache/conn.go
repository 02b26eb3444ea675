package memcache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// maxValue bounds the values that a Conn takes: memcached's own upper limit of -I.
const maxValue = 1 << 30

// ErrClosed is a call on a connection that was closed, by Close or by an
// earlier error.
var ErrClosed = errors.New("the connection is closed")

// Conn is a connection to one memcached, for one caller at a time.
type Conn struct {
	conn   net.Conn
	r      *bufio.Reader
	closed bool
}

// Dial connects to a server; network is "tcp" or "unix".
func Dial(ctx context.Context, network, address string) (*Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn, r: bufio.NewReader(conn)}, nil
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.closed = true
	return c.conn.Close()
}

// Version returns the server's version, such as "1.6.45".
func (c *Conn) Version(ctx context.Context) (version string, err error) {
	err = c.do(ctx, "version\r\n", func() (err error) {
		version, err = ReadVersion(c.r)
		return err
	})
	return version, err
}

// Stats returns the stats of a group, such as "settings" or "items"; the
// general ones for "".
func (c *Conn) Stats(ctx context.Context, group string) (stats Stats, err error) {
	request := strings.TrimSuffix("stats "+group, " ") + "\r\n"
	err = c.do(ctx, request, func() (err error) {
		stats, err = ReadStats(c.r)
		return err
	})
	return stats, err
}

// General returns the general stats.
func (c *Conn) General(ctx context.Context) (General, error) {
	stats, err := c.Stats(ctx, "")
	return ParseGeneral(stats), err
}

// Settings returns the server's settings.
func (c *Conn) Settings(ctx context.Context) (Settings, error) {
	stats, err := c.Stats(ctx, "settings")
	if err != nil {
		return Settings{}, err
	}
	return ParseSettings(stats)
}

// Get returns an item with its CAS; nil is a miss.
func (c *Conn) Get(ctx context.Context, key string) (item *Item, err error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	err = c.do(ctx, "gets "+key+"\r\n", func() (err error) {
		item, err = ReadItem(c.r, maxValue)
		return err
	})
	return item, err
}

// Set stores a value without a condition. exptime is memcached's: 0 is never,
// up to 30 days are seconds from now, beyond that it is a Unix time.
func (c *Conn) Set(ctx context.Context, key string, value []byte, flags uint32, exptime int64) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	request := fmt.Sprintf("set %s %d %d %d\r\n%s\r\n", key, flags, exptime, len(value), value)
	return c.do(ctx, request, func() error { return ReadStored(c.r) })
}

// MetaGet asks mg with flags such as "v", "t" and "c".
func (c *Conn) MetaGet(ctx context.Context, key string, flags ...string) (Meta, error) {
	if err := CheckKey(key); err != nil {
		return Meta{}, err
	}
	return c.meta(ctx, strings.Join(append([]string{"mg", key}, flags...), " ")+"\r\n")
}

// MetaSet asks ms with flags such as "T60" and "ME".
func (c *Conn) MetaSet(ctx context.Context, key string, value []byte, flags ...string) (Meta, error) {
	if err := CheckKey(key); err != nil {
		return Meta{}, err
	}
	words := append([]string{"ms", key, fmt.Sprint(len(value))}, flags...)
	return c.meta(ctx, strings.Join(words, " ")+"\r\n"+string(value)+"\r\n")
}

func (c *Conn) meta(ctx context.Context, request string) (meta Meta, err error) {
	err = c.do(ctx, request, func() (err error) {
		meta, err = ReadMeta(c.r, maxValue)
		return err
	})
	return meta, err
}

// do sends a request and reads its answer, both until ctx ends.
func (c *Conn) do(ctx context.Context, request string, read func() error) error {
	if c.closed {
		return ErrClosed
	}
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetDeadline(deadline); err != nil {
		return c.fail(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	_, err := c.conn.Write([]byte(request))
	if err == nil {
		err = read()
	}
	if !stop() {
		return c.fail(context.Cause(ctx))
	}
	switch {
	case err == nil, errors.Is(err, ErrNotStored), errors.Is(err, ErrExists), errors.Is(err, ErrNotFound):
		return err
	}
	return c.fail(err)
}

func (c *Conn) fail(err error) error {
	return errors.Join(err, c.Close())
}

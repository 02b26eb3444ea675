package protocol

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Conn is a connection to one memcached, for one caller at a time. A call on a connection
// that Close or an earlier error has closed returns net.ErrClosed.
type Conn struct {
	conn net.Conn
	r    *bufio.Reader
}

// Dial connects to a server; network is "tcp" or "unix".
func Dial(ctx context.Context, network, address string) (*Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn, r: bufio.NewReaderSize(conn, MaxLine)}, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Version returns the server's version, such as "1.6.45".
func (c *Conn) Version(ctx context.Context) (version string, err error) {
	err = c.do(ctx, "version\r\n", func() (err error) {
		version, err = ReadVersion(c.r)
		return err
	})
	return version, err
}

// Stats returns the answer to "stats", or to one with a group, as "stats settings".
func (c *Conn) Stats(ctx context.Context, request string) (stats Stats, err error) {
	err = c.do(ctx, request+"\r\n", func() (err error) {
		stats, err = ReadStats(c.r)
		return err
	})
	return stats, err
}

// EachStat calls visit for each stat of the answer to such a request, also for those
// before an error. The arguments of visit are valid until it returns.
func (c *Conn) EachStat(ctx context.Context, request string, visit func(name, value []byte)) error {
	return c.do(ctx, request+"\r\n", func() error { return eachStat(c.r, MaxStats, visit) })
}

// General returns the general stats.
func (c *Conn) General(ctx context.Context) (General, error) {
	stats, err := c.Stats(ctx, "stats")
	return ParseGeneral(stats), err
}

// Set stores an item. exptime is memcached's, as for AppendMetaSet.
func (c *Conn) Set(ctx context.Context, key string, value []byte, exptime int64) error {
	request, ok := AppendMetaSet(nil, []byte(key), len(value), 0, exptime, false)
	if !ok {
		return fmt.Errorf("no request can express the key %q", key)
	}
	request = append(append(request, value...), "\r\n"...)
	return c.do(ctx, string(request), func() error {
		head, err := ReadHead(c.r)
		if err == nil && head.Code != MetaHit {
			err = fmt.Errorf("%w: %s to a set", ErrMalformed, head.Code)
		}
		return err
	})
}

// RefreshCertificates lets the server load its certificate again. An answer with which it did not is a
// ServerError.
func (c *Conn) RefreshCertificates(ctx context.Context) error {
	return c.do(ctx, "refresh_certs\r\n", func() error {
		line, err := readLine(c.r)
		if err == nil && string(line) != "OK" {
			err = &ServerError{Message: string(line)}
		}
		return err
	})
}

// QueryStats returns the answers of the server at a TCP address to such requests.
func QueryStats(ctx context.Context, address string, requests ...string) (answers []Stats, err error) {
	conn, err := Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	for _, request := range requests {
		answer, err := conn.Stats(ctx, request)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

func (c *Conn) do(ctx context.Context, request string, read func() error) error {
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetDeadline(deadline); err != nil {
		return errors.Join(err, c.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	_, err := c.conn.Write([]byte(request))
	if err == nil {
		err = read()
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

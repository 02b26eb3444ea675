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

// Server is a memcached at a TCP address.
type Server struct {
	Address string
	// User and Password log in to a server that requires it; empty if it doesn't.
	User, Password string
	// DialContext connects to it; nil means over TCP.
	DialContext DialContext
}

// DialContext is that of a net.Dialer.
type DialContext func(ctx context.Context, network, address string) (net.Conn, error)

// OrTCP returns the function that connects over TCP if d is nil.
func (d DialContext) OrTCP() DialContext {
	if d == nil {
		return new(net.Dialer).DialContext
	}
	return d
}

// At returns a server that requires no login.
func At(address string) Server { return Server{Address: address} }

// String returns the address, and no password.
func (s Server) String() string { return s.Address }

// Connect returns a connection that is logged in.
func (s Server) Connect(ctx context.Context) (net.Conn, error) {
	conn, err := s.DialContext.OrTCP()(ctx, "tcp", s.Address)
	if err != nil || s.User == "" {
		return conn, err
	}
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := Login(conn, s.User, s.Password); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, conn.SetDeadline(time.Time{})
}

// Login logs in with a set, as memcached expects. A server without authentication stores an item that has expired, and
// that no client can read. A rejected password is a ClientError.
func Login(conn net.Conn, user, password string) error {
	value := user + " " + password
	// If writing fails, reading does too, and may get the TLS alert that explains it. The server sends nothing else before
	// the next request.
	_, _ = fmt.Fprintf(conn, "set login 0 -1 %d\r\n%s\r\n", len(value), value)
	line, err := readLine(bufio.NewReaderSize(conn, MaxLine))
	switch {
	case err != nil:
		return err
	case string(line) != "STORED":
		return answerError(line)
	}
	return nil
}

// Dial connects to the server.
func (s Server) Dial(ctx context.Context) (*Conn, error) {
	conn, err := s.Connect(ctx)
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
	head, _, err := c.meta(ctx, key, append(append(request, value...), "\r\n"...), ok)
	if err == nil && head.Code != MetaHit {
		err = errors.Join(fmt.Errorf("%w: %s to a set", ErrMalformed, head.Code), c.Close())
	}
	return err
}

// Get returns an item, or the code MetaMiss. Flags are as for AppendMetaGet; the value is empty without v.
func (c *Conn) Get(ctx context.Context, key, flags string) (Head, []byte, error) {
	request, ok := AppendMetaGet(nil, []byte(key), flags)
	return c.meta(ctx, key, request, ok)
}

// Delete deletes an item, and reports whether there was one.
func (c *Conn) Delete(ctx context.Context, key string) (found bool, err error) {
	request, ok := AppendDelete(nil, []byte(key))
	head, _, err := c.meta(ctx, key, request, ok)
	return head.Code == MetaHit, err
}

func (c *Conn) meta(ctx context.Context, key string, request []byte, ok bool) (head Head, value []byte, err error) {
	if !ok {
		return head, nil, fmt.Errorf("no request can express the key %q", key)
	}
	err = c.do(ctx, string(request), func() (err error) {
		if head, err = ReadHead(c.r); err == nil && head.Code == MetaValue {
			value, err = ReadValue(c.r, nil, head.Size)
		}
		return err
	})
	return head, value, err
}

// RefreshCertificates lets the server load its certificate again. An answer with which it did not is a
// ServerError.
func (c *Conn) RefreshCertificates(ctx context.Context) error { return c.Command(ctx, "refresh_certs") }

// Command sends a command that the server answers with OK. Any other answer is a ServerError.
func (c *Conn) Command(ctx context.Context, command string) error {
	return c.do(ctx, command+"\r\n", func() error {
		line, err := readLine(c.r)
		if err == nil && string(line) != "OK" {
			err = &ServerError{Message: string(line)}
		}
		return err
	})
}

// QueryStats returns the answers to such requests over a connection of its own.
func (s Server) QueryStats(ctx context.Context, requests ...string) (answers []Stats, err error) {
	conn, err := s.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.QueryStats(ctx, requests...)
}

// QueryStats returns the answers to such requests.
func (c *Conn) QueryStats(ctx context.Context, requests ...string) (answers []Stats, err error) {
	for _, request := range requests {
		answer, err := c.Stats(ctx, request)
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

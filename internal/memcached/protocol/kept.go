package protocol

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"
)

// idle is the time without a request after which memcached may have closed a connection: the shortest idle_timeout is a second.
const idle = time.Second / 2

// KeptConn is a connection for requests with pauses, in which memcached may close it (idle_timeout). Call Wake before each request, or
// before requests without a pause.
type KeptConn struct {
	conn BoundedConn
	// R reads the answers.
	R    *bufio.Reader
	open func() error
	stop func() bool
	// woken is before the last request.
	woken time.Time
}

// Keep connects until the context is done. timeout bounds the connection, each read and each write; size is that of R's buffer.
func (s Server) Keep(ctx context.Context, timeout time.Duration, size int) (*KeptConn, error) {
	c := &KeptConn{}
	c.open = func() error {
		opening, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		conn, err := s.Connect(opening)
		if err != nil {
			return fmt.Errorf("connecting to memcached: %w", err)
		}
		c.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
		c.conn = BoundedConn{Conn: conn, ReadTimeout: timeout, WriteTimeout: timeout}
		c.R, c.woken = bufio.NewReaderSize(&c.conn, size), time.Now()
		return nil
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	return c, nil
}

// IsIdle returns whether memcached may have closed the connection.
func (c *KeptConn) IsIdle() bool { return time.Since(c.woken) >= idle }

// Wake connects again if memcached has closed the connection. again is whether it did: it may be another process. No answer may be outstanding.
func (c *KeptConn) Wake() (again bool, err error) {
	if !c.IsIdle() {
		c.woken = time.Now()
		return false, nil
	}
	if c.Ping() == nil {
		return false, nil
	}
	_ = c.Close()
	return true, c.open()
}

// Ping returns an error unless memcached answers. No answer may be outstanding.
func (c *KeptConn) Ping() error {
	c.woken = time.Now()
	if _, err := io.WriteString(c, "mn\r\n"); err != nil {
		return err
	}
	line, err := readLine(c.R)
	if err == nil && string(line) != "MN" {
		err = fmt.Errorf("%w: %q", ErrMalformed, line)
	}
	return err
}

// Write sends requests.
func (c *KeptConn) Write(p []byte) (int, error) { return c.conn.Write(p) }

// Close closes the connection.
func (c *KeptConn) Close() error {
	c.stop()
	return c.conn.Close()
}

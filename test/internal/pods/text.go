package pods

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TextConn is a connection to a memcached.
type TextConn struct {
	t      *testing.T
	conn   net.Conn
	Reader *bufio.Reader
}

// TextTo connects to a memcached, until the test ends.
func TextTo(t *testing.T, address string) *TextConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, Patience)
	Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(Patience))
	return &TextConn{t, conn, bufio.NewReader(conn)}
}

// Send sends a text, or fails the test.
func (c *TextConn) Send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// Line returns the next line. It skips the OK before a metadump, which only newer versions send.
func (c *TextConn) Line() string {
	c.t.Helper()
	for {
		line, err := c.Reader.ReadString('\n')
		Must(c.t, err)
		if line = strings.TrimRight(line, "\r\n"); line != "OK" {
			return line
		}
	}
}

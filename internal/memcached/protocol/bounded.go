package protocol

import (
	"net"
	"time"
)

// BoundedConn is a connection whose reads and writes each have a deadline.
type BoundedConn struct {
	net.Conn
	ReadTimeout, WriteTimeout time.Duration
}

// writePiece is the number of bytes that are written under one deadline.
const writePiece = 256 << 10

func (c *BoundedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.ReadTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *BoundedConn) Write(p []byte) (n int, err error) {
	for {
		if err := c.SetWriteDeadline(time.Now().Add(c.WriteTimeout)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[n:min(len(p), n+writePiece)])
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

package checker

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// commandTimeout bounds one operation, also one on several megabytes.
const commandTimeout = 5 * time.Second

// client has one connection, which it opens when it needs one, and sends one request at a time: a meta command, which has all
// that the commands before can do.
type client struct {
	// address returns where to connect, empty for nowhere.
	address func() string
	conn    net.Conn
	reader  *bufio.Reader
	clocks  *clocks
}

// clocks are those of the servers. memcached counts the time until it reads its saved items, and starts its clock when it has
// loaded them: its clock is behind by what that took, and so is the expiry of all items, also after a handover. A restart begins with
// a second, up to one after the stop, and the clock counts that as a whole one: it is ahead.
type clocks struct {
	mu sync.Mutex
	// zero are the readings of when the clock of each address showed 0: the first, the earliest and the latest one.
	zero map[string][3]time.Time
}

func (c *clocks) read(address string, zero time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	z, known := c.zero[address]
	if !known {
		z = [3]time.Time{zero, zero, zero}
	}
	if zero.Before(z[1]) {
		z[1] = zero
	}
	if zero.After(z[2]) {
		z[2] = zero
	}
	c.zero[address] = z
}

// off returns by how much an item can live longer, and by how much shorter: at most a second for each of some restarts.
func (c *clocks) off() (behind, ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, z := range c.zero {
		behind, ahead = behind+z[2].Sub(z[1]), ahead+z[0].Sub(z[1])
	}
	return behind, min(ahead, 10*time.Second)
}

// foundIn returns the item in an answer.
func foundIn(head protocol.Head, value []byte, ttl int64) stored {
	if isMiss(head) {
		return stored{}
	}
	return stored{there: true, text: string(value), flags: uint32(head.Flags), ttl: ttl, marked: head.Won || head.Sent || head.Stale} //nolint:gosec // memcached has 32 bits
}

// isMiss reports whether an answer says that there is no item.
func isMiss(head protocol.Head) bool {
	return head.Code == protocol.MetaMiss || head.Code == protocol.MetaNotFound || head.Code == protocol.MetaNotStored
}

// do sends a request and returns the answer. The error of a request that reached no server is that of a dial.
func (c *client) do(request []byte) (head protocol.Head, value []byte, err error) {
	if c.conn == nil {
		if err := c.dial(); err != nil {
			return head, nil, &net.OpError{Op: "dial", Err: err}
		}
	}
	if err = c.conn.SetDeadline(time.Now().Add(commandTimeout)); err == nil {
		_, err = c.conn.Write(request)
	}
	if err == nil {
		head, err = protocol.ReadHead(c.reader)
	}
	if err == nil && head.Code == protocol.MetaValue {
		value, err = protocol.ReadValue(c.reader, nil, head.Size)
	}
	if err != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
	return head, value, err
}

// dial connects and reads the server's clock.
func (c *client) dial() error {
	address := c.address()
	if address == "" {
		return errors.New("no server is ready")
	}
	conn, err := net.DialTimeout("tcp", address, commandTimeout)
	if err != nil {
		return err
	}
	c.conn, c.reader = conn, bufio.NewReaderSize(conn, protocol.MaxLine)
	if err := c.readClock(address); err != nil {
		_ = conn.Close()
		c.conn = nil
		return err
	}
	return nil
}

func (c *client) readClock(address string) error {
	if err := c.conn.SetDeadline(time.Now().Add(commandTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(c.conn, "stats\r\n"); err != nil {
		return err
	}
	stats, err := protocol.ReadStats(c.reader)
	if err != nil {
		return err
	}
	clock, err := protocol.ClockOf(stats, time.Now())
	c.clocks.read(address, clock.Zero)
	return err
}

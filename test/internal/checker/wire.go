package checker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// commandTimeout bounds one operation, also one on several megabytes.
const commandTimeout = 5 * time.Second

// errNoServer says that no server can be reached. It is the error of a failed dial.
var errNoServer = &net.OpError{Op: "dial", Err: errors.New("no server is ready")}

// client has one connection, which it opens when it needs one, and sends one request at a time.
type client struct {
	// address returns where to connect, empty for nowhere.
	address func() string
	conn    net.Conn
	reader  *bufio.Reader
	clocks  *clocks
}

// clocks are those of the servers. memcached counts the time until it reads its saved items, and starts its clock when it has
// loaded them: its clock is behind by what that took, and so is the expiry of all items, also after a handover.
type clocks struct {
	mu sync.Mutex
	// zero is the earliest reading of when the clock of each address showed 0, behind how much later the latest one was.
	zero   map[string]time.Time
	behind map[string]time.Duration
}

func (c *clocks) read(address string, zero time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, known := c.zero[address]; !known || zero.Before(first) {
		c.zero[address] = zero
	}
	c.behind[address] = max(c.behind[address], zero.Sub(c.zero[address]))
}

// total returns by how much an item can live longer.
func (c *clocks) total() (behind time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.behind {
		behind += b
	}
	return behind
}

// reply is an answer: its line, and the data of an item.
type reply struct {
	line, data string
	// token is that of gets.
	token string
	flags uint32
	ttl   int64
	mark  bool
}

// value returns the item in a reply.
func (r reply) value() stored {
	if r.empty() {
		return stored{}
	}
	return stored{there: true, text: r.data, flags: r.flags, ttl: r.ttl, marked: r.mark}
}

func (c *client) do(request []byte) (reply, error) {
	if c.conn == nil {
		address := c.address()
		if address == "" {
			return reply{}, errNoServer
		}
		conn, err := net.DialTimeout("tcp", address, commandTimeout)
		if err != nil {
			return reply{}, err
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
		if err := c.readClock(address); err != nil {
			_ = conn.Close()
			c.conn = nil
			return reply{}, &net.OpError{Op: "dial", Err: err}
		}
	}
	r, err := c.exchange(request)
	if err != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
	return r, err
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

func (c *client) exchange(request []byte) (reply, error) {
	if err := c.conn.SetDeadline(time.Now().Add(commandTimeout)); err != nil {
		return reply{}, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return reply{}, err
	}
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return reply{}, err
	}
	r := reply{line: strings.TrimRight(line, "\r\n"), ttl: unknownTTL}
	words := strings.Fields(r.line)
	switch {
	case len(words) >= 2 && words[0] == "VA":
		if r.data, err = c.data(words[1]); err != nil {
			return r, err
		}
		for _, word := range words[2:] {
			switch number := word[1:]; word[0] {
			case 'f':
				flags, _ := strconv.ParseUint(number, 10, 32)
				r.flags = uint32(flags)
			case 't':
				r.ttl, _ = strconv.ParseInt(number, 10, 64)
			case 'W', 'Z', 'X':
				r.mark = true
			}
		}
	case len(words) >= 4 && words[0] == "VALUE":
		flags, _ := strconv.ParseUint(words[2], 10, 32)
		r.flags = uint32(flags)
		if len(words) > 4 {
			r.token = words[4]
		}
		if r.data, err = c.data(words[3]); err != nil {
			return r, err
		}
		end, err := c.reader.ReadString('\n')
		if err == nil && end != "END\r\n" {
			err = fmt.Errorf("%q instead of END", end)
		}
		return r, err
	}
	return r, nil
}

func (c *client) data(size string) (string, error) {
	n, err := strconv.Atoi(size)
	if err != nil {
		return "", fmt.Errorf("size of an item: %w", err)
	}
	data := make([]byte, n+2)
	if _, err := io.ReadFull(c.reader, data); err != nil {
		return "", err
	}
	return string(data[:n]), nil
}

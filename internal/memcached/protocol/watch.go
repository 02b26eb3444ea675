package protocol

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Fetch is a read of one key.
type Fetch struct {
	// Key is valid until the next read.
	Key []byte
	Hit bool
}

// WatchFetches calls visit for each read by any client, until visit returns false or the
// deadline of ctx, which is no error. skipped is the number of reads that memcached didn't
// report because it had too many. The connection is closed afterwards.
func (c *Conn) WatchFetches(ctx context.Context, visit func(Fetch) bool) (skipped int64, err error) {
	defer c.Close()
	watches := false
	err = c.do(ctx, "watch fetchers\r\n", func() error {
		line, err := readLine(c.r)
		if err != nil {
			return err
		}
		if string(line) != "OK" {
			return answerError(line)
		}
		watches = true
		for {
			line, err := readLine(c.r)
			if err != nil {
				return err
			}
			if number, ok := bytes.CutPrefix(line, []byte("skipped=")); ok {
				n, _ := parseInt(number)
				skipped += n
				continue
			}
			if fetch, ok := parseFetch(line); ok && !visit(fetch) {
				return nil
			}
		}
	})
	if watches && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)) {
		err = nil
	}
	return skipped, err
}

// parseFetch returns false for other entries of the log.
func parseFetch(line []byte) (f Fetch, ok bool) {
	_, rest, ok := bytes.Cut(line, []byte(" type=item_get key="))
	if !ok {
		return f, false
	}
	f.Key, rest, _ = bytes.Cut(rest, []byte(" "))
	f.Hit = bytes.HasPrefix(rest, []byte("status=found"))
	n, ok := unescape(f.Key, f.Key)
	f.Key = f.Key[:n]
	return f, ok && n > 0
}

// ClientConn is a connection of a client.
type ClientConn struct {
	// Host is the address without the port.
	Host string
	// Idle is the time since the last command in seconds.
	Idle int64
}

// maxConnStats are the lines of each connection in an answer to "stats conns".
const maxConnStats = 6

// Conns calls visit for each connection of a client, this one included. limit bounds their
// number: memcached composes the answer in its memory.
func (c *Conn) Conns(ctx context.Context, limit int, visit func(ClientConn)) error {
	general, err := c.General(ctx)
	if err != nil {
		return err
	}
	if general.Connections > int64(limit) {
		return errors.Join(fmt.Errorf("%d connections: %w", general.Connections, ErrTooLong), c.Close())
	}
	var host string
	listens := false
	return c.do(ctx, "stats conns\r\n", func() error {
		return eachStat(c.r, (limit+limit/2)*maxConnStats, func(name, value []byte) {
			_, field, _ := bytes.Cut(name, []byte(":"))
			switch string(field) {
			case "addr":
				host, listens = hostOf(string(value)), false
			case "state":
				listens = string(value) == "conn_listening"
			case "secs_since_last_cmd":
				idle, err := strconv.ParseInt(string(value), 10, 64)
				if !listens && err == nil {
					visit(ClientConn{host, idle})
				}
			}
		})
	})
}

// hostOf returns the host of an address such as tcp:10.0.0.1:40000 or tcp6:[::1]:40000.
func hostOf(address string) string {
	network, rest, _ := strings.Cut(address, ":")
	if network == "unix" {
		return network
	}
	host, _, err := net.SplitHostPort(rest)
	if err != nil {
		return rest
	}
	return host
}

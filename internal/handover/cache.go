package handover

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

const (
	// maxBuffered is the largest value that is read into memory, in bytes.
	maxBuffered = 256 << 10
	// clockReadings is how often memcached's clock is read: the first reading may be late.
	clockReadings = 2
)

// cache writes to the memcached of the target. It sends one batch while the answers to
// the one before are outstanding.
type cache struct {
	conn   *protocol.KeptConn
	server protocol.Server

	batch   []byte
	count   int // requests in batch
	pending int // requests without an answer
	// deleting is whether requests are deletions, which must not be rejected.
	deleting bool
	// omitted is whether there was a deletion that no request can express.
	omitted  bool
	rejected int64
	automove string
	cas      bool // no -C
	flushes  bool // no -F
	// listsKeys is whether memcached can list its keys.
	listsKeys bool
	// firstCAS is that of the first item to be stored; 0 with -C.
	firstCAS uint64
	clock    protocol.Clock
}

// openCache connects to an empty memcached, each of whose answers may take silence, until the context is done. Until it is restored,
// memcached moves no pages: an item that moves could be missed by a scan.
func openCache(ctx context.Context, server protocol.Server) (*cache, error) {
	conn, err := server.Keep(ctx, peerlink.Silence, protocol.MaxLine)
	if err != nil {
		return nil, err
	}
	c := &cache{conn: conn, server: server}
	if err := c.prepare(ctx); err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

func (c *cache) close() error { return c.conn.Close() }

// wake prepares the connection for a request. It is to the same process: the agent starts no other one before the context is done.
func (c *cache) wake() error {
	if c.conn.IsIdle() {
		if err := c.answers(); err != nil {
			return err
		}
	}
	_, err := c.conn.Wake()
	return err
}

func (c *cache) prepare(ctx context.Context) error {
	for range clockReadings {
		n, err := c.items(ctx)
		if err != nil {
			return err
		}
		if n != 0 {
			return fmt.Errorf("it has %d items, and only an empty one can receive others", n)
		}
	}
	settings, err := c.stats(ctx, "stats settings")
	if err != nil {
		return err
	}
	c.listsKeys = settings.ListsKeys()
	c.flushes = settings["flush_enabled"] != "no"
	if c.cas = settings["cas_enabled"] == "yes"; c.cas {
		last, err := c.lastCAS()
		if err != nil {
			return err
		}
		c.firstCAS = last + 1
	}
	if level := settings["slab_automove"]; level != "" && level != "0" {
		if err := c.setAutomove("0"); err != nil {
			return err
		}
		c.automove = level
	}
	return nil
}

// restore lets memcached move pages again.
func (c *cache) restore() error {
	if c.automove == "" {
		return nil
	}
	return c.setAutomove(c.automove)
}

func (c *cache) setAutomove(level string) error { return c.command("slabs automove " + level) }

// flushAll deletes all items at a time, or now if that is over. A barrier must be before it. Without the delay of a second, which memcached
// counts from the end of the last one, an item that was read in this second can survive it.
func (c *cache) flushAll(at time.Time) error {
	exptime := int64(1)
	if at.After(time.Now()) { // one of the past keeps what was stored since, unless it has a CAS
		exptime = c.clock.Exptime(at)
	}
	return c.command("flush_all " + strconv.FormatInt(exptime, 10))
}

// command sends a command whose answer is OK.
func (c *cache) command(text string) error {
	if err := c.wake(); err != nil {
		return err
	}
	if _, err := io.WriteString(c.conn, text+"\r\n"); err != nil {
		return err
	}
	line, err := c.conn.R.ReadSlice('\n')
	if err != nil {
		return err
	}
	if string(line) != "OK\r\n" {
		return fmt.Errorf("%s: %q", text, line)
	}
	return nil
}

// lastCAS returns a CAS that is higher than that of all earlier changes. A barrier must be before it.
func (c *cache) lastCAS() (uint64, error) {
	key := "memcached-operator-handover-" + rand.Text()
	if err := c.wake(); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(c.conn, "ms %s 0 c T1\r\n\r\nmd %s\r\n", key, key); err != nil {
		return 0, err
	}
	stored, err := protocol.ReadHead(c.conn.R)
	if err != nil {
		return 0, err
	}
	if _, err := protocol.ReadHead(c.conn.R); err != nil {
		return 0, err
	}
	if stored.Code != protocol.MetaHit || stored.CAS == 0 {
		return 0, fmt.Errorf("%w: %+v in place of a CAS", protocol.ErrMalformed, stored)
	}
	return stored.CAS, nil
}

// stats asks over a connection of its own, since memcached closes idle ones with idle_timeout.
func (c *cache) stats(ctx context.Context, request string) (protocol.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, peerlink.Silence)
	defer cancel()
	answers, err := c.server.QueryStats(ctx, request)
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// items returns the number of items, and reads memcached's clock.
func (c *cache) items(ctx context.Context) (int64, error) {
	stats, err := c.stats(ctx, "stats")
	if err != nil {
		return 0, err
	}
	clock, err := protocol.ClockOf(stats, time.Now())
	if err != nil {
		return 0, err
	}
	c.clock = clock.Best(c.clock)
	n, err := strconv.ParseInt(stats["curr_items"], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("curr_items: %w", err)
	}
	return n, nil
}

// set stores an item that expires at a time, the zero time for never, and whose value it reads from r.
func (c *cache) set(item received, expires time.Time, r *bufio.Reader) error {
	exptime := c.clock.Exptime(expires)
	var ok bool
	if item.binary {
		c.batch, ok = protocol.AppendMetaSetEncoded(c.batch, item.key, item.size, uint64(item.flags), exptime)
	} else {
		c.batch, ok = protocol.AppendMetaSet(c.batch, item.key, item.size, uint64(item.flags), exptime, false)
	}
	if !ok {
		c.rejected++
		_, err := r.Discard(item.size)
		return protocol.Unexpected(err)
	}
	c.count++
	if item.size > maxBuffered {
		return c.stream(item.size, r)
	}
	from := len(c.batch)
	c.batch = slices.Grow(c.batch, item.size+2)[:from+item.size]
	if _, err := io.ReadFull(r, c.batch[from:]); err != nil {
		return protocol.Unexpected(err)
	}
	c.batch = append(c.batch, "\r\n"...)
	return c.sendFull()
}

// stream sends what is in the batch, and then a value from r. It waits for no answer before the end of the value: while memcached
// waits for the rest of one, it keeps the answers to the requests before.
func (c *cache) stream(size int, r io.Reader) error {
	if err := c.wake(); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.batch); err != nil {
		return err
	}
	if _, err := io.CopyN(c.conn, r, int64(size)); err != nil {
		return protocol.Unexpected(err)
	}
	c.batch = append(c.batch[:0], "\r\n"...)
	return c.write()
}

// delete deletes an item. A barrier must be between it and a set. It omits a key that no request can express: such an item is one of the
// binary protocol, and never stored by the cache.
func (c *cache) delete(key []byte) error {
	var ok bool
	if c.batch, ok = protocol.AppendDelete(c.batch, key); !ok {
		c.omitted = true
		return nil
	}
	c.count++
	return c.sendFull()
}

func (c *cache) sendFull() error {
	if c.count < peerlink.BatchItems && len(c.batch) < peerlink.BatchBytes-maxBuffered {
		return nil
	}
	return c.send()
}

func (c *cache) send() error {
	if len(c.batch) > 0 {
		if err := c.wake(); err != nil {
			return err
		}
	}
	return c.write()
}

func (c *cache) write() error {
	if len(c.batch) > 0 {
		if _, err := c.conn.Write(c.batch); err != nil {
			return err
		}
	}
	sent := c.count
	c.batch, c.count = c.batch[:0], 0
	if err := c.answers(); err != nil {
		return err
	}
	c.pending = sent
	return nil
}

// answers reads the outstanding answers.
func (c *cache) answers() error {
	for ; c.pending > 0; c.pending-- {
		head, err := protocol.ReadHead(c.conn.R)
		_, rejected := errors.AsType[*protocol.ServerError](err)
		switch {
		case rejected && !c.deleting:
			// Too large or out of memory: memcached has deleted the item's earlier content.
			c.rejected++
		case err != nil:
			return err
		case head.Code == protocol.MetaHit:
		case head.Code == protocol.MetaNotFound && c.deleting:
		default:
			return fmt.Errorf("%w: %s", protocol.ErrMalformed, head.Code)
		}
	}
	return nil
}

// barrier returns once memcached has answered all requests.
func (c *cache) barrier() error {
	if err := c.send(); err != nil {
		return err
	}
	return c.answers()
}

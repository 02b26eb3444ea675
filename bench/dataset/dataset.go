// Package dataset fills caches with items and compares what they contain, with pipelined requests.
package dataset

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// connections per shard, each with batch pipelined requests.
	connections = 2
	batch       = 500
	// tolerance of the time to live, in seconds.
	tolerance = 2
)

// Dataset is the content of the shards. Its values are random bytes, which cannot be compressed: the worst case of a
// snapshot.
type Dataset struct {
	PerShard int
	// Size of every value, in bytes; at least 8.
	Size int
	// filled is the time from which times to live count.
	filled time.Time
}

func (d *Dataset) key(buffer []byte, shard, i int) []byte {
	buffer = append(buffer[:0], "item-"...)
	buffer = strconv.AppendInt(buffer, int64(shard), 10)
	buffer = append(buffer, '-')
	return strconv.AppendInt(buffer, int64(i), 10)
}

// value returns the value of an item, which no other item has.
func (d *Dataset) value(buffer []byte, shard, i int) []byte {
	source := rand.NewPCG(uint64(shard), uint64(i)) //nolint:gosec // small numbers
	for buffer = buffer[:0]; len(buffer) < d.Size; {
		buffer = binary.LittleEndian.AppendUint64(buffer, source.Uint64())
	}
	return buffer[:d.Size]
}

func (d *Dataset) flags(i int) uint32 { return uint32(i % 65521) } //nolint:gosec // small numbers

// ttl returns the time to live of an item in seconds; 0 means forever.
func (d *Dataset) ttl(i int) int {
	if i%3 != 0 {
		return 0
	}
	return 3600 + i%3600
}

// each calls do with ranges of the items of every shard, on several connections.
func (d *Dataset) each(ctx context.Context, addresses []string, do func(conn *stream, shard, from, until int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for shard, address := range addresses {
		for c := range connections {
			group.Go(func() error {
				s, err := dial(ctx, address)
				if err != nil {
					return err
				}
				defer s.close()
				for from := c * batch; from < d.PerShard; from += batch * connections {
					if err := s.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
						return err
					}
					if err := do(s, shard, from, min(from+batch, d.PerShard)); err != nil {
						return fmt.Errorf("shard %d at %s: %w", shard, address, err)
					}
				}
				return ctx.Err()
			})
		}
	}
	return group.Wait()
}

// stream is a connection with pipelined requests.
type stream struct {
	conn       net.Conn
	r          *bufio.Reader
	w          *bufio.Writer
	key, value []byte
	// reference is closed with this one.
	reference *stream
}

func (s *stream) close() {
	_ = s.conn.Close()
	if s.reference != nil {
		s.reference.close()
	}
}

func dial(ctx context.Context, address string) (*stream, error) {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &stream{conn: conn, r: bufio.NewReaderSize(conn, 1<<18), w: bufio.NewWriterSize(conn, 1<<18)}, nil
}

// Fill stores all items.
func (d *Dataset) Fill(ctx context.Context, addresses []string) error {
	d.filled = time.Now().Truncate(time.Second)
	return d.each(ctx, addresses, func(s *stream, shard, from, until int) error {
		for i := from; i < until; i++ {
			s.key, s.value = d.key(s.key, shard, i), d.value(s.value, shard, i)
			expiry := int64(0)
			if ttl := d.ttl(i); ttl != 0 { // a point in time, so that the duration of the filling does not matter
				expiry = d.filled.Unix() + int64(ttl)
			}
			fmt.Fprintf(s.w, "set %s %d %d %d\r\n%s\r\n", s.key, d.flags(i), expiry, d.Size, s.value)
		}
		if err := s.w.Flush(); err != nil {
			return err
		}
		for range until - from {
			line, err := s.r.ReadSlice('\n')
			if err != nil {
				return err
			}
			if string(line) != "STORED\r\n" {
				return fmt.Errorf("storing an item: %q", line)
			}
		}
		return nil
	})
}

// Comparison counts the items that differ.
type Comparison struct {
	Items, Missing         int64
	WrongValue, WrongFlags int64
	WrongTTL               int64
}

// Compare compares every item with what was written, and its time to live with that of the same item in a reference at
// the same moment: the clock of each memcached ticks once a second, from a start of its own.
func (d *Dataset) Compare(ctx context.Context, addresses, reference []string) (Comparison, error) {
	results := make(chan Comparison, len(addresses)*connections*(d.PerShard/batch+1))
	err := d.each(ctx, addresses, func(s *stream, shard, from, until int) error {
		if s.reference == nil {
			r, err := dial(ctx, reference[shard])
			if err != nil {
				return err
			}
			s.reference = r
		}
		for i := from; i < until; i++ {
			s.key = d.key(s.key, shard, i)
			fmt.Fprintf(s.w, "mg %s v f t\r\n", s.key)
			fmt.Fprintf(s.reference.w, "mg %s t\r\n", s.key)
		}
		deadline := time.Now().Add(time.Minute)
		if err := errors.Join(s.reference.conn.SetDeadline(deadline), s.w.Flush(), s.reference.w.Flush()); err != nil {
			return err
		}
		var c Comparison
		for i := from; i < until; i++ {
			left, err := s.reference.left()
			if err != nil {
				return err
			}
			if err := d.compareOne(&c, s, shard, i, left); err != nil {
				return err
			}
		}
		results <- c
		return nil
	})
	close(results)
	var all Comparison
	for c := range results {
		all.Items += c.Items
		all.Missing += c.Missing
		all.WrongValue += c.WrongValue
		all.WrongFlags += c.WrongFlags
		all.WrongTTL += c.WrongTTL
	}
	return all, err
}

// left reads the remaining time to live of an item in seconds; -1 means forever.
func (s *stream) left() (int, error) {
	line, err := s.r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	left := 0
	if _, err := fmt.Sscanf(string(line), "HD t%d\r\n", &left); err != nil {
		return 0, fmt.Errorf("reading a time to live: %q", line)
	}
	return left, nil
}

// compareOne reads an item, whose remaining time to live should be want.
func (d *Dataset) compareOne(c *Comparison, s *stream, shard, i, want int) error {
	c.Items++
	line, err := s.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if string(line) == "EN\r\n" {
		c.Missing++
		return nil
	}
	var size, left int
	var flags uint32
	if _, err := fmt.Sscanf(string(line), "VA %d f%d t%d\r\n", &size, &flags, &left); err != nil {
		return fmt.Errorf("reading an item: %q", line)
	}
	if flags != d.flags(i) {
		c.WrongFlags++
	}
	if (left == -1) != (want == -1) || left-want > tolerance || want-left > tolerance || (d.ttl(i) == 0) != (left == -1) {
		c.WrongTTL++
	}
	got, err := s.r.Peek(size + 2)
	if err != nil {
		return err
	}
	s.value = d.value(s.value, shard, i)
	if !bytes.Equal(got[:size], s.value) {
		c.WrongValue++
	}
	_, err = s.r.Discard(size + 2)
	return err
}

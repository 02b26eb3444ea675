package main

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
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// connections on which a shard is filled and read.
	connections = 2
	// batch is how many items are under way on a connection.
	batch = 500
	// tolerance of the time that an item has left.
	tolerance = 2 * time.Second
)

// dataset is what the shards are filled with. Its values are random bytes, which no
// compression makes smaller: the worst that a snapshot can meet.
type dataset struct {
	perShard int
	// size of every value, in bytes.
	size int
	// filled is when the items that expire began to.
	filled time.Time
	random []byte
}

func newDataset(perShard, size int) *dataset {
	d := &dataset{perShard: perShard, size: size, random: make([]byte, 1<<20)}
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(d.random) // never fails
	return d
}

func (d *dataset) key(buffer []byte, shard, i int) []byte {
	buffer = append(buffer[:0], "item-"...)
	buffer = strconv.AppendInt(buffer, int64(shard), 10)
	buffer = append(buffer, '-')
	return strconv.AppendInt(buffer, int64(i), 10)
}

// value belongs to an item, and to no other.
func (d *dataset) value(buffer []byte, shard, i int) []byte {
	from := (i * 509) % (len(d.random) - d.size)
	buffer = append(buffer[:0], d.random[from:from+d.size]...)
	binary.LittleEndian.PutUint64(buffer, uint64(i)<<16|uint64(shard)) //nolint:gosec // small numbers
	return buffer
}

func (d *dataset) flags(i int) uint32 { return uint32(i % 65521) } //nolint:gosec // small numbers

// ttl is how long an item lives, in seconds; 0 is for ever.
func (d *dataset) ttl(i int) int {
	if i%3 != 0 {
		return 0
	}
	return 3600 + i%3600
}

// each has the items of every shard done with, on several connections.
func (d *dataset) each(ctx context.Context, addresses []string, do func(conn *stream, shard, from, until int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for shard, address := range addresses {
		for c := range connections {
			group.Go(func() error {
				s, err := dial(ctx, address)
				if err != nil {
					return err
				}
				defer s.conn.Close()
				for from := c * batch; from < d.perShard; from += batch * connections {
					if err := s.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
						return err
					}
					if err := do(s, shard, from, min(from+batch, d.perShard)); err != nil {
						return fmt.Errorf("shard %d at %s: %w", shard, address, err)
					}
				}
				return ctx.Err()
			})
		}
	}
	return group.Wait()
}

// stream is a connection on which requests are sent before their answers are read.
type stream struct {
	conn       net.Conn
	r          *bufio.Reader
	w          *bufio.Writer
	key, value []byte
}

func dial(ctx context.Context, address string) (*stream, error) {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &stream{conn: conn, r: bufio.NewReaderSize(conn, 1<<18), w: bufio.NewWriterSize(conn, 1<<18)}, nil
}

// fill stores all items.
func (d *dataset) fill(ctx context.Context, addresses []string) error {
	d.filled = time.Now().Truncate(time.Second)
	return d.each(ctx, addresses, func(s *stream, shard, from, until int) error {
		for i := from; i < until; i++ {
			s.key, s.value = d.key(s.key, shard, i), d.value(s.value, shard, i)
			expiry := int64(0)
			if ttl := d.ttl(i); ttl != 0 { // a point in time, so that it does not matter how long filling takes
				expiry = d.filled.Unix() + int64(ttl)
			}
			fmt.Fprintf(s.w, "set %s %d %d %d\r\n%s\r\n", s.key, d.flags(i), expiry, d.size, s.value)
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

// suspect is an item by its shard.
type suspect struct{ shard, item int }

// comparison is what became of the items.
type comparison struct {
	Items, Missing         int64
	WrongValue, WrongFlags int64
	WrongTTL               int64
	// suspects are those with another time to live than they should have.
	suspects []suspect
}

// lives says whether an item has as many seconds left as it should have now.
func (d *dataset) lives(i, left int) bool {
	ttl := d.ttl(i)
	if ttl == 0 {
		return left == -1
	}
	return left >= 0 && (time.Until(d.filled.Add(time.Duration(ttl)*time.Second))-time.Duration(left)*time.Second).Abs() <= tolerance
}

// askAgain asks for the time that suspects have left, one after the other. Where many
// requests are under way the answer may be as old as the tolerance when it is read.
func (d *dataset) askAgain(ctx context.Context, addresses []string, suspects []suspect) (wrong int64, err error) {
	streams := map[int]*stream{}
	for _, one := range suspects {
		s := streams[one.shard]
		if s == nil {
			if s, err = dial(ctx, addresses[one.shard]); err != nil {
				return wrong, err
			}
			defer s.conn.Close()
			streams[one.shard] = s
		}
		s.key = d.key(s.key, one.shard, one.item)
		fmt.Fprintf(s.w, "mg %s t\r\n", s.key)
		if err := errors.Join(s.conn.SetDeadline(time.Now().Add(time.Minute)), s.w.Flush()); err != nil {
			return wrong, err
		}
		line, err := s.r.ReadString('\n')
		if err != nil {
			return wrong, err
		}
		left, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "HD t")))
		if err != nil {
			return wrong, fmt.Errorf("asking for a time to live: %q", line)
		}
		if !d.lives(one.item, left) {
			wrong++
		}
	}
	return wrong, nil
}

// compare looks at every item.
func (d *dataset) compare(ctx context.Context, addresses []string) (comparison, error) {
	results := make(chan comparison, len(addresses)*connections*(d.perShard/batch+1))
	err := d.each(ctx, addresses, func(s *stream, shard, from, until int) error {
		for i := from; i < until; i++ {
			s.key = d.key(s.key, shard, i)
			fmt.Fprintf(s.w, "mg %s v f t\r\n", s.key)
		}
		if err := s.w.Flush(); err != nil {
			return err
		}
		var c comparison
		for i := from; i < until; i++ {
			if err := d.compareOne(&c, s, shard, i); err != nil {
				return err
			}
		}
		results <- c
		return nil
	})
	close(results)
	var all comparison
	for c := range results {
		all.Items += c.Items
		all.Missing += c.Missing
		all.WrongValue += c.WrongValue
		all.WrongFlags += c.WrongFlags
		all.suspects = append(all.suspects, c.suspects...)
	}
	if err == nil {
		all.WrongTTL, err = d.askAgain(ctx, addresses, all.suspects)
	}
	all.suspects = nil
	return all, err
}

// compareOne reads the answer about an item.
func (d *dataset) compareOne(c *comparison, s *stream, shard, i int) error {
	c.Items++
	line, err := s.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	words := bytes.Fields(line)
	if len(words) == 1 && string(words[0]) == "EN" {
		c.Missing++
		return nil
	}
	if len(words) != 4 || string(words[0]) != "VA" || words[2][0] != 'f' || words[3][0] != 't' {
		return fmt.Errorf("reading an item: %q", line)
	}
	size, err := strconv.Atoi(string(words[1]))
	if err != nil {
		return err
	}
	if string(words[2][1:]) != strconv.FormatUint(uint64(d.flags(i)), 10) {
		c.WrongFlags++
	}
	left, err := strconv.Atoi(string(words[3][1:]))
	if err != nil {
		return err
	}
	if !d.lives(i, left) {
		c.suspects = append(c.suspects, suspect{shard, i})
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

// Package items writes items to shards with an ordinary client and counts how many of them are left.
package items

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"golang.org/x/sync/errgroup"
)

const (
	workers = 4
	// batch is the number of keys of a request.
	batch = 200
	// timeout bounds a request, and the attempts to connect for it, each of which connectTimeout bounds.
	timeout        = 2 * time.Minute
	connectTimeout = time.Second
)

// Set is a number of items. Sets of different names share no key.
type Set struct {
	client    *memcache.Client
	addresses []string
	name      string
	size      int
	// bytes of a value; 0 means that of a small record.
	bytes int
}

// New returns a set of items that the client distributes over the addresses.
func New(name string, size int, addresses ...string) *Set {
	c := memcache.New(addresses...)
	c.Timeout, c.DialContext = timeout, dial
	c.MaxIdleConns = workers
	return &Set{client: c, addresses: addresses, name: name, size: size}
}

// Sized returns a set of items with values of so many bytes.
func Sized(name string, size, bytes int, addresses ...string) *Set {
	s := New(name, size, addresses...)
	s.bytes = bytes
	return s
}

// dial connects, if need be again: a node's proxy learns of another pod a moment after it is ready, and until then it leads to
// one that has no address any more.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	for {
		conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(connectTimeout / 10):
		}
	}
}

// DialWith opens the next connections in another way.
func (s *Set) DialWith(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	s.client.DialContext = dial
}

func (s *Set) key(i int) string { return fmt.Sprintf("%s-%d", s.name, i) }

// value returns the value of a key, which no other key has.
func (s *Set) value(key string) string {
	if s.bytes == 0 {
		return strings.Repeat(key+".", 4)
	}
	return strings.Repeat(key+".", s.bytes/(len(key)+1)+1)[:s.bytes]
}

// Write writes all items.
func (s *Set) Write() error {
	return s.each(1, func(keys []string) error {
		for _, key := range keys {
			if err := s.client.Set(&memcache.Item{Key: key, Value: []byte(s.value(key))}); err != nil {
				return fmt.Errorf("writing item %s: %w", key, err)
			}
		}
		return nil
	})
}

// Count returns how many items are there. An item with a wrong value is an error.
func (s *Set) Count() (int, error) { return s.Sample(1) }

// Sample counts one item in so many.
func (s *Set) Sample(oneIn int) (int, error) {
	var count atomic.Int64
	err := s.each(oneIn, func(keys []string) error {
		found, err := s.client.GetMulti(keys)
		if err != nil {
			return fmt.Errorf("reading items: %w", err)
		}
		for key, item := range found {
			if string(item.Value) != s.value(key) {
				return fmt.Errorf("item %s has the value %q, want %q", key, item.Value, s.value(key))
			}
		}
		count.Add(int64(len(found)))
		return nil
	})
	return int(count.Load()), err
}

// Keep counts the items and returns an error unless a share of them, such as 0.99, is there.
func (s *Set) Keep(share float64) (int, error) {
	count, err := s.Count()
	if err != nil {
		return count, err
	}
	if float64(count) < share*float64(s.size) {
		return count, fmt.Errorf("%d of %d items are there, want %.1f%%", count, s.size, share*100)
	}
	return count, nil
}

// Close closes the connections, which open again when needed.
func (s *Set) Close() error { return s.client.Close() }

// each calls do with batches of one key in so many, in parallel and over new connections: memcached resets open ones
// when it restarts, which the client reports as an error.
func (s *Set) each(oneIn int, do func(keys []string) error) error {
	_ = s.Close() // with TLS, an error if memcached has restarted
	var group errgroup.Group
	group.SetLimit(workers)
	for from := 0; from < s.size; from += batch * oneIn {
		group.Go(func() error {
			keys := make([]string, 0, batch)
			for i := from; i < min(from+batch*oneIn, s.size); i += oneIn {
				keys = append(keys, s.key(i))
			}
			return do(keys)
		})
	}
	return group.Wait()
}

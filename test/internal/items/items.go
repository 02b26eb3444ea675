// Package items writes items through a shard's address with an ordinary client
// and counts how many of them it still gives back.
package items

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"golang.org/x/sync/errgroup"
)

const (
	// workers is how many connections write or read at once.
	workers = 4
	// batch is how many keys one request asks for.
	batch = 200
	// timeout bounds one request.
	timeout = 10 * time.Second
)

// Set is a number of items under one address; two sets of different names share
// no key.
type Set struct {
	client    *memcache.Client
	addresses []string
	name      string
	size      int
	// bytes is how long a value is; 0 is as long as a small record.
	bytes int
}

// New returns the set of that name and size behind an address. Several addresses
// share the items as the client spreads them.
func New(name string, size int, addresses ...string) *Set {
	c := memcache.New(addresses...)
	c.Timeout = timeout
	c.MaxIdleConns = workers
	return &Set{client: c, addresses: addresses, name: name, size: size}
}

// Sized is New of items whose values are that many bytes long.
func Sized(name string, size, bytes int, addresses ...string) *Set {
	s := New(name, size, addresses...)
	s.bytes = bytes
	return s
}

func (s *Set) key(i int) string { return fmt.Sprintf("%s-%d", s.name, i) }

// value returns what belongs to a key, and to no other.
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

// Count returns how many of the items are there. One with another value than it
// was written with is an error, whatever the number.
func (s *Set) Count() (int, error) { return s.count(1) }

// Sample is Count of one item in so many.
func (s *Set) Sample(oneIn int) (int, error) { return s.count(oneIn) }

func (s *Set) count(oneIn int) (int, error) {
	var count atomic.Int64
	err := s.each(oneIn, func(keys []string) error {
		found, err := s.client.GetMulti(keys)
		if err != nil {
			return fmt.Errorf("reading items: %w", err)
		}
		for key, item := range found {
			if string(item.Value) != s.value(key) {
				return fmt.Errorf("item %s holds %q, it was written as %q", key, item.Value, s.value(key))
			}
		}
		count.Add(int64(len(found)))
		return nil
	})
	return int(count.Load()), err
}

// Keep is Count, and an error unless at least the given share of the items, such
// as 0.99, is there.
func (s *Set) Keep(share float64) (int, error) {
	count, err := s.Count()
	if err != nil {
		return count, err
	}
	if float64(count) < share*float64(s.size) {
		return count, fmt.Errorf("%d of %d items are there, %.1f %% were to be kept", count, s.size, share*100)
	}
	return count, nil
}

// Close closes the set's connections. They are opened again as needed.
func (s *Set) Close() error { return s.client.Close() }

// each calls do with one key in so many, a batch at a time, from several goroutines.
//
// It does so over new connections. One that was kept open is reset when memcached
// restarts, and the client tells of that by an error.
func (s *Set) each(oneIn int, do func(keys []string) error) error {
	if err := s.Close(); err != nil {
		return err
	}
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

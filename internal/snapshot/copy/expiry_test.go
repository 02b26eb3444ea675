package copy

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Whatever waits for whatever in a backup or a restore, an item expires when it would have in the cache.
func TestItemExpiresOnTimeHoweverLongACopyTakes(t *testing.T) {
	const stall = 6 * time.Second
	const items = 1000
	key := func(i int) string { return fmt.Sprintf("key-%03d", i) }
	// touch lets a client change when some items expire, after the key dump.
	touch := func(source *shard) {
		for i := 0; i < items; i += 3 {
			source.Touch(key(i), time.Now().Unix()+5000+int64(i))
		}
	}
	wait := func() { pass(stall) }
	for name, prepare := range map[string]func(s *setup, source, target *shard){
		"nothing waits": func(*setup, *shard, *shard) {},
		"clients change it": func(_ *setup, source, _ *shard) {
			source.at("mg", 1, func() { touch(source) })
		},
		"the shard stops while it is read": func(_ *setup, source, _ *shard) {
			source.at("mg", items/2, wait)
		},
		"the shard stops before it is read, and clients change it": func(_ *setup, source, _ *shard) {
			source.at("stats", 4, func() { touch(source); wait() })
		},
		"the shard answers while its clock stands still, and clients change it": func(_ *setup, source, _ *shard) {
			source.at("lru_crawler", 1, func() { source.Freeze(); touch(source); wait() })
		},
		"the clock of the shard stands still when it is first read": func(_ *setup, source, _ *shard) {
			source.at("stats", 1, func() { source.Freeze(); wait() })
			source.at("stats", 0, source.Thaw)
		},
		"the backup stops, and clients change it": func(s *setup, source, _ *shard) {
			s.options.DialContext = stalled(s.options.DialContext, 2, 2, wait)
			source.at("mg", 1, func() { touch(source) })
		},
		"the restore stops when it first reads the clock": func(s *setup, _, _ *shard) {
			s.options.DialContext = stalled(s.options.DialContext, 4, 1, wait)
		},
		"the restore stops when it reads the clock again": func(s *setup, _, _ *shard) {
			s.options.DialContext = stalled(s.options.DialContext, 4, 2, wait)
		},
		"the connection of the backup is lost, and clients change it": func(_ *setup, source, _ *shard) {
			source.at("mg", 1, func() { touch(source) })
			source.at("mg", items/2, func() { wait(); source.Disconnect() })
		},
		"the clock of the shard is off since a restart": func(_ *setup, source, _ *shard) { source.Started += 9 },
		"the shard stops before it stores":              func(_ *setup, _, target *shard) { target.at("ms", 1, wait) },
		"the shard stores while its clock stands still": func(_ *setup, _, target *shard) {
			target.at("ms", 1, func() { target.Freeze(); wait() })
		},
		"the clock of the restored shard stands still when it is first read": func(_ *setup, _, target *shard) {
			target.at("stats", 1, func() { target.Freeze(); pass(stall / 2) })
			target.at("stats", 0, target.Thaw)
		},
		"the clock of the restored shard is off since a restart": func(_ *setup, _, target *shard) { target.Started += 9 },
		"the connection of the restore is lost": func(_ *setup, _, target *shard) {
			target.at("ms", items/2, func() { wait(); target.Disconnect() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source, target := s.shard(), s.shard()
				prepare(s, source, target)
				for i := range items {
					source.Set(key(i), fake.Item{Expires: source.Started + int64(time.Since(source.Zero())/time.Second) + 1000 + int64(i)})
				}
				task := taskOf(source)
				s.save(task)
				task.Servers[0] = target.address
				if outcome := s.load(task); outcome.Restored != items {
					t.Errorf("%+v", outcome)
				}
				wait() // until no server waits
				off := map[time.Duration]int{}
				restored := target.Items()
				for key, item := range source.Items() {
					want := source.Zero().Add(time.Duration(item.Expires-source.Started) * time.Second)
					got := target.Zero().Add(time.Duration(restored[key].Expires-target.Started) * time.Second)
					if got != want {
						off[got.Sub(want)]++
					}
				}
				if len(off) > 0 {
					t.Errorf("items that expire so much later than they should: %v", off)
				}
			})
		})
	}
}

// stalled is a dialer of connections of which the nth waits before it passes on what it has read for so many times.
func stalled(dial protocol.DialContext, nth, reads int, wait func()) protocol.DialContext {
	n := 0
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		n++
		if n == nth && err == nil {
			conn = &stalledConn{conn, reads, wait}
		}
		return conn, err
	}
}

type stalledConn struct {
	net.Conn
	reads int
	wait  func()
}

func (c *stalledConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.reads--; c.reads == 0 {
		c.wait()
	}
	return n, err
}

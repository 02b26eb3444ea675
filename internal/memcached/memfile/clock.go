package memfile

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Clock is what memcached knows about time, in seconds of its own clock.
type Clock struct {
	protocol.Clock
	Now uint32
	// OldestLive and OldestCAS are of the last flush_all, which removed the items that are not
	// newer; 0 without one. OldestLive may be in the future.
	OldestLive uint32
	OldestCAS  uint64
}

// isExpiredOrFlushed is item_is_flushed in items.c, and the check for expiry in do_item_get.
func (c Clock) isExpiredOrFlushed(item *Item) bool {
	if item.Expires != 0 && item.Expires <= c.Now {
		return true
	}
	return c.OldestLive != 0 && c.OldestLive <= c.Now &&
		(item.LastAccess <= c.OldestLive || item.CAS != 0 && item.CAS < c.OldestCAS)
}

// Running is a memcached, such as a protocol.Server.
type Running interface {
	QueryStats(ctx context.Context, requests ...string) ([]protocol.Stats, error)
}

// ClockOfRunning asks a memcached. Versions below 1.6.25 don't show
// OldestCAS, without which items are not recognized as flushed that were stored in the
// second of flush_all.
func ClockOfRunning(ctx context.Context, memcached Running) (Clock, error) {
	stats, err := memcached.QueryStats(ctx, "stats", "stats settings")
	if err != nil {
		return Clock{}, err
	}
	return clockOf(stats[0], stats[1], time.Now())
}

func clockOf(general, settings protocol.Stats, now time.Time) (Clock, error) {
	clock, err := protocol.ClockOf(general, now)
	if err != nil {
		return Clock{}, err
	}
	oldest, err := strconv.ParseUint(settings["oldest"], 10, 32)
	if err != nil {
		return Clock{}, fmt.Errorf("memcached has the invalid setting oldest %.80q", settings["oldest"])
	}
	return Clock{Clock: clock, Now: uint32(now.Sub(clock.Zero) / time.Second), OldestLive: uint32(oldest)}, nil
}

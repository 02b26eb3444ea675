package memfile

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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

// ClockOfMeta returns the clock of a memcached that has stopped, now. meta is the text of
// its memory.meta. While it is stopped its clock advances with the wall clock, as for
// memcached when it starts again. The clock that it saved is late by the time for which it got no processor time before the
// save: Best corrects that with a reading of when it ran.
func ClockOfMeta(meta string, now time.Time) (Clock, error) {
	values := map[string]uint64{}
	for _, line := range strings.Split(meta, "\n") {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "Kcurrent_time", "Kprocess_started", "Kstop_time", "Koldest_live", "Koldest_cas":
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return Clock{}, fmt.Errorf("memory.meta has the invalid line %.80q", line)
			}
			values[name] = n
		}
	}
	for _, name := range []string{"Kcurrent_time", "Kprocess_started", "Kstop_time", "Koldest_live"} {
		if _, ok := values[name]; !ok {
			return Clock{}, fmt.Errorf("memory.meta lacks the line %s", name[1:])
		}
	}
	since := max(now.Unix()-int64(values["Kstop_time"]), 0)
	return Clock{
		Clock: protocol.Clock{
			Zero:    time.Unix(int64(values["Kstop_time"])-int64(values["Kcurrent_time"]), 0),
			Started: int64(values["Kprocess_started"]),
		},
		Now:        uint32(int64(values["Kcurrent_time"]) + since),
		OldestLive: uint32(values["Koldest_live"]),
		OldestCAS:  values["Koldest_cas"],
	}, nil
}

// ClockOfRunning asks a memcached. Versions below 1.6.25 don't show
// OldestCAS, without which items are not recognized as flushed that were stored in the
// second of flush_all.
func ClockOfRunning(ctx context.Context, server protocol.Server) (Clock, error) {
	stats, err := server.QueryStats(ctx, "stats", "stats settings")
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

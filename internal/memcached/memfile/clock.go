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
// memcached when it starts again.
func ClockOfMeta(meta string, now time.Time) (Clock, error) {
	values := map[string]uint64{}
	for _, line := range strings.Split(meta, "\n") {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "Kcurrent_time", "Kstop_time", "Koldest_live", "Koldest_cas":
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return Clock{}, fmt.Errorf("memory.meta has the invalid line %.80q", line)
			}
			values[name] = n
		}
	}
	for _, name := range []string{"Kcurrent_time", "Kstop_time", "Koldest_live"} {
		if _, ok := values[name]; !ok {
			return Clock{}, fmt.Errorf("memory.meta lacks the line %s", name[1:])
		}
	}
	since := max(now.Unix()-int64(values["Kstop_time"]), 0)
	return Clock{
		Now:        uint32(int64(values["Kcurrent_time"]) + since),
		OldestLive: uint32(values["Koldest_live"]),
		OldestCAS:  values["Koldest_cas"],
	}, nil
}

// startOfClock is what the clock of memcached shows when its uptime is 0
// (ITEM_UPDATE_INTERVAL).
const startOfClock = 60

// ClockOfRunning asks a memcached. Versions below 1.6.25 don't show
// OldestCAS, without which items are not recognized as flushed that were stored in the
// second of flush_all.
func ClockOfRunning(ctx context.Context, server protocol.Server) (Clock, error) {
	stats, err := server.QueryStats(ctx, "stats", "stats settings")
	if err != nil {
		return Clock{}, err
	}
	return clockOf(stats[0], stats[1])
}

func clockOf(general, settings protocol.Stats) (Clock, error) {
	uptime, err := strconv.ParseUint(general["uptime"], 10, 32)
	if err != nil {
		return Clock{}, fmt.Errorf("memcached has the invalid uptime %.80q", general["uptime"])
	}
	oldest, err := strconv.ParseUint(settings["oldest"], 10, 32)
	if err != nil {
		return Clock{}, fmt.Errorf("memcached has the invalid setting oldest %.80q", settings["oldest"])
	}
	return Clock{Now: uint32(uptime) + startOfClock, OldestLive: uint32(oldest)}, nil
}

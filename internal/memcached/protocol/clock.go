package protocol

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

const (
	// startOfClock is what the clock of memcached shows when its uptime is 0, in seconds (ITEM_UPDATE_INTERVAL).
	startOfClock = 60
	// longestDuration is the longest exptime that memcached takes for a duration, in seconds; beyond it is a Unix time.
	longestDuration = 30 * 24 * 60 * 60
)

// Clock relates the clock of a memcached to the time of this process. An item expires at a time of memcached's
// clock, which counts seconds; a time to live is the rest until then, which is wrong as soon as it waits. So what is
// copied is the time, and only Exptime turns it into what memcached takes.
type Clock struct {
	// Zero is when the clock showed 0. A reading can only be late: the clock of a memcached without processor
	// time stands still and catches up, and so does the reader. Of several readings the earliest one is right.
	Zero time.Time
	// Started is what memcached takes for the Unix time of Zero. It is another time if the machine's clock was set since, and
	// after warm restarts.
	Started int64
}

// ClockOf returns the clock according to the general stats that were read at a time. Over a new connection, which
// memcached's main thread accepts, they are hardly ever late: that thread also advances the clock.
func ClockOf(general Stats, now time.Time) (Clock, error) {
	uptime, err := strconv.ParseUint(general["uptime"], 10, 32)
	if err != nil {
		return Clock{}, fmt.Errorf("%w: uptime is %.40q", ErrMalformed, general["uptime"])
	}
	unix, err := strconv.ParseInt(general["time"], 10, 64)
	if err != nil || unix < 0 || unix > math.MaxUint32 {
		return Clock{}, fmt.Errorf("%w: time is %.40q", ErrMalformed, general["time"])
	}
	shown := int64(uptime) + startOfClock
	return Clock{Zero: now.Add(-time.Duration(shown) * time.Second), Started: unix - shown}, nil
}

// Best returns the better one of two readings, of which other may be the zero Clock.
func (c Clock) Best(other Clock) Clock {
	if other.Started == c.Started && other.Zero.Before(c.Zero) && !other.Zero.IsZero() {
		return other
	}
	return c
}

// At returns when the clock shows so many seconds.
func (c Clock) At(seconds uint32) time.Time { return c.Zero.Add(time.Duration(seconds) * time.Second) }

// AtUnix returns when the clock shows what memcached takes for a Unix time, as in a key dump.
func (c Clock) AtUnix(unix int64) time.Time {
	return c.Zero.Add(time.Duration(unix-c.Started) * time.Second)
}

// Unix returns what memcached takes for the Unix time at a time, according to this reading.
func (c Clock) Unix(at time.Time) int64 { return c.Started + int64(at.Sub(c.Zero)/time.Second) }

// Exptime returns the argument of a request for an item that expires at a time; the zero time is never. It
// stays correct however long the request waits.
func (c Clock) Exptime(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	// memcached reads 32 bits.
	seconds := int64(math.Round(at.Sub(c.Zero).Seconds()))
	return min(max(c.Started+seconds, longestDuration+1), math.MaxInt32)
}

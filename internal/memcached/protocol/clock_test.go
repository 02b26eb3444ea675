package protocol

import (
	"math"
	"strconv"
	"testing"
	"time"
)

// statsAt are the stats of a memcached whose clock shows so many seconds.
func statsAt(started, shown int64) Stats {
	return Stats{"uptime": strconv.FormatInt(shown-startOfClock, 10), "time": strconv.FormatInt(started+shown, 10)}
}

func TestOfSeveralReadingsOfAClockTheEarliestIsRight(t *testing.T) {
	const started = 1_800_000_000
	began := time.Unix(started, 0)
	read := func(shown, now int64) Clock {
		t.Helper()
		clock, err := ClockOf(statsAt(started, shown), began.Add(time.Duration(now)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return clock
	}
	right := read(100, 100)
	if at := right.At(130); !at.Equal(began.Add(130 * time.Second)) {
		t.Errorf("it shows 130 at %s", at)
	}
	if at := right.AtUnix(started + 130); !at.Equal(right.At(130)) {
		t.Errorf("the Unix time of 130 is %s", at)
	}
	stoodStill, readLate := read(200, 206), read(300, 305)
	for _, clock := range []Clock{stoodStill.Best(right), right.Best(stoodStill), readLate.Best(stoodStill).Best(right), right.Best(Clock{})} {
		if clock != right {
			t.Errorf("the best reading is %+v, want %+v", clock, right)
		}
	}
	another, err := ClockOf(statsAt(started+50, 70), began.Add(200*time.Second))
	if err != nil || another.Best(right) != another {
		t.Errorf("another memcached has the clock of the one before: %v", err)
	}
	for _, stats := range []Stats{{}, {"uptime": "x", "time": "1"}, {"uptime": "1", "time": "x"}, {"uptime": "1", "time": "-1"}} {
		if _, err := ClockOf(stats, began); err == nil {
			t.Errorf("%v are a clock", stats)
		}
	}
}

func TestExptimeIsATimeOfMemcachedsClock(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	right := Clock{Zero: now.Add(-1000 * time.Second), Started: now.Unix() - 1000}
	ahead := Clock{Zero: right.Zero, Started: right.Started + 9}
	for name, c := range map[string]struct {
		clock Clock
		at    time.Time
		want  int64
	}{
		"never":                      {right, time.Time{}, 0},
		"in a second":                {right, now.Add(time.Second), now.Unix() + 1},
		"in 31 days":                 {right, now.Add(31 * 24 * time.Hour), now.Unix() + 31*86400},
		"has expired":                {right, now.Add(-time.Hour), now.Unix() - 3600},
		"its Unix time is ahead":     {ahead, now.Add(time.Second), now.Unix() + 10},
		"long ago, and no duration":  {right, time.Unix(5, 0), longestDuration + 1},
		"later than 32 bits express": {right, time.Unix(math.MaxUint32, 0), math.MaxInt32},
	} {
		if got := c.clock.Exptime(c.at); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

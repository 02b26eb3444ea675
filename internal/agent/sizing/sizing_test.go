package sizing

import (
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"testing"
	"time"
)

const mib = 1 << 20

// shard is a cache of 200 MiB with items of 1 MiB, observed each minute.
type shard struct {
	windows Windows
	reading Reading
	minutes int
	// often are read all the time, daily once a day, and others never.
	often, daily, others int
	hits                 float64
	each                 func(*Reading)
}

func newShard() *shard {
	return &shard{often: 20, daily: 60, others: 20, hits: 1, reading: Reading{At: time.Unix(1e9, 0), Next: time.Minute, Memory: 200 * mib, EvictionAge: math.NaN()}}
}

func (s *shard) pass(d time.Duration) *Report {
	for range int(d.Minutes()) {
		s.reading.Items = s.reading.Items[:0]
		add := func(minutes int, read bool) {
			s.reading.Items = append(s.reading.Items, Item{Age: uint32(60 * minutes), Fetched: read, Bytes: mib, Count: 1})
		}
		for range s.often {
			add(0, true)
		}
		for i := range s.daily {
			add((s.minutes+24*i)%1440, true)
		}
		for range s.others {
			add(s.minutes+1440, false)
		}
		s.reading.Counters.Hits += s.hits
		s.reading.Counters.Stored += 10
		if s.each != nil {
			s.each(&s.reading)
		}
		s.windows.Add(s.reading)
		s.reading.At = s.reading.At.Add(time.Minute)
		s.minutes++
	}
	return s.windows.Report()
}

func (s *shard) want(t *testing.T, after time.Duration, reason Reason, least, most int64) {
	t.Helper()
	if r := s.pass(after); r.Reason != reason || r.Bytes < least*mib || r.Bytes > most*mib {
		t.Errorf("%d MiB, %s, lost %v; want %d to %d, %s", r.Bytes/mib, r.Reason, r.Lost, least, most, reason)
	}
}

func TestMemoryThatIsNotNeeded(t *testing.T) {
	s := newShard()
	s.want(t, 59*time.Minute, ColdStart, 0, 0)
	s.want(t, 2*time.Minute, Observing, 0, 0)
	s.want(t, Week-2*time.Hour, Observing, 0, 0)
	s.want(t, 2*time.Hour, Unused, 80, 100)
	if r := s.windows.Report(); r.Observed != Week-time.Minute && r.Observed != Week || r.Used != [4]float64{20*mib + r.Used[0] - 20*mib, r.Used[1], 80 * mib, 80 * mib} || r.Lost[0] != 0 {
		t.Errorf("%+v", r)
	}
}

func TestHitsThatASmallerCacheLosesAreCounted(t *testing.T) {
	s := newShard()
	s.hits = 1000 // of which 60 a day are no percent
	s.want(t, Week+time.Hour, Unused, 63, 64)
	s = newShard()
	s.daily, s.others = 160, 0
	s.want(t, Week+time.Hour, Enough, 200, 200)
	if r := s.windows.Report(); math.Abs(r.Lost[0]-160.0/1440) > 0.01 || r.Lost[4] > 0.02 {
		t.Errorf("lost %v of the hits, of which %.3f are daily", r.Lost, 160.0/1440)
	}
}

func TestMoreMemory(t *testing.T) {
	for name, c := range map[string]struct {
		each func(*Reading)
		want Reason
	}{
		"items that were read are evicted early": {func(r *Reading) { r.EvictionAge = 600; r.Counters.Evicted += 10 }, EvictedEarly},
		"most of them were never read":           {func(r *Reading) { r.EvictionAge = 600; r.Counters.Evicted += 10; r.Counters.EvictedUnread += 9 }, Observing},
		"they are old":                           {func(r *Reading) { r.EvictionAge = 3700; r.Counters.Evicted += 10 }, Observing},
		"they would expire":                      {func(r *Reading) { r.EvictionAge = 600; r.Counters.Evicted += 10; expireSoon(r) }, Observing},
		"writes are refused":                     {func(r *Reading) { r.Counters.Refused++ }, WritesRefused},
		"few writes are refused":                 {func(r *Reading) { r.Counters.Refused += 0.05 }, Observing},
		"not all the time": {func(r *Reading) {
			r.EvictionAge = math.NaN()
			if r.At.Minute()%20 > 0 {
				r.EvictionAge = 600
			}
			r.Counters.Evicted += 10
		}, Observing},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShard()
			s.each = c.each
			s.want(t, 59*time.Minute, ColdStart, 0, 0)
			least := int64(0)
			if c.want != Observing {
				least = 250
			}
			s.want(t, 2*time.Minute, c.want, least, least)
		})
	}
}

func expireSoon(r *Reading) {
	for i := range r.Items {
		r.Items[i].Age, r.Items[i].Left = 100, 200
	}
}

// What the present memory loses, a smaller one loses too.
func TestItemsEvictedWithinAWeekMayBeLostHits(t *testing.T) {
	for name, c := range map[string]struct {
		age, evicted, unread float64
		want                 Reason
	}{
		"many that were read": {2 * 86400, 12, 0, Enough},
		"few that were read":  {2 * 86400, 2, 0, Unused},
		"without a read":      {2 * 86400, 12, 12, Unused},
		"after a week":        {8 * 86400, 12, 0, Unused},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShard()
			s.hits = 1000
			s.each = func(r *Reading) {
				r.EvictionAge = c.age
				r.Counters.Evicted += c.evicted
				r.Counters.EvictedUnread += c.unread
			}
			least, most := int64(63), int64(100)
			if c.want == Enough {
				least, most = 200, 200
			}
			s.want(t, Week+time.Hour, c.want, least, most)
		})
	}
}

// memcached doesn't record the reads of active items, which are in every smaller cache.
func TestActiveItemsAreAtTheTop(t *testing.T) {
	s := newShard()
	s.often, s.others = 0, 100
	s.each = func(r *Reading) {
		for i := range s.others {
			r.Items[s.daily+i].Active = true
		}
	}
	r := s.pass(day + time.Hour)
	if want := 60.0 / 1440; math.Abs(r.Lost[0]-want) > 0.01 || r.Lost[4] > 0.01 {
		t.Errorf("lost %v of the hits, want %.3f beside the active items and 0 with space for all", r.Lost, want)
	}
}

// The windows of a shard with another memory, or without its items, begin again.
func TestWindowsBeginAgain(t *testing.T) {
	s := newShard()
	s.want(t, Week+time.Hour, Unused, 80, 100)
	s.reading.Memory = 100 * mib
	s.want(t, time.Hour, Observing, 0, 0)
	s.want(t, Week+time.Hour, Enough, 100, 100)
	s.windows = Windows{}
	s.want(t, time.Minute, ColdStart, 0, 0)
	if r := (&Windows{}).Report(); r.Reason != NoData || r.Bytes != 0 {
		t.Errorf("before the first reading: %+v", r)
	}
}

func TestWindowsMoveWithTheItems(t *testing.T) {
	s := newShard()
	s.pass(Week - time.Hour)
	content := s.windows.Marshal()
	if len(content) > 4<<10 {
		t.Fatalf("%d bytes", len(content))
	}
	s.windows = Windows{}
	if !s.windows.Unmarshal(content) {
		t.Fatal("the windows are not read")
	}
	// The next memcached counts from 0, and has fewer items.
	s.reading.Counters, s.reading.At, s.daily = Counters{}, s.reading.At.Add(time.Minute), 30
	before := s.windows.Lost
	s.pass(time.Minute)
	if s.windows.Lost != before {
		t.Error("items that the handover didn't copy count as read")
	}
	s.want(t, 2*time.Hour, Unused, 40, 100)
	if s.windows.Unmarshal(content[1:]) {
		t.Error("windows that are cut are read")
	}
	var layout []byte
	for _, field := range append(reflect.VisibleFields(reflect.TypeFor[state]()), reflect.VisibleFields(reflect.TypeFor[Counters]())...) {
		layout = fmt.Appendln(layout, field.Name, field.Type)
	}
	if sum := crc32.ChecksumIEEE(layout); sum != 0x9dc6d050 {
		t.Errorf("the state has another layout, %#x, and needs another StateName than agents of former releases: %s", sum, layout)
	}
}

// No content stops the agent.
func FuzzWindows(f *testing.F) {
	s := newShard()
	s.pass(time.Hour)
	f.Add(s.windows.Marshal())
	for _, today := range []int64{math.MinInt64, math.MinInt64 / 2, math.MaxInt64} {
		s.windows.Today = today
		f.Add(s.windows.Marshal())
	}
	reading := s.reading
	f.Fuzz(func(t *testing.T, content []byte) {
		var w Windows
		w.Unmarshal(content)
		w.Memory = reading.Memory
		w.Report()
		for range 2 {
			w.Add(reading)
		}
		if now := reading.At.Unix(); w.Today > now || now-w.Today >= int64(day.Seconds()) {
			t.Errorf("the day began at %d, and now is %d", w.Today, now)
		}
		w.Report()
	})
}

// The clock of a node can be ahead until it is synchronized.
func TestClockIsSetBack(t *testing.T) {
	const year = 365 * 24 * time.Hour
	s := newShard()
	s.reading.At = s.reading.At.Add(year)
	s.want(t, 2*time.Hour, Observing, 0, 0)
	s.reading.At = s.reading.At.Add(-year)
	s.want(t, 2*time.Hour, Observing, 0, 0)
	s.want(t, Week, Unused, 80, 100)
}

func TestAWeekWithGapsIsNotEnough(t *testing.T) {
	s := newShard()
	for range 8 {
		s.pass(20 * time.Hour)
		s.reading.At = s.reading.At.Add(4 * time.Hour)
	}
	s.want(t, time.Minute, Observing, 0, 0)
}

// A smaller memory would have lost no hit of what a client deletes all at once.
func TestFlushedItemsDoNotCount(t *testing.T) {
	s := newShard()
	s.pass(time.Hour)
	before := s.windows.Lost
	s.reading.Flushes, s.daily, s.others = 1, 0, 0
	s.pass(time.Minute)
	if s.windows.Lost != before {
		t.Error("items that a client has flushed count as read")
	}
	if s.pass(time.Hour); s.windows.Covered[0] != 119*60 {
		t.Errorf("%v seconds are observed", s.windows.Covered)
	}
}

// After an outage of the agent, nothing is known about the time in between.
func TestReadingsFarApartDoNotCount(t *testing.T) {
	s := newShard()
	s.pass(time.Hour)
	before := s.windows.Lost
	s.reading.At, s.daily = s.reading.At.Add(time.Hour), 0
	s.pass(time.Minute)
	if s.windows.Lost != before {
		t.Error("items that disappeared within an hour count as read")
	}
}

// memcached records neither the first read of an item as a use, nor which items it evicts.
func TestFirstReadsCountAndEvictionsDoNot(t *testing.T) {
	for name, c := range map[string]struct {
		each func(r *Reading, minute int, s *shard)
		want float64
	}{
		"a first read each ten minutes": {func(r *Reading, minute int, _ *shard) {
			for i := range minute / 10 {
				r.Items[len(r.Items)-1-i].Fetched = true
			}
		}, 0.1},
		"an eviction each ten minutes": {func(r *Reading, minute int, s *shard) {
			r.EvictionAge = 1e9
			if minute%10 == 9 {
				s.others--
				r.Counters.Evicted++
				r.Counters.EvictedUnread++
				r.Items = r.Items[:len(r.Items)-1]
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShard()
			s.daily, s.others = 0, 160
			s.each = func(r *Reading) { c.each(r, s.minutes, s) }
			if r := s.pass(2 * time.Hour); math.Abs(r.Lost[0]-c.want) > 0.03 {
				t.Errorf("lost %v of the hits, want %.2f", r.Lost, c.want)
			}
		})
	}
}

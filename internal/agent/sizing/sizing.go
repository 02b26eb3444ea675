// Package sizing recommends how much memory a shard needs, by values: each minute it gets memcached's statistics and
// the sample of the memory file that the agent takes for the idle memory. It has no clock and no client.
//
// The items, ordered by their last use, are a stack, and the memory of those above a depth is the size of a smaller cache.
// What crosses a depth downwards and neither expires, is evicted, nor stays below it, has been used again: these are the
// hits that the smaller cache would have missed. docs/adr/0031 has what was measured.
package sizing

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
	"unsafe"
)

const (
	// depths is how many smaller sizes are observed, each one step smaller than the one before: down to a twentieth.
	depths = 32
	step   = 1.1
	// days are those of the window, and the present one.
	days = 8
	day  = 24 * time.Hour
	// Week is how long the windows reach back.
	Week = 7 * day
	// silence follows a cold start.
	silence = time.Hour
	// patience is how long a condition for more memory has to last.
	patience = 30 * time.Minute
	// gap is the longest time between two readings that belong together, in intervals.
	gap = 2
	// tolerated is the share of the hits that a smaller cache may lose.
	tolerated = 0.01
	// reserve is for what the week has not shown.
	reserve = 1.12
	// growth is one step up.
	growth = 1.25
	// covered is the share of the week that is needed, and smallest the least spec.memory.
	covered  = 0.9
	smallest = 64 << 20
	// goal is the least age of evicted items.
	goal = time.Hour
	// shortLived is the share of the items whose time to live is shorter than the age of evicted ones, with which that is no
	// loss.
	shortLived = 0.9
	// unread is the share of evicted items without a read, above which they are not worth more memory.
	unread = 0.8
	// refusals is the share of the stored items for which memcached has no memory.
	refusals = 0.01
	// steep is the share of the hits that the last sixth of the memory contributes if more memory contributes more.
	steep = 0.004
)

// Reason is why a recommendation is what it is, or why there is none.
type Reason string

// The reasons of a recommendation.
const (
	Enough        Reason = "Enough"
	Unused        Reason = "Unused"
	EvictedEarly  Reason = "EvictedEarly"
	WritesRefused Reason = "WritesRefused"
)

// The reasons why there is none.
const (
	ColdStart Reason = "ColdStart"
	Observing Reason = "Observing"
	Updating  Reason = "Updating"
	NoData    Reason = "NoData"
)

// Item is an item of the sample.
type Item struct {
	// Age is the seconds since its last use, Left those until it expires, 0 if it never does.
	Age, Left uint32
	// Fetched is whether a client has read it since it was stored. Active means that memcached doesn't record its
	// reads, since it is read often.
	Fetched, Active bool
	// Bytes is the memory and Count the number of items for which it stands.
	Bytes, Count float64
}

// weight is 2 for an item without a read: memcached doesn't record the first one as a use, so its items are counted both
// as used again and as read for the first time.
func (i Item) weight() float64 {
	if i.Fetched {
		return i.Count
	}
	return 2 * i.Count
}

// Reading is what the agent knows at one moment.
type Reading struct {
	At time.Time
	// Next is how long after this reading the next one follows.
	Next time.Duration
	// Memory is the memory for items in bytes.
	Memory int64
	// EvictionAge is the least idle time of the items that are being evicted, in seconds; NaN while none are.
	EvictionAge float64
	Counters    Counters
	// Flushes is how often clients have emptied memcached since its start: no hits are lost with these items.
	Flushes float64
	Items   []Item
}

// Counters are those of memcached since its start.
type Counters struct{ Hits, Stored, Evicted, EvictedUnread, Refused float64 }

// Windows are what is known of a week. The zero value is a shard that starts without items at its first reading.
type Windows struct {
	state
	// continues is whether the last reading is of the present memcached. It had been emptied so often.
	continues bool
	flushes   float64
}

// StateName is the name of the windows in what agents keep. Another layout or meaning of the state has another name.
const StateName = "size"

// state has a fixed size.
type state struct {
	Memory                int64
	Started, Began, Last  int64 // in Unix seconds
	Interval              int64
	EarlySince, FullSince int64
	Counters              Counters
	// Bounds are the last use of the item at each depth, Below is the weight of the items that stay below it.
	Bounds [depths]int64
	Below  [depths]float64
	// Lost has for each day and depth the hits below it.
	Lost [days][depths]float32
	Hits [days]float32
	// Evicted has the items that were read and evicted within a week of their last use: each can be a hit that the present
	// memory loses.
	Evicted [days]float32
	// Used is the most memory that was used within a day, and Busy within three intervals.
	Used, Busy [days]float32
	// Covered is for how many seconds of each day the readings belong together.
	Covered [days]float32
	Today   int64
	// UsedNow is the memory used within each of Times.
	UsedNow [len(Times)]float64
}

// Times are those of the memory in use.
var Times = [...]time.Duration{5 * time.Minute, time.Hour, day}

// Add takes a reading. It sorts the items.
func (w *Windows) Add(r Reading) {
	now := r.At.Unix()
	if w.Memory != r.Memory {
		started := w.Started
		*w = Windows{state: state{Memory: r.Memory, Began: now, Started: cmp.Or(started, now), Today: now}}
	}
	for _, at := range []*int64{&w.Started, &w.Began, &w.Today, &w.EarlySince, &w.FullSince} {
		*at = min(*at, now) // the clock was set back
	}
	passed := (now - w.Today) / int64(day.Seconds())
	w.Today += passed * int64(day.Seconds())
	for range min(passed, days) {
		copy(w.Lost[1:], w.Lost[:])
		copy(w.Hits[1:], w.Hits[:])
		copy(w.Evicted[1:], w.Evicted[:])
		copy(w.Covered[1:], w.Covered[:])
		copy(w.Used[1:], w.Used[:])
		copy(w.Busy[1:], w.Busy[:])
		w.Lost[0], w.Hits[0], w.Evicted[0], w.Covered[0], w.Used[0], w.Busy[0] = [depths]float32{}, 0, 0, 0, 0, 0
	}
	added := Counters{r.Counters.Hits - w.Counters.Hits, r.Counters.Stored - w.Counters.Stored, r.Counters.Evicted - w.Counters.Evicted,
		r.Counters.EvictedUnread - w.Counters.EvictedUnread, r.Counters.Refused - w.Counters.Refused}
	continues := w.continues && r.Flushes <= w.flushes && now > w.Last && now-w.Last <= gap*w.Interval && added.Hits >= 0 && added.Stored >= 0 && added.Evicted >= 0
	w.addAges(r, added, continues)
	w.addStack(r, added, continues)
	w.Counters, w.Last, w.Interval, w.continues = r.Counters, now, int64(r.Next.Seconds()), true
	w.flushes = r.Flushes
}

// addAges follows what the newest windows show: the memory in use, and what is evicted or refused too early.
func (w *Windows) addAges(r Reading, added Counters, continues bool) {
	w.UsedNow = [len(Times)]float64{}
	busy, expired := 0.0, 0
	for _, item := range r.Items {
		age := item.Age
		if item.Active {
			age = 0
		}
		if float64(age) < 3*r.Next.Seconds() {
			busy += item.Bytes
		}
		for i, within := range Times {
			if float64(age) < within.Seconds() {
				w.UsedNow[i] += item.Bytes
			}
		}
		if item.Left > 0 && float64(item.Age+item.Left) <= r.EvictionAge {
			expired++
		}
	}
	w.Used[0] = max(w.Used[0], float32(w.UsedNow[len(Times)-1]))
	w.Busy[0] = max(w.Busy[0], float32(busy))
	now := r.At.Unix()
	early := r.EvictionAge < goal.Seconds() && float64(expired) < shortLived*float64(len(r.Items))
	since(&w.EarlySince, now, early && (!continues || added.Evicted == 0 || added.EvictedUnread <= unread*added.Evicted))
	since(&w.FullSince, now, continues && added.Refused > refusals*max(added.Stored, 1))
}

// since keeps when something began to be true without an interruption, 0 while it is false.
func since(begin *int64, now int64, holds bool) {
	if !holds {
		*begin = 0
	} else if *begin == 0 {
		*begin = now
	}
}

// addStack counts the hits below each depth. Items that are read often are at the top whatever memcached has recorded, but
// count below until it records another use: otherwise one that is no longer read often would appear below from nowhere.
func (w *Windows) addStack(r Reading, added Counters, continues bool) {
	now := r.At.Unix()
	sort.Sort(oldestFirst(r.Items))
	above := 0.0
	for _, item := range r.Items {
		above += item.Bytes
	}
	evicted := added.Evicted + added.EvictedUnread
	oldest, staying := 0, 0.0
	former, remaining := 0, 0.0
	depth := float64(w.Memory)
	for k := range depths {
		depth /= step
		// Those of the same second stay together.
		for ; oldest < len(r.Items) && (above > depth || oldest > 0 && r.Items[oldest].Age == r.Items[oldest-1].Age); oldest++ {
			item := r.Items[oldest]
			if !item.Active {
				above -= item.Bytes
			}
			if item.Left == 0 || float64(item.Left) > r.Next.Seconds() {
				staying += item.weight()
			}
		}
		if continues {
			for ; former < len(r.Items) && now-int64(r.Items[former].Age) <= w.Bounds[k]; former++ {
				remaining += r.Items[former].weight()
			}
			left := w.Below[k] - remaining
			if float64(now-w.Bounds[k]) <= r.EvictionAge {
				left -= evicted // which were below
			}
			w.Lost[0][k] += float32(left)
		}
		w.Bounds[k], w.Below[k] = now-math.MaxInt32, staying // nothing is below, or what the last item is
		if oldest > 0 {
			w.Bounds[k] = now - int64(r.Items[oldest-1].Age)
		}
	}
	if continues {
		w.Hits[0] += float32(added.Hits)
		if r.EvictionAge < Week.Seconds() {
			w.Evicted[0] += float32(added.Evicted - added.EvictedUnread)
		}
		w.Covered[0] += float32(now - w.Last)
	}
}

// lostRatio returns the share of the week's hits that a cache with a part of the memory would have lost.
func (w *Windows) lostRatio(part float64) float64 {
	before, from := 0.0, 1.0
	for k := range depths {
		lost, to := w.lost(k), from/step
		if part >= to {
			return before + (lost-before)*(from-part)/(from-to)
		}
		before, from = lost, to
	}
	return before
}

// lost never decreases with the depth.
func (w *Windows) lost(k int) float64 {
	most := 0.0
	for k := range k + 1 {
		sum := 0.0
		for d := range days {
			sum += float64(w.Lost[d][k])
		}
		most = max(most, sum)
	}
	return min(most/max(total(w.Hits), 1), 1)
}

func total(of [days]float32) (total float64) {
	for _, day := range of {
		total += float64(day)
	}
	return total
}

// Parts are those of the memory for which a report has the lost hits, in percent.
var Parts = [...]int{50, 60, 70, 80, 90}

// Report is what the metrics show.
type Report struct {
	Recommendation
	Observed time.Duration
	// Used is the memory used within each of Times, and the most of a day in the week.
	Used [len(Times) + 1]float64
	// Lost are the shares of the hits.
	Lost [len(Parts)]float64
}

// Report returns what is known by the last reading.
func (w *Windows) Report() *Report {
	r := &Report{Recommendation: w.recommend(), Observed: w.observed()}
	copy(r.Used[:], w.UsedNow[:])
	r.Used[len(Times)] = float64(slices.Max(w.Used[:]))
	for i, part := range Parts {
		r.Lost[i] = w.lostRatio(float64(part) / 100)
	}
	return r
}

// observed is how much of the week the readings cover.
func (w *Windows) observed() time.Duration {
	return min(time.Duration(total(w.Covered))*time.Second, Week)
}

// Recommendation is an amount of memory, or 0 with the reason why there is none.
type Recommendation struct {
	Bytes  int64
	Reason Reason
}

// recommend returns the memory that the shard needs by the last reading.
func (w *Windows) recommend() Recommendation {
	lasts := func(since int64) bool { return since > 0 && w.Last-since >= int64(patience.Seconds()) }
	more := int64(float64(w.Memory) * growth)
	steepness := w.lostRatio(1 / (step * step))
	week := w.Last-w.Began >= int64(Week.Seconds())-gap*w.Interval && w.observed().Seconds() >= covered*Week.Seconds()
	switch {
	case w.Last == 0:
		return Recommendation{Reason: NoData}
	case w.Last-w.Started < int64(silence.Seconds()):
		return Recommendation{Reason: ColdStart}
	case lasts(w.FullSince):
		return Recommendation{more, WritesRefused}
	case lasts(w.EarlySince):
		return Recommendation{more, EvictedEarly}
	case !week: // also if too many readings are missing
		return Recommendation{Reason: Observing}
	case steepness > steep && w.Counters.Evicted > 0:
		return Recommendation{more, EvictedEarly}
	}
	// A smaller cache also loses what the present one does.
	bound := tolerated - total(w.Evicted)/max(total(w.Hits), 1)
	least := float64(w.Memory)
	for k := range depths {
		if w.lost(k) > bound {
			break
		}
		least /= step
	}
	// Between two depths.
	for part := least / step; part < least; part *= 1.01 {
		if w.lostRatio(part/float64(w.Memory)) <= bound {
			least = part
			break
		}
	}
	least = max(least, float64(slices.Max(w.Busy[:])), smallest/reserve)
	if bytes := least * reserve; bytes < 0.9*float64(w.Memory) {
		return Recommendation{int64(bytes), Unused}
	}
	return Recommendation{w.Memory, Enough}
}

// Marshal returns at most 4 KiB: the memory of the state. All architectures of the agent have 64 bits and are
// little-endian, and encoding/binary would make the agent 50 KB larger.
func (w *Windows) Marshal() []byte { return bytes.Clone(w.memory()) }

// Unmarshal reads what Marshal has returned, and returns false for other data.
func (w *Windows) Unmarshal(data []byte) bool {
	w.continues = false
	return len(data) == len(w.memory()) && copy(w.memory(), data) > 0
}

func (w *Windows) memory() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&w.state)), unsafe.Sizeof(w.state)) //nolint:gosec // it has no pointers
}

// oldestFirst sorts items.
type oldestFirst []Item

func (s oldestFirst) Len() int           { return len(s) }
func (s oldestFirst) Less(i, j int) bool { return s[i].Age > s[j].Age }
func (s oldestFirst) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }

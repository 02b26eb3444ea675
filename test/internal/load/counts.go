package load

import (
	"math"
	"time"
)

// Counts is what came of the operations that were due within a bucket of time, on
// one shard or on all.
type Counts struct {
	// Gets = Hits + Misses + Wrong + those that failed.
	Gets, Hits, Misses int
	// Wrong is how many gets were answered with another key's value.
	Wrong int
	// Sets of the mix and Fills after misses; those that failed too.
	Sets, Fills int
	// Errors is how many gets, sets and fills failed, after the retry.
	Errors int
	// Silence is the longest time without any answer that ended here.
	Silence time.Duration
	// Latencies from when an operation was due until its answer.
	Latencies Histogram
}

// Ratio is the share of all gets that were hits, from 0 to 1; without gets it is
// NaN. A get that failed is one without a hit.
func (c Counts) Ratio() float64 { return float64(c.Hits) / float64(c.Gets) }

func (c *Counts) add(other Counts) {
	c.Gets += other.Gets
	c.Hits += other.Hits
	c.Misses += other.Misses
	c.Wrong += other.Wrong
	c.Sets += other.Sets
	c.Fills += other.Fills
	c.Errors += other.Errors
	c.Silence = max(c.Silence, other.Silence)
	for i, n := range other.Latencies {
		c.Latencies[i] += n
	}
}

const (
	// shortest is the upper end of a Histogram's first bin.
	shortest = 50 * time.Microsecond
	// perOctave is how many bins it has for each doubling, which makes a quantile
	// at most 9 % too long.
	perOctave = 8
	// bins reach up to 0.6 s, which is longer than the patience of a client.
	bins = 1 + perOctave*27/2
)

// Histogram counts durations in bins of growing width.
type Histogram [bins]uint32

func (h *Histogram) add(d time.Duration) {
	i := 0
	if d > shortest {
		i = int(math.Ceil(perOctave * math.Log2(float64(d)/float64(shortest))))
	}
	h[min(i, bins-1)]++
}

// Quantile returns a duration which that share of all, such as 0.99, does not
// exceed; 0 when there are none.
func (h Histogram) Quantile(share float64) time.Duration {
	total := uint64(0)
	for _, n := range h {
		total += uint64(n)
	}
	left := uint64(math.Ceil(share * float64(total)))
	if left == 0 {
		return 0
	}
	for i, n := range h {
		if uint64(n) >= left {
			return time.Duration(float64(shortest) * math.Exp2(float64(i)/perOctave))
		}
		left -= uint64(n)
	}
	return 0
}

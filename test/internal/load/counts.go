package load

import (
	"math"
	"time"
)

// Counts are the results of the operations that were due in a bucket of time, of one shard or of all.
type Counts struct {
	// Gets = Hits + Misses + Wrong + those that failed.
	Gets, Hits, Misses int
	// Wrong counts gets that returned the value of another key.
	Wrong int
	// Sets, and Fills after misses, including those that failed.
	Sets, Fills int
	// Errors counts gets, sets and fills that failed after the retry.
	Errors int
	// Silence is the longest time without an answer that finished in the bucket.
	Silence time.Duration
	// Latencies from when an operation was due until its answer.
	Latencies Histogram
}

// Ratio is the share of hits of all gets, including those that failed. Without gets it is NaN.
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
	// shortest is the upper bound of the first bin of a Histogram.
	shortest = 50 * time.Microsecond
	// perOctave bins per doubling make a quantile at most 9% too long.
	perOctave = 8
	// bins reach up to 0.6 s, which is longer than Patience.
	bins = 1 + perOctave*27/2
)

// Histogram counts durations in bins of increasing width.
type Histogram [bins]uint32

func (h *Histogram) add(d time.Duration) {
	i := 0
	if d > shortest {
		i = int(math.Ceil(perOctave * math.Log2(float64(d)/float64(shortest))))
	}
	h[min(i, bins-1)]++
}

// Quantile returns a duration that a share of all durations does not exceed; 0 without durations.
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

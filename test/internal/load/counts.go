package load

import "time"

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
	Latencies []time.Duration
}

// Ratio is the share of hits of all gets, including those that failed. Without gets it is NaN.
func (c Counts) Ratio() float64 { return float64(c.Hits) / float64(c.Gets) }

// add adds everything except for the latencies, which [Report.Latency] reads.
func (c *Counts) add(other Counts) {
	c.Gets += other.Gets
	c.Hits += other.Hits
	c.Misses += other.Misses
	c.Wrong += other.Wrong
	c.Sets += other.Sets
	c.Fills += other.Fills
	c.Errors += other.Errors
	c.Silence = max(c.Silence, other.Silence)
}

package load

import (
	"slices"
	"sync"
	"time"
)

type outcome int

const (
	failed outcome = iota
	hit
	miss
	wrong
	stale
	stored
)

// Counts are the results of the operations that were due in a bucket of time, of one shard or of all.
type Counts struct {
	// Gets = Hits + Misses + Wrong + those that failed.
	Gets, Hits, Misses int
	// Wrong counts gets that returned the value of another key.
	Wrong int
	// Stale counts hits that returned an older value than the last write before the get, and Old those that had been replaced for Old or
	// longer. Oldest is the longest such time.
	Stale, Old int
	Oldest     time.Duration
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
	c.Stale += other.Stale
	c.Old += other.Old
	c.Oldest = max(c.Oldest, other.Oldest)
	c.Sets += other.Sets
	c.Fills += other.Fills
	c.Errors += other.Errors
	c.Silence = max(c.Silence, other.Silence)
}

// recorder counts the operations of one shard in buckets.
type recorder struct {
	began time.Time

	lock     sync.Mutex
	buckets  []Counts
	answered time.Time // last
}

func newRecorder(began time.Time) *recorder {
	return &recorder{began: began, answered: began}
}

// record counts an operation that finished now in the bucket in which it was due, and a silence in the one in which it
// finished.
func (r *recorder) record(o operation, result outcome, now time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if result != failed {
		r.silence(now)
	}
	c := r.at(o.due)
	switch o.kind {
	case get:
		c.Gets++
	case set:
		c.Sets++
	case fill:
		c.Fills++
	}
	switch result {
	case failed:
		c.Errors++
		return
	case hit:
		c.Hits++
	case stale:
		c.Hits++
		c.Stale++
		if o.replaced >= Old {
			c.Old++
		}
		c.Oldest = max(c.Oldest, o.replaced)
	case miss:
		c.Misses++
	case wrong:
		c.Wrong++
	}
	c.Latencies = append(c.Latencies, now.Sub(o.due))
}

func (r *recorder) silence(now time.Time) {
	c := r.at(now)
	c.Silence = max(c.Silence, now.Sub(r.answered))
	r.answered = now
}

func (r *recorder) at(t time.Time) *Counts {
	i := max(int(t.Sub(r.began)/Every), 0)
	for len(r.buckets) <= i {
		r.buckets = append(r.buckets, Counts{})
	}
	return &r.buckets[i]
}

// counted returns the buckets that began before now. The last one has the current silence.
func (r *recorder) counted(now time.Time) []Counts {
	r.lock.Lock()
	defer r.lock.Unlock()
	last := r.at(now)
	buckets := slices.Clone(r.buckets[:1+max(int(now.Sub(r.began)/Every), 0)])
	buckets[len(buckets)-1].Silence = max(last.Silence, now.Sub(r.answered))
	return buckets
}

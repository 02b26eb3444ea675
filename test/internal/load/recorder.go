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
	stored
)

// recorder counts the operations of one shard in buckets.
type recorder struct {
	began time.Time
	every time.Duration

	lock     sync.Mutex
	buckets  []Counts
	answered time.Time // last
}

func newRecorder(began time.Time, every time.Duration) *recorder {
	return &recorder{began: began, every: every, answered: began}
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
	i := max(int(t.Sub(r.began)/r.every), 0)
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
	buckets := slices.Clone(r.buckets[:1+max(int(now.Sub(r.began)/r.every), 0)])
	buckets[len(buckets)-1].Silence = max(last.Silence, now.Sub(r.answered))
	return buckets
}

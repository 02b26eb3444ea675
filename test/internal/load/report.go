package load

import (
	"math"
	"time"
)

// Report is what came of a load, in buckets of time.
type Report struct {
	// Began is when the first bucket begins.
	Began time.Time
	// Every is how long a bucket is.
	Every time.Duration
	// Shards are the buckets of each, by the order of the addresses; all have as
	// many.
	Shards [][]Counts
}

// Buckets is how many buckets of time there are.
func (r Report) Buckets() int {
	if len(r.Shards) == 0 {
		return 0
	}
	return len(r.Shards[0])
}

// At is when a bucket begins.
func (r Report) At(bucket int) time.Time { return r.Began.Add(time.Duration(bucket) * r.Every) }

// Bucket sums one bucket over the shards.
func (r Report) Bucket(i int) Counts {
	var sum Counts
	for _, shard := range r.Shards {
		sum.add(shard[i])
	}
	return sum
}

// Span is a time from, including, until, excluding.
type Span struct{ From, Until time.Time }

// buckets returns the first bucket that begins within the span and the first after
// it that does not.
func (r Report) buckets(s Span) (from, until int) {
	index := func(t time.Time) int {
		return min(max(int(math.Ceil(float64(t.Sub(r.Began))/float64(r.Every))), 0), r.Buckets())
	}
	return index(s.From), max(index(s.From), index(s.Until))
}

// Sum sums the buckets that begin within a span, over the shards.
func (r Report) Sum(s Span) Counts {
	var sum Counts
	from, until := r.buckets(s)
	for i := from; i < until; i++ {
		sum.add(r.Bucket(i))
	}
	return sum
}

// Silences are the longest times without an answer that ended within a span, by
// shard.
func (r Report) Silences(s Span) []time.Duration {
	silences := make([]time.Duration, len(r.Shards))
	from, until := r.buckets(s)
	for i, shard := range r.Shards {
		for _, c := range shard[from:until] {
			silences[i] = max(silences[i], c.Silence)
		}
	}
	return silences
}

// Loss is what a change cost in hits.
type Loss struct {
	// Hits that the load would have had without the change, beyond those it had:
	// reads that went to the database for nothing else. Chance makes it less than 0
	// where nothing was lost.
	Hits float64
	// Seconds of the traffic before the change in which there are as many hits.
	Seconds float64
}

// Loss compares the hits of a span with those at the hit ratio of another, before.
func (r Report) Loss(before, after Span) Loss {
	b, a := r.Sum(before), r.Sum(after)
	from, until := r.buckets(before)
	perSecond := float64(b.Hits) / (float64(until-from) * r.Every.Seconds())
	lost := b.Ratio()*float64(a.Gets) - float64(a.Hits)
	return Loss{Hits: lost, Seconds: lost / perSecond}
}

// Back returns the beginning of the first bucket at or after since from which the
// hit ratio over a window is at least the given one, and whether there is one. A
// window that is not over yet does not count.
func (r Report) Back(since time.Time, ratio float64, window time.Duration) (time.Time, bool) {
	from, _ := r.buckets(Span{From: since, Until: since})
	wide := int(math.Ceil(float64(window) / float64(r.Every)))
	for i := from; i+wide <= r.Buckets(); i++ {
		if r.Sum(Span{From: r.At(i), Until: r.At(i + wide)}).Ratio() >= ratio {
			return r.At(i), true
		}
	}
	return time.Time{}, false
}

package load

import (
	"math"
	"slices"
	"time"
)

// Report has the results of a load in buckets of time.
type Report struct {
	// Began is the start of the first bucket.
	Began time.Time
	// Every is the length of a bucket.
	Every time.Duration
	// Shards have the buckets of each shard by ordinal, the same number for all.
	Shards [][]Counts
}

// Buckets returns the number of buckets.
func (r Report) Buckets() int {
	if len(r.Shards) == 0 {
		return 0
	}
	return len(r.Shards[0])
}

// At returns the start of a bucket.
func (r Report) At(bucket int) time.Time { return r.Began.Add(time.Duration(bucket) * r.Every) }

// Bucket returns the sum of one bucket over the shards.
func (r Report) Bucket(i int) Counts {
	var sum Counts
	for _, shard := range r.Shards {
		sum.add(shard[i])
	}
	return sum
}

// Span is a time from From to before Until.
type Span struct{ From, Until time.Time }

// buckets returns the first bucket that begins in the span and the first after it.
func (r Report) buckets(s Span) (from, until int) {
	index := func(t time.Time) int {
		return min(max(int(math.Ceil(float64(t.Sub(r.Began))/float64(r.Every))), 0), r.Buckets())
	}
	return index(s.From), max(index(s.From), index(s.Until))
}

// Sum returns the sum of the buckets that begin in a span, over the shards.
func (r Report) Sum(s Span) Counts {
	var sum Counts
	from, until := r.buckets(s)
	for i := from; i < until; i++ {
		sum.add(r.Bucket(i))
	}
	return sum
}

// Silences returns the longest time without an answer that finished in a span, by shard.
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

// Latency returns the shortest latency that a share of the operations of a span does not exceed; 0 without operations.
func (r Report) Latency(s Span, share float64) time.Duration {
	var all []time.Duration
	from, until := r.buckets(s)
	for _, shard := range r.Shards {
		for _, c := range shard[from:until] {
			all = append(all, c.Latencies...)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(math.Ceil(share*float64(len(all))))-1]
}

// Loss is the cost of a change in hits.
type Loss struct {
	// Hits is the difference to the hits without the change: additional reads of the database. Chance can make it
	// negative.
	Hits float64
	// Seconds of the traffic before the change with as many hits.
	Seconds float64
}

// Loss compares the hits of a span with those at the hit ratio of a span before.
func (r Report) Loss(before, after Span) Loss {
	b, a := r.Sum(before), r.Sum(after)
	from, until := r.buckets(before)
	perSecond := float64(b.Hits) / (float64(until-from) * r.Every.Seconds())
	lost := b.Ratio()*float64(a.Gets) - float64(a.Hits)
	return Loss{Hits: lost, Seconds: lost / perSecond}
}

// Back returns the first bucket at or after since from which the hit ratio over a window is at least the given one. A
// window that is not complete does not count.
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

package main

import (
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/load"
)

// figures are what a run comes to.
type figures struct {
	// before is the hit ratio before the change.
	before float64
	// noise is the loss over the second half of the time before the change, by the
	// ratio in the first half: what chance comes to where nothing happens.
	noise    load.Loss
	noiseFor time.Duration
	// errorsBefore is how many operations failed before the change: none on a
	// machine that has nothing else to do.
	errorsBefore int
	// loss from the change on, until the end of the run.
	loss load.Loss
	// lowest hit ratio of a bucket after the change.
	lowest float64
	// errors after the change.
	errors int
	// silence is the longest time without an answer of a shard.
	silence time.Duration
	// took is how long the upgrade went on.
	took time.Duration
	// back is how long after the change the hit ratio was back for good; where it
	// was not, isBack is false and last is what it had come to.
	back   time.Duration
	isBack bool
	last   float64
	// ran is how long the load went on after the change.
	ran time.Duration
	// unread of items that the load does not ask for, and how many of them were
	// kept.
	unread, kept int
	// p99 of the latency before and after the change.
	p99Before, p99After time.Duration
}

func (r result) figures() figures {
	began := r.report.Began.Add(settle)
	half := began.Add(r.change.Sub(began) / 2)
	before, after := load.Span{From: began, Until: r.change}, load.Span{From: r.change, Until: r.until}
	was, is := r.report.Sum(before), r.report.Sum(after)
	f := figures{
		before:       was.Ratio(),
		noise:        r.report.Loss(load.Span{From: began, Until: half}, load.Span{From: half, Until: r.change}),
		noiseFor:     r.change.Sub(half),
		errorsBefore: was.Errors,
		loss:         r.report.Loss(before, after),
		lowest:       1,
		errors:       is.Errors,
		silence:      slices.Max(r.report.Silences(after)),
		took:         r.took,
		last:         r.report.Sum(load.Span{From: r.until.Add(-backOver), Until: r.until}).Ratio(),
		ran:          r.until.Sub(r.change),
		unread:       r.unread,
		kept:         r.kept,
		p99Before:    was.Latencies.Quantile(0.99),
		p99After:     is.Latencies.Quantile(0.99),
	}
	for t := r.change; t.Before(r.until); t = t.Add(r.report.Every) {
		f.lowest = min(f.lowest, r.report.Sum(load.Span{From: t, Until: t.Add(r.report.Every)}).Ratio())
	}
	var at time.Time
	if at, f.isBack = r.report.Back(r.change.Add(r.took), back*f.before, backOver); f.isBack {
		f.back = at.Sub(r.change)
	}
	return f
}

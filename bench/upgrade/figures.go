package upgrade

import (
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/test/bench/load"
)

// figures summarize the run of a variant.
type figures struct {
	// before is the hit ratio before the change.
	before float64
	// noise is the loss in the second half of the time before the change by the hit ratio of the first half: what chance
	// causes without a change.
	noise        load.Loss
	noiseFor     time.Duration
	errorsBefore int
	// loss and what follows are of the time from the change to the end of the run.
	loss    load.Loss
	lowest  float64 // hit ratio of a bucket
	errors  int
	silence time.Duration // longest time without an answer of a shard
	took    time.Duration
	// recovery is how long after the change the hit ratio was back. If it was not, last is the ratio at the end.
	recovery  time.Duration
	recovered bool
	last      float64
	ran       time.Duration
	// kept of the unread items, which the load does not read.
	unread, kept        int
	p99Before, p99After time.Duration
	// p99During is from the change until it was done.
	p99During time.Duration
	// most operations per second without a change, and the p99 of their latencies.
	most    float64
	mostP99 time.Duration
}

func (r result) figures() figures {
	began := r.report.Began.Add(warmUp)
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
		last:         r.report.Sum(load.Span{From: r.until.Add(-recoveryWindow), Until: r.until}).Ratio(),
		ran:          r.until.Sub(r.change),
		unread:       r.unread,
		kept:         r.kept,
		p99Before:    r.report.Latency(before, 0.99),
		p99After:     r.report.Latency(after, 0.99),
		p99During:    r.report.Latency(load.Span{From: r.change, Until: r.change.Add(r.took)}, 0.99),
		most:         r.most,
		mostP99:      r.mostP99,
	}
	for t := r.change; t.Before(r.until); t = t.Add(r.report.Every) {
		f.lowest = min(f.lowest, r.report.Sum(load.Span{From: t, Until: t.Add(r.report.Every)}).Ratio())
	}
	var at time.Time
	if at, f.recovered = r.report.Back(r.change.Add(r.took), recoveredShare*f.before, recoveryWindow); f.recovered {
		f.recovery = at.Sub(r.change)
	}
	return f
}

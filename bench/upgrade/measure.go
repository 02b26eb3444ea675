package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/bench/internal/workload"
	"github.com/memcached-operator/memcached-operator/test/bench/load"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

const (
	// warmUp is how long the load runs until its hit ratio counts: it opens its connections in this time.
	warmUp = 2 * time.Second
	// The hit ratio has recovered when its mean over recoveryWindow is this share of the one before the change.
	recoveredShare = 0.99
	recoveryWindow = 5 * time.Second
	// tail is how long the load continues after that.
	tail = 3 * time.Second
	// changeBound is how long a change may take.
	changeBound = 5 * time.Minute
	// pollInterval limits the precision of the upgrade's duration.
	pollInterval = 200 * time.Millisecond
	// sayInterval and sayAfter are between two lines of progress, during and after the upgrade.
	sayInterval, sayAfter = 5 * time.Second, 15 * time.Second
	// settle is how long nothing happens between the creation of the shards and the load, and saturated how long the load runs
	// without a rate.
	settle, saturated = 10 * time.Second, 10 * time.Second
)

// bench measures variants one after the other.
type bench struct {
	*cluster.Cluster
	options options
	say     func(format string, args ...any)
}

// result is what the bench measured of a variant.
type result struct {
	variant variant
	report  load.Report
	change  time.Time
	// took is the duration of the change.
	took time.Duration
	// until is the end of the compared time.
	until time.Time
	// kept of the unread items, which the load does not read, so that only the change decides how many are left.
	unread, kept int
	// most operations per second before the change, and the p99 of their latencies.
	most    float64
	mostP99 time.Duration
}

// measure runs a variant in its namespace.
func (b *bench) measure(ctx context.Context, v variant, in space) (result, error) {
	addresses, err := b.start(ctx, v, in)
	if err != nil {
		return result{}, err
	}
	var sets []*items.Set
	for ordinal, address := range addresses {
		set := items.Sized(fmt.Sprintf("unread-%d", ordinal), b.options.unreadPerShard(), b.options.bytes, address)
		defer set.Close()
		if err := set.Fill(); err != nil {
			return result{}, err
		}
		sets = append(sets, set)
	}
	r, err := b.change(ctx, v, in, addresses)
	if err != nil {
		return result{}, err
	}
	for _, set := range sets {
		kept, err := set.Count()
		if err != nil {
			return result{}, err
		}
		r.unread += b.options.unreadPerShard()
		r.kept += kept
	}
	if n := r.report.Sum(load.Span{From: r.report.Began, Until: r.until}).Wrong; n > 0 {
		return result{}, fmt.Errorf("%d gets returned the value of another key", n)
	}
	return r, nil
}

// start creates the shards of a variant and returns their addresses once they answer.
func (b *bench) start(ctx context.Context, v variant, in space) ([]string, error) {
	for _, version := range slices.Compact([]string{b.options.from, b.options.to}) {
		if err := in.Pull(ctx, version); err != nil {
			return nil, err
		}
	}
	if err := v.create(ctx, in, b.options.from); err != nil {
		return nil, err
	}
	err := cluster.Eventually(ctx, "the shards", func(ctx context.Context) error { return v.upToDate(ctx, in, b.options.from) })
	if err != nil {
		return nil, err
	}
	return in.AnsweringAddresses(ctx, client.ObjectKey{Namespace: in.Namespace, Name: workload.Name}, shards)
}

// change makes the change while the load runs.
func (b *bench) change(ctx context.Context, v variant, in space, addresses []string) (result, error) {
	l, err := load.New(load.Config{Addresses: addresses, Keys: shards * b.options.keysPerShard, Rate: b.options.rate, Seed: b.options.seed})
	if err != nil {
		return result{}, err
	}
	if err := l.Fill(ctx); err != nil {
		return result{}, err
	}
	if err := cluster.Sleep(ctx, settle); err != nil {
		return result{}, err
	}
	most, mostP99, err := l.Saturate(ctx, saturated)
	if err != nil {
		return result{}, err
	}
	b.say("  %s operations per second at most", report.Number(most))
	l.Start()
	defer l.Stop()
	// At the beginning of a bucket, so that each bucket is either before the change or after it.
	change := l.Report().Began.Add(b.options.before.Round(load.Every))
	p := &progress{bench: b, load: l, change: change, said: time.Now(), interval: sayInterval}
	for time.Until(change) > pollInterval {
		if err := p.wait(ctx, ""); err != nil {
			return result{}, err
		}
	}
	time.Sleep(time.Until(change))
	b.say("  %s  the change begins", p.clock())
	if err := v.change(ctx, in, b.options.to); err != nil {
		return result{}, err
	}

	r := result{variant: v, change: change, most: most, mostP99: mostP99}
	for r.took == 0 {
		err := v.upToDate(ctx, in, b.options.to)
		switch {
		case err == nil:
			r.took = time.Since(change)
			b.say("  %s  done", p.clock())
		case time.Since(change) > changeBound:
			return result{}, fmt.Errorf("the change has not finished after %s: %w", changeBound, err)
		default:
			if err := p.wait(ctx, err.Error()); err != nil {
				return result{}, err
			}
		}
	}
	p.interval = sayAfter
	for time.Since(change) < b.options.after || !p.hasRecovered(change.Add(r.took)) {
		if err := p.wait(ctx, ""); err != nil {
			return result{}, err
		}
	}
	r.report = l.Stop()
	// Without the last bucket, in which operations were cut off.
	r.until = r.report.At(r.report.Buckets() - 1)
	return r, nil
}

// progress prints the state of a run.
type progress struct {
	*bench
	load     *load.Load
	change   time.Time
	said     time.Time
	interval time.Duration
}

// clock returns the time since the change.
func (p *progress) clock() string { return fmt.Sprintf("%+6.1f s", time.Since(p.change).Seconds()) }

// wait waits for pollInterval, and prints the state if it is time for that.
func (p *progress) wait(ctx context.Context, state string) error {
	if err := cluster.Sleep(ctx, pollInterval); err != nil {
		return err
	}
	if time.Since(p.said) < p.interval {
		return nil
	}
	now := time.Now()
	last := p.load.Report().Sum(load.Span{From: p.said, Until: now})
	line := fmt.Sprintf("  %s  hit ratio %5.1f%%  errors %4.0f/s  %s", p.clock(), 100*last.Ratio(), float64(last.Errors)/now.Sub(p.said).Seconds(), state)
	p.say("%s", strings.TrimRight(line, " "))
	p.said = now
	return nil
}

// hasRecovered reports whether the hit ratio has recovered after an upgrade that finished at done, or the bound is reached.
func (p *progress) hasRecovered(done time.Time) bool {
	if time.Since(done) > p.options.bound {
		return true
	}
	r := p.load.Report()
	ratio := r.Sum(load.Span{From: r.Began.Add(warmUp), Until: p.change}).Ratio()
	at, ok := r.Back(done, recoveredShare*ratio, recoveryWindow)
	return ok && time.Since(at) > recoveryWindow+tail
}

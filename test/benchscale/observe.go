package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/benchscale/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/audit"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// phase is what was measured of a part of a run.
type phase struct {
	Name string
	// Took is how long it was until what it is about had come about, and Counted how
	// long the requests were counted: until the operator wrote no more.
	Took, Counted time.Duration
	Counts        audit.Counts
	// ByResource is how many of them there were of each verb and resource.
	ByResource map[string]int
	// First are the times from a change of a Memcached to the first write for it.
	First  []time.Duration
	Spent  spent
	Memory usage.Memory
	// Reconciles of Memcacheds.
	Reconciles int
	Bottleneck usage.Bottleneck
}

// told is the phase in a line.
func (p phase) told(size int) string {
	per := func(n int) string { return fmt.Sprintf("%.2f", float64(n)/float64(size)) }
	rate := func(n int) string { return fmt.Sprintf("%.0f/s", float64(n)/p.Took.Seconds()) }
	c := p.Counts
	return fmt.Sprintf("%-8s %7.1f s; a Memcached: %s writes (%s made, %s statuses, %s refused), %s events, %s reads; %s writes, %s reads, %d reconciles; "+
		"RSS %s, peak %s; processor: operator %.1f s, API server and etcd %.1f s, controllers %.1f s, this %.1f s of %.1f s; bottleneck %.0f %% (waiting %.0f %%, processor %.0f %%); first write p50 %.2f s, p99 %.2f s",
		p.Name, p.Took.Seconds(), per(c.Changes()), per(c.Made), per(c.Statuses), per(c.Refused), per(c.Events), per(c.Reads), rate(c.Changes()+c.Events), rate(c.Reads), p.Reconciles,
		report.Mebibytes(p.Memory.Now), report.Mebibytes(p.Memory.Peak), p.Spent.Operator.Seconds(), p.Spent.Server.Seconds(), p.Spent.Controllers.Seconds(), p.Spent.Bench.Seconds(), p.Spent.Machine.Seconds(),
		100*p.Bottleneck.Either, 100*p.Bottleneck.Waiting, 100*p.Bottleneck.Full,
		audit.Percentile(p.First, 50).Seconds(), audit.Percentile(p.First, 99).Seconds())
}

// observer measures phases.
type observer struct {
	*scene
	fleet   *fleet
	workers int
	// began is when the phase did.
	began time.Time
	name  string
	// counted is how many requests stood in the audit log when progress was last told.
	counted int
}

const (
	// quietFor is how long the operator is to write nothing until a phase is over, and
	// then it is to have nothing left to look at.
	quietFor = 5 * time.Second
	// quietWithin bounds that: an operator that always writes is told of by the figures.
	quietWithin = time.Minute
	// tellEvery is how often progress is told.
	tellEvery = 5 * time.Second
	// lookEvery is how often the Memcacheds are counted, and askEvery how often the
	// operator is asked for its metrics, which costs it two requests.
	lookEvery = 50 * time.Millisecond
	askEvery  = 500 * time.Millisecond
)

// observe does a phase and measures it.
func (o *observer) observe(ctx context.Context, name string, do func(context.Context) error) (phase, error) {
	p := phase{Name: name}
	o.name = name
	before, reconciled := o.meter.read(), 0
	if o.operator.process != nil {
		g, err := o.operator.metrics.read(ctx)
		if err != nil {
			return p, err
		}
		reconciled = g.Reconciles
		if err := usage.ForgetPeak(o.operator.process.process.Pid); err != nil {
			return p, err
		}
	}
	o.began = time.Now()
	if err := do(ctx); err != nil {
		return p, err
	}
	done := time.Now()
	p.Took = done.Sub(o.began)
	if name != phaseSteady {
		if err := o.quiet(ctx); err != nil {
			return p, err
		}
	}
	until := time.Now()
	p.Counted = until.Sub(o.began)
	p.Spent = o.meter.read().minus(before.spent)
	asked, changes, err := o.requests(ctx, o.began, until)
	if err != nil {
		return p, err
	}
	p.Counts, p.ByResource = audit.Count(asked), byResource(asked)
	p.First = audit.FirstWrites(changes, asked, memcachedOf)
	spans := audit.InFlight(asked, o.workers)
	p.Bottleneck = usage.BottleneckOf(o.meter.slices(o.began, done), runtime.NumCPU(), func(from, until time.Time) time.Duration {
		return audit.Within(spans, from, until)
	})
	g, err := o.operator.metrics.read(ctx)
	if err != nil {
		return p, err
	}
	p.Reconciles = g.Reconciles - reconciled
	p.Memory, err = usage.MemoryOf(o.operator.process.process.Pid)
	return p, err
}

// byResource counts requests by what they are.
func byResource(requests []audit.Request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		verb := r.Verb
		if r.Made() {
			verb = "make"
		}
		if r.Code >= 400 {
			verb = fmt.Sprintf("%s (%d)", verb, r.Code)
		}
		counts[verb+" "+r.Resource]++
	}
	return counts
}

// quiet waits until the operator writes no more and has nothing left to look at.
func (o *observer) quiet(ctx context.Context) error {
	for deadline := time.Now().Add(quietWithin); time.Now().Before(deadline); {
		if err := sleep(ctx, quietFor); err != nil {
			return err
		}
		requests, err := o.log.Requests()
		if err != nil {
			return err
		}
		wrote := false
		for i := len(requests) - 1; i >= 0 && time.Since(requests[i].Answered) < quietFor && !wrote; i-- {
			wrote = requests[i].User == operatorUser && requests[i].Changes()
		}
		if wrote {
			continue
		}
		g, err := o.operator.metrics.read(ctx)
		if err != nil {
			return err
		}
		if g.Queued == 0 {
			return nil
		}
	}
	return nil
}

// all does something to all Memcacheds and waits until something is so of all of them.
func (o *observer) all(ctx context.Context, what string, is func(*v1alpha1.Memcached) bool, do func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	err := o.until(ctx, what, lookEvery, func() (int, error) {
		select {
		case err := <-done:
			if err != nil {
				return 0, err
			}
		default:
		}
		return o.fleet.count(is), nil
	})
	if m := o.fleet.first(is); err != nil && m != nil {
		return fmt.Errorf("%w\none that is not: %s: %+v", err, m.Name, m.Status)
	}
	return err
}

// goneThrough does something that has the operator look at all Memcacheds, and waits
// until it has.
func (o *observer) goneThrough(ctx context.Context, do func(context.Context) error) error {
	before := 0
	if o.operator.process != nil {
		g, err := o.operator.metrics.read(ctx)
		if err != nil {
			return err
		}
		before = g.Reconciles
	}
	if err := do(ctx); err != nil {
		return err
	}
	return o.until(ctx, "gone through", askEvery, func() (int, error) {
		g, err := o.operator.metrics.read(ctx)
		if err != nil {
			return 0, err
		}
		n := min(g.Reconciles-before, o.fleet.size)
		if g.Queued > 0 { // not before the last one has ended
			n = min(n, o.fleet.size-1)
		}
		return n, nil
	})
}

// until waits until a count is that of all Memcacheds. It gives up when the operator
// asks nothing of the API server for long.
func (o *observer) until(ctx context.Context, what string, every time.Duration, count func() (int, error)) error {
	told, moved := time.Now(), time.Now()
	for {
		n, err := count()
		if err != nil {
			return err
		}
		if n >= o.fleet.size {
			return nil
		}
		if err := o.operator.process.runs(); err != nil {
			return err
		}
		if err := o.runs(); err != nil {
			return err
		}
		if time.Since(told) >= tellEvery {
			asked, err := o.tell(what, n, time.Since(told))
			if err != nil {
				return err
			}
			if told = time.Now(); asked > 0 {
				moved = told
			}
		}
		if time.Since(moved) > stallBound {
			return fmt.Errorf("%d of %d are %s, and the operator has asked nothing for %s", n, o.fleet.size, what, stallBound)
		}
		if err := sleep(ctx, every); err != nil {
			return err
		}
	}
}

// tell tells how far it is, and returns how many requests the operator made since it
// last did.
func (o *observer) tell(what string, n int, since time.Duration) (int, error) {
	all, err := o.log.Requests()
	if err != nil {
		return 0, err
	}
	var asked []audit.Request
	for _, r := range all[o.counted:] {
		if r.User == operatorUser && r.Kind() != audit.Upkeep {
			asked = append(asked, r)
		}
	}
	o.counted = len(all)
	c := audit.Count(asked)
	memory, err := usage.MemoryOf(o.operator.process.process.Pid)
	if err != nil {
		return 0, err
	}
	rate := func(n int) float64 { return float64(n) / since.Seconds() }
	o.say("    %s, %s: %s of %s %s; the operator: %.0f writes/s, %.0f events/s, %.0f reads/s, %s", o.name, report.Seconds(time.Since(o.began)), report.Number(n), report.Number(o.fleet.size), what,
		rate(c.Changes()), rate(c.Events), rate(c.Reads), report.Mebibytes(memory.Now))
	return len(asked), nil
}

// list tells a phase's requests, the most frequent first.
func (p phase) list(size int) string {
	var b strings.Builder
	whats := slices.SortedFunc(maps.Keys(p.ByResource), func(a, b string) int {
		return cmp.Or(p.ByResource[b]-p.ByResource[a], strings.Compare(a, b))
	})
	for _, what := range whats {
		fmt.Fprintf(&b, "    %10d  %8.2f a Memcached  %s\n", p.ByResource[what], float64(p.ByResource[what])/float64(size), what)
	}
	return b.String()
}

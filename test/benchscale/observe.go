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
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// phase is what the bench measured of a part of a run.
type phase struct {
	Name string
	// Took is until the phase was done. The operator's requests count until it had written all.
	Took   time.Duration
	Counts audit.Counts
	// ByResource counts the requests by verb and resource.
	ByResource map[string]int
	// First are the times from a change of a Memcached to the first write for it.
	First      []time.Duration
	Spent      spent
	Memory     usage.Memory
	Reconciles int
	Bottleneck usage.Bottleneck
	workers    int
}

// summary returns the phase in one line.
func (p phase) summary(size int) string {
	per := func(n int) string { return fmt.Sprintf("%.2f", float64(n)/float64(size)) }
	rate := func(n int) string { return fmt.Sprintf("%.0f/s", float64(n)/p.Took.Seconds()) }
	seconds := func(d time.Duration) string { return report.Seconds(d, 1) }
	percent := func(share float64) string { return report.Percent(share, 0) }
	c, s, b := p.Counts, p.Spent, p.Bottleneck
	return fmt.Sprintf("%-8s %s; per Memcached: %s writes (%s created, %s statuses, %s rejected), %s events, %s reads; %s writes, %s reads, %d reconciles; "+
		"RSS %s, peak %s; processor: operator %s, API server and etcd %s, controllers %s, bench %s of %s; bottleneck %s (waiting %s, processor %s); first write p50 %s, p99 %s",
		p.Name, seconds(p.Took), per(c.Changes()), per(c.Made), per(c.Statuses), per(c.Rejected), per(c.Events), per(c.Reads), rate(c.Changes()+c.Events), rate(c.Reads), p.Reconciles,
		report.Mebibytes(p.Memory.Now), report.Mebibytes(p.Memory.Peak), seconds(s.Operator), seconds(s.Server), seconds(s.Controllers), seconds(s.Bench), seconds(s.Machine),
		percent(b.Either), percent(b.Waiting), percent(b.Full), report.Seconds(audit.Percentile(p.First, 50), 2), report.Seconds(audit.Percentile(p.First, 99), 2))
}

// observer measures phases.
type observer struct {
	*scene
	fleet *fleet
	name  string // of the phase
	began time.Time
	// counted is how many requests were in the audit log when progress was last printed.
	counted int
}

const (
	// A phase ends when the operator has written nothing for quietFor and its queue is empty, or after quietTimeout: the
	// figures show an operator that writes forever.
	quietFor     = 5 * time.Second
	quietTimeout = time.Minute
	sayInterval  = 5 * time.Second
	// countInterval is between two counts of the Memcacheds, metricsInterval between two reads of the metrics, each of
	// which costs the operator two requests.
	countInterval   = 50 * time.Millisecond
	metricsInterval = 500 * time.Millisecond
)

// observe runs a phase and measures it.
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
		if err := usage.ResetPeak(o.operator.process.process.Pid); err != nil {
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
		if err := o.awaitQuiet(ctx); err != nil {
			return p, err
		}
	}
	until := time.Now()
	p.Spent = o.meter.read().minus(before.spent)
	requests, changes, err := o.requests(ctx, o.began, until)
	if err != nil {
		return p, err
	}
	p.Counts, p.ByResource = audit.Count(requests), byResource(requests)
	p.First = audit.FirstWrites(changes, requests, memcachedOf)
	g, err := o.operator.metrics.read(ctx)
	if err != nil {
		return p, err
	}
	p.Reconciles = g.Reconciles - reconciled
	if p.workers, err = g.startedWorkers(); err != nil { // not before the phase, as the controller may start in it
		return p, err
	}
	spans := audit.InFlight(requests, p.workers)
	p.Bottleneck = usage.BottleneckOf(o.meter.slices(o.began, done), runtime.NumCPU(), func(from, until time.Time) time.Duration {
		return audit.Within(spans, from, until)
	})
	p.Memory, err = usage.MemoryOf(o.operator.process.process.Pid)
	return p, err
}

func byResource(requests []audit.Request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		verb := r.Verb
		if r.Made() {
			verb = "create"
		}
		if r.Code >= 400 {
			verb = fmt.Sprintf("%s (%d)", verb, r.Code)
		}
		counts[verb+" "+r.Resource]++
	}
	return counts
}

// awaitQuiet waits until the operator has written nothing for quietFor and its queue is empty.
func (o *observer) awaitQuiet(ctx context.Context) error {
	for deadline := time.Now().Add(quietTimeout); time.Now().Before(deadline); {
		if err := cluster.Sleep(ctx, quietFor); err != nil {
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

// all calls do and waits until is returns true for all Memcacheds.
func (o *observer) all(ctx context.Context, what string, is func(*v1alpha1.Memcached) bool, do func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	err := o.until(ctx, what, countInterval, func() (int, error) {
		select {
		case err := <-done:
			if err != nil {
				return 0, err
			}
		default:
		}
		n, _ := o.fleet.count(is)
		return n, nil
	})
	if _, m := o.fleet.count(is); err != nil && m != nil {
		return fmt.Errorf("%w\nfor example %s: %+v", err, m.Name, m.Status)
	}
	return err
}

// reconciled calls do and waits until the operator has reconciled all Memcacheds.
func (o *observer) reconciled(ctx context.Context, do func(context.Context) error) error {
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
	return o.until(ctx, "reconciled", metricsInterval, func() (int, error) {
		g, err := o.operator.metrics.read(ctx)
		if err != nil {
			return 0, err
		}
		n := min(g.Reconciles-before, o.fleet.size)
		if g.Queued > 0 { // the last one has not finished
			n = min(n, o.fleet.size-1)
		}
		return n, nil
	})
}

// until waits until a count is that of all Memcacheds. It fails if the operator sends no requests for stallTimeout.
func (o *observer) until(ctx context.Context, what string, every time.Duration, count func() (int, error)) error {
	said, moved := time.Now(), time.Now()
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
		if o.controllers != nil {
			if err := o.controllers.runs(); err != nil {
				return err
			}
		}
		if time.Since(said) >= sayInterval {
			requests, err := o.sayProgress(what, n, time.Since(said))
			if err != nil {
				return err
			}
			if said = time.Now(); requests > 0 {
				moved = said
			}
		}
		if time.Since(moved) > stallTimeout {
			return fmt.Errorf("%d of %d are %s, and the operator has sent no request for %s", n, o.fleet.size, what, stallTimeout)
		}
		if err := cluster.Sleep(ctx, every); err != nil {
			return err
		}
	}
}

// sayProgress prints the progress of a phase and returns how many requests the operator has sent since the last time.
func (o *observer) sayProgress(what string, n int, since time.Duration) (int, error) {
	all, err := o.log.Requests()
	if err != nil {
		return 0, err
	}
	var requests []audit.Request
	for _, r := range all[o.counted:] {
		if r.User == operatorUser && r.Kind() != audit.Upkeep {
			requests = append(requests, r)
		}
	}
	o.counted = len(all)
	c := audit.Count(requests)
	memory, err := usage.MemoryOf(o.operator.process.process.Pid)
	if err != nil {
		return 0, err
	}
	rate := func(n int) float64 { return float64(n) / since.Seconds() }
	o.say("    %s, %s: %s of %s %s; the operator: %.0f writes/s, %.0f events/s, %.0f reads/s, %s", o.name, report.Seconds(time.Since(o.began), 0), report.Number(n), report.Number(o.fleet.size), what,
		rate(c.Changes()), rate(c.Events), rate(c.Reads), report.Mebibytes(memory.Now))
	return len(requests), nil
}

// list returns the requests of a phase, the most frequent first.
func (p phase) list(size int) string {
	var b strings.Builder
	whats := slices.SortedFunc(maps.Keys(p.ByResource), func(a, b string) int {
		return cmp.Or(p.ByResource[b]-p.ByResource[a], strings.Compare(a, b))
	})
	for _, what := range whats {
		fmt.Fprintf(&b, "    %10d  %8.2f per Memcached  %s\n", p.ByResource[what], float64(p.ByResource[what])/float64(size), what)
	}
	return b.String()
}

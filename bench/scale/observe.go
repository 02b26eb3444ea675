package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/bench/internal/scale"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/bench/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/audit"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// phase is what the bench measured of a part of a run.
type phase struct {
	Name string
	// Took is until the phase was done. The operator's requests count until it had written all.
	Took   time.Duration
	Counts Counts
	// First are the times from a change of a Memcached to the first write for it.
	First      []time.Duration
	Spent      spent
	Memory     usage.Memory
	Reconciles int
	// Waiting is the share of the phase in which the operator had as many requests in flight as it has workers.
	Waiting float64
	workers int
}

// summary returns the phase in one line; the document has the rest.
func (p phase) summary(size int) string {
	per := func(n int) string { return fmt.Sprintf("%.2f", float64(n)/float64(size)) }
	return fmt.Sprintf("%-8s %s; per Memcached: %s writes, %s events, %s reads; %d rejected writes, %d reconciles; RSS %s, peak %s; waiting %s",
		p.Name, report.Seconds(p.Took, 1), per(p.Counts.Changes()), per(p.Counts.Events), per(p.Counts.Reads), p.Counts.Rejected, p.Reconciles,
		report.Mebibytes(p.Memory.Now), report.Mebibytes(p.Memory.Peak), report.Percent(p.Waiting, 0))
}

// observer measures phases.
type observer struct {
	*scene
	fleet *scale.Fleet
	say   func(format string, args ...any)
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
	// stallTimeout is how long the operator may send no request until a run fails.
	stallTimeout = 5 * time.Minute
)

// observe runs a phase and measures it.
func (o *observer) observe(ctx context.Context, name string, do func(context.Context) error) (phase, error) {
	p := phase{Name: name}
	o.name = name
	before, reconciled := o.meter.read(), 0
	if o.Operator.Process != nil {
		g, err := o.Operator.Metrics.Read(ctx)
		if err != nil {
			return p, err
		}
		reconciled = g.Reconciles
		if err := usage.ResetPeak(o.Operator.Process.Pid); err != nil {
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
	p.Spent = o.meter.read().minus(before)
	requests, changes, err := o.Requests(ctx, o.began, until)
	if err != nil {
		return p, err
	}
	p.Counts = countOf(requests)
	p.First = firstWrites(changes, requests)
	g, err := o.Operator.Metrics.Read(ctx)
	if err != nil {
		return p, err
	}
	p.Reconciles = g.Reconciles - reconciled
	if p.workers, err = g.StartedWorkers(); err != nil { // not before the phase, as the controller may start in it
		return p, err
	}
	p.Waiting = float64(inFlight(scale.RequestsOf(requests, scale.OperatorUser, o.began, done), p.workers)) / float64(p.Took)
	p.Memory, err = usage.MemoryOf(o.Operator.Process.Pid)
	return p, err
}

// awaitQuiet waits until the operator has written nothing for quietFor and its queue is empty.
func (o *observer) awaitQuiet(ctx context.Context) error {
	for deadline := time.Now().Add(quietTimeout); time.Now().Before(deadline); {
		if err := cluster.Sleep(ctx, quietFor); err != nil {
			return err
		}
		requests, err := o.Log.Requests()
		if err != nil {
			return err
		}
		wrote := false
		for i := len(requests) - 1; i >= 0 && time.Since(requests[i].Answered) < quietFor && !wrote; i-- {
			wrote = requests[i].User == scale.OperatorUser && requests[i].Changes()
		}
		if wrote {
			continue
		}
		g, err := o.Operator.Metrics.Read(ctx)
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
func (o *observer) all(ctx context.Context, what string, is func(*v1beta1.Memcached) bool, do func(context.Context) error) error {
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
		n, _ := o.fleet.Count(is)
		return n, nil
	})
	if _, m := o.fleet.Count(is); err != nil && m != nil {
		return fmt.Errorf("%w\nfor example %s: %+v", err, m.Name, m.Status)
	}
	return err
}

// reconciled calls do and waits until the operator has reconciled all Memcacheds.
func (o *observer) reconciled(ctx context.Context, do func(context.Context) error) error {
	before := 0
	if o.Operator.Process != nil {
		g, err := o.Operator.Metrics.Read(ctx)
		if err != nil {
			return err
		}
		before = g.Reconciles
	}
	if err := do(ctx); err != nil {
		return err
	}
	return o.until(ctx, "reconciled", metricsInterval, func() (int, error) {
		g, err := o.Operator.Metrics.Read(ctx)
		if err != nil {
			return 0, err
		}
		n := min(g.Reconciles-before, o.fleet.Size)
		if g.Queued > 0 { // the last one has not finished
			n = min(n, o.fleet.Size-1)
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
		if n >= o.fleet.Size {
			return nil
		}
		if err := o.Operator.Process.Runs(); err != nil {
			return err
		}
		if o.Controllers != nil {
			if err := o.Controllers.Runs(); err != nil {
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
			return fmt.Errorf("%d of %d are %s, and the operator has sent no request for %s", n, o.fleet.Size, what, stallTimeout)
		}
		if err := cluster.Sleep(ctx, every); err != nil {
			return err
		}
	}
}

// sayProgress prints the progress of a phase and returns how many requests the operator has sent since the last time.
func (o *observer) sayProgress(what string, n int, since time.Duration) (int, error) {
	all, err := o.Log.Requests()
	if err != nil {
		return 0, err
	}
	var requests []audit.Request
	for _, r := range all[o.counted:] {
		if r.User == scale.OperatorUser && r.Kind() != audit.Upkeep {
			requests = append(requests, r)
		}
	}
	o.counted = len(all)
	c := countOf(requests)
	memory, err := usage.MemoryOf(o.Operator.Process.Pid)
	if err != nil {
		return 0, err
	}
	rate := func(n int) float64 { return float64(n) / since.Seconds() }
	o.say("    %s, %s: %s of %s %s; the operator: %.0f writes/s, %.0f events/s, %.0f reads/s, %s", o.name, report.Seconds(time.Since(o.began), 0), report.Number(n), report.Number(o.fleet.Size), what,
		rate(c.Changes()), rate(c.Events), rate(c.Reads), report.Mebibytes(memory.Now))
	return len(requests), nil
}

// firstWrites returns, for each change of a Memcached that a write followed, the time from the answer to the change until the first
// write for the Memcached was received, without events.
func firstWrites(changes, requests []audit.Request) (took []time.Duration) {
	accepted := map[string]time.Time{}
	for _, r := range changes {
		accepted[scale.MemcachedOf(r)] = r.Answered
	}
	first := map[string]time.Time{}
	for _, r := range requests {
		change := scale.MemcachedOf(r)
		since, ok := accepted[change]
		if !ok || !r.Changes() || r.Kind() == audit.Event || r.Received.Before(since) {
			continue
		}
		if at, seen := first[change]; !seen || r.Received.Before(at) {
			first[change] = r.Received
		}
	}
	for change, at := range first {
		took = append(took, at.Sub(accepted[change]))
	}
	return took
}

// inFlight returns for how long at least so many requests were in flight. Watches, events and upkeep do not count, as a reconcile
// does not wait for them.
func inFlight(requests []audit.Request, atLeast int) (sum time.Duration) {
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	for _, r := range requests {
		if k := r.Kind(); k == audit.Read || k == audit.Status || k == audit.Write {
			edges = append(edges, edge{r.Received, 1}, edge{r.Answered, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	count := 0
	for i, e := range edges {
		if count >= atLeast {
			sum += e.at.Sub(edges[i-1].at)
		}
		count += e.step
	}
	return sum
}

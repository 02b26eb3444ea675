package audit

import (
	"slices"
	"time"
)

// Of returns the requests of a user that were received from a time to before another one.
func Of(requests []Request, user string, from, until time.Time) []Request {
	var of []Request
	for _, r := range requests {
		if r.User == user && !r.Received.Before(from) && r.Received.Before(until) {
			of = append(of, r)
		}
	}
	return of
}

// Counts are the numbers of requests by kind.
type Counts struct {
	Reads, Watches int
	// Made counts writes that created an object.
	Writes, Made, Statuses int
	Events                 int
	// Rejected counts writes and statuses that the API server rejected, for example with a conflict.
	Rejected int
}

// Count counts requests.
func Count(requests []Request) Counts {
	var c Counts
	for _, r := range requests {
		switch r.Kind() {
		case Read:
			c.Reads++
		case Watch:
			c.Watches++
		case Event:
			c.Events++
		case Status:
			c.Statuses++
		case Write:
			c.Writes++
		case Upkeep:
		}
		if r.Made() {
			c.Made++
		}
		if r.Changes() && r.Kind() != Event && r.Code >= 400 {
			c.Rejected++
		}
	}
	return c
}

// Changes returns the number of writes without events.
func (c Counts) Changes() int { return c.Writes + c.Statuses }

// Beyond returns the number of writes that created no object.
func (c Counts) Beyond() int { return c.Changes() - c.Made }

// FirstWrites returns, for each change that a write followed, the time from the answer to the change until the first
// write for it was received, without events. of returns the change to which a request belongs, or "".
func FirstWrites(changes, requests []Request, of func(Request) string) []time.Duration {
	accepted := map[string]time.Time{}
	for _, r := range changes {
		accepted[of(r)] = r.Answered
	}
	first := map[string]time.Time{}
	for _, r := range requests {
		change := of(r)
		since, ok := accepted[change]
		if !ok || !r.Changes() || r.Kind() == Event || r.Received.Before(since) {
			continue
		}
		if at, seen := first[change]; !seen || r.Received.Before(at) {
			first[change] = r.Received
		}
	}
	var took []time.Duration
	for change, at := range first {
		took = append(took, at.Sub(accepted[change]))
	}
	slices.Sort(took)
	return took
}

// Percentile returns the smallest of the sorted durations that percent of them do not exceed; 0 without durations.
func Percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}

// Span is a period of time.
type Span struct{ From, Until time.Time }

// InFlight returns when at least so many requests were in flight, in order. Watches, events and upkeep do not count, as
// a reconcile does not wait for them.
func InFlight(requests []Request, atLeast int) []Span {
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	for _, r := range requests {
		switch r.Kind() {
		case Read, Status, Write:
			edges = append(edges, edge{r.Received, 1}, edge{r.Answered, -1})
		case Upkeep, Watch, Event:
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if d := a.at.Compare(b.at); d != 0 {
			return d
		}
		return b.step - a.step // no gap between one that ends as another begins
	})
	var spans []Span
	count := 0
	for _, e := range edges {
		count += e.step
		switch {
		case e.step > 0 && count == atLeast:
			spans = append(spans, Span{From: e.at})
		case e.step < 0 && count == atLeast-1:
			spans[len(spans)-1].Until = e.at
		}
	}
	return spans
}

// Within returns how much of the time between two moments the spans cover.
func Within(spans []Span, from, until time.Time) time.Duration {
	first, _ := slices.BinarySearchFunc(spans, from, func(s Span, t time.Time) int {
		if s.Until.After(t) {
			return 1
		}
		return -1
	})
	var sum time.Duration
	for _, s := range spans[first:] {
		if !s.From.Before(until) {
			break
		}
		begin, end := s.From, s.Until
		if begin.Before(from) {
			begin = from
		}
		if end.After(until) {
			end = until
		}
		sum += end.Sub(begin)
	}
	return sum
}

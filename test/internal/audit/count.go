package audit

import (
	"slices"
	"time"
)

// Of returns the requests of a user that were received from a time on and before
// another one.
func Of(requests []Request, user string, from, until time.Time) []Request {
	var of []Request
	for _, r := range requests {
		if r.User == user && !r.Received.Before(from) && r.Received.Before(until) {
			of = append(of, r)
		}
	}
	return of
}

// Counts is how many requests there were of each kind.
type Counts struct {
	Reads, Watches int
	// Made is how many of the writes made an object.
	Writes, Made, Statuses int
	Events                 int
	// Refused is how many writes and statuses were answered with an error, such as a
	// conflict.
	Refused int
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
			c.Refused++
		}
	}
	return c
}

// Changes returns how many requests were to change something, events left out.
func (c Counts) Changes() int { return c.Writes + c.Statuses }

// Beyond returns how many of them made no object.
func (c Counts) Beyond() int { return c.Changes() - c.Made }

// FirstWrites returns, for each change that was answered, how long after that the
// first write that belongs to it was received, events left out. of says to which change a request
// belongs; those without one give "". A change that no write followed is left out.
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

// Percentile returns the smallest of the sorted durations that so many percent of
// them do not exceed; 0 of none.
func Percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}

// Span is a stretch of time.
type Span struct{ From, Until time.Time }

// InFlight returns when at least so many requests were under way, in order. Only
// those count that a reconcile waits for: no watch, no event and no upkeep.
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
		return b.step - a.step // one that ends as another begins leaves no gap
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

package audit

import "time"

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

package scale

import "github.com/memcached-operator/memcached-operator/test/internal/audit"

// Counts are the numbers of requests by kind.
type Counts struct {
	Reads, Watches int
	// Made counts writes that created an object.
	Writes, Made, Statuses int
	Events                 int
	// Rejected counts writes and statuses that the API server rejected, for example with a conflict.
	Rejected int
}

func countOf(requests []audit.Request) Counts {
	var c Counts
	for _, r := range requests {
		switch r.Kind() {
		case audit.Read:
			c.Reads++
		case audit.Watch:
			c.Watches++
		case audit.Event:
			c.Events++
		case audit.Status:
			c.Statuses++
		case audit.Write:
			c.Writes++
		case audit.Upkeep:
		}
		if r.Made() {
			c.Made++
		}
		if r.Changes() && r.Kind() != audit.Event && r.Code >= 400 {
			c.Rejected++
		}
	}
	return c
}

// Changes returns the number of writes without events.
func (c Counts) Changes() int { return c.Writes + c.Statuses }

// Beyond returns the number of writes that created no object.
func (c Counts) Beyond() int { return c.Changes() - c.Made }

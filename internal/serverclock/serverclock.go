// Package serverclock is a clock that doesn't follow the node's clock when that is wrong. What
// is older than its retention, or past its deadline, is deleted for good.
package serverclock

import (
	"net/http"
	"sync/atomic"
	"time"
)

// tolerance is how far the node's clock may differ from that of the API server.
const tolerance = 5 * time.Minute

// Clock is a clock.PassiveClock. The zero value is the node's clock until it has observed an
// answer.
type Clock struct{ last atomic.Pointer[observed] }

// observed is a time of the API server, and the node's time then with its monotonic part.
type observed struct{ server, node time.Time }

// Now returns the node's time, or that of the API server if they differ by more than five
// minutes.
func (c *Clock) Now() time.Time { return c.correct(time.Now()) }

// Since returns the time since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Age returns the time between t and now, whichever is later: t may be of a clock that was set back since.
func Age(now, t time.Time) time.Duration { return now.Sub(t).Abs() }

func (c *Clock) correct(node time.Time) time.Time {
	o := c.last.Load()
	if o == nil {
		return node
	}
	// The difference of two times with a monotonic part doesn't contain a jump of the clock.
	server := o.server.Add(node.Sub(o.node))
	if node.Round(0).Sub(server).Abs() > tolerance { // Round removes the monotonic part
		return server
	}
	return node
}

// Observe returns a transport that reads the time from each answer of the API server.
func (c *Clock) Observe(next http.RoundTripper) http.RoundTripper {
	return observer{next, c}
}

type observer struct {
	next  http.RoundTripper
	clock *Clock
}

// RoundTrip implements http.RoundTripper.
func (o observer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if server, parsed := http.ParseTime(response.Header.Get("Date")); parsed == nil {
		o.clock.last.Store(&observed{server, time.Now()})
	}
	return response, nil
}

package process

import (
	"context"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// recentWindow is the period that the status reports as recent.
	recentWindow = time.Minute
	// sampleInterval is by how much the reported period can be shorter.
	sampleInterval = 10 * time.Second
)

// recentLookups samples the counters of one memcached process, to report what they
// counted in the recent window.
type recentLookups struct {
	mu sync.Mutex
	// samples is never empty; the oldest is first.
	samples []sample
}

type sample struct {
	at            time.Time
	lookups, hits int64
}

// newRecentLookups begins at the start of memcached, when its counters are zero.
func newRecentLookups(started time.Time) *recentLookups {
	return &recentLookups{samples: []sample{{at: started}}}
}

// add records the current counters and drops samples that are too old.
func (r *recentLookups) add(now time.Time, stats protocol.General) {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := r.samples[len(r.samples)-1]
	if stats.Lookups < newest.lookups || stats.Hits < newest.hits {
		// A client sent "stats reset".
		r.samples = []sample{{at: newest.at}}
	}
	r.samples = append(r.samples, sample{now, stats.Lookups, stats.Hits})
	r.samples = r.samples[r.oldest(now):]
}

// count returns the lookups and hits of the window before now, or since the newest
// sample if that is older.
func (r *recentLookups) count(now time.Time, stats protocol.General) (lookups, hits int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.samples[r.oldest(now)]
	if stats.Lookups < from.lookups || stats.Hits < from.hits {
		return stats.Lookups, stats.Hits
	}
	return stats.Lookups - from.lookups, stats.Hits - from.hits
}

// oldest returns the index of the oldest sample in the window, else of the newest.
func (r *recentLookups) oldest(now time.Time) int {
	for i, s := range r.samples {
		if now.Sub(s.at) <= recentWindow {
			return i
		}
	}
	return len(r.samples) - 1
}

// RecentLookups returns the lookups and hits of the last minute before now, of a memcached that has these counters then.
func (c *Client) RecentLookups(now time.Time, stats protocol.General) (lookups, hits int64) {
	return c.recent.count(now, stats)
}

// SampleLookups samples the counters periodically until done is closed.
func (c *Client) SampleLookups(done <-chan struct{}) {
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), QueryTimeout)
		if stats, err := c.GeneralStats(ctx); err == nil {
			c.recent.add(time.Now(), stats)
		}
		cancel()
	}
}

package main

import (
	"context"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

const (
	// recentWindow is what "recent" means in the status.
	recentWindow = time.Minute
	// sampleInterval is by how much less it can be.
	sampleInterval = 10 * time.Second
)

// recent keeps what one run of memcached had counted at a few moments, so that
// what it counted since can be told.
type recent struct {
	mu sync.Mutex
	// samples are never none; the oldest is first.
	samples []sample
}

type sample struct {
	at            time.Time
	lookups, hits int64
}

// newRecent begins with the start of memcached, which had counted nothing.
func newRecent(started time.Time) *recent {
	return &recent{samples: []sample{{at: started}}}
}

// take keeps what memcached has counted by now, and forgets what is too old.
func (r *recent) take(now time.Time, general memcache.General) {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := r.samples[len(r.samples)-1]
	if general.Lookups < newest.lookups || general.Hits < newest.hits {
		// Somebody said "stats reset".
		r.samples = []sample{{at: newest.at}}
	}
	r.samples = append(r.samples, sample{now, general.Lookups, general.Hits})
	r.samples = r.samples[r.oldest(now):]
}

// until returns what memcached counted over the window before now. When no sample
// is that young it is since the newest.
func (r *recent) until(now time.Time, general memcache.General) (lookups, hits int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.samples[r.oldest(now)]
	if general.Lookups < from.lookups || general.Hits < from.hits {
		return general.Lookups, general.Hits
	}
	return general.Lookups - from.lookups, general.Hits - from.hits
}

// oldest is the index of the oldest sample within the window, or of the newest one.
func (r *recent) oldest(now time.Time) int {
	for i, s := range r.samples {
		if now.Sub(s.at) <= recentWindow {
			return i
		}
	}
	return len(r.samples) - 1
}

// sample asks for what memcached counted from time to time, until done is closed.
func (a *asker) sample(done <-chan struct{}) {
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), askBound)
		if general, err := a.general(ctx); err == nil {
			a.recent.take(time.Now(), general)
		}
		cancel()
	}
}

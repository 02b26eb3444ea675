package handover

import (
	"time"

	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

const (
	// itemsPerSecond is the rate while clients share the network and the processor.
	itemsPerSecond = 50_000
	// bytesPerSecond limits it too.
	bytesPerSecond = 100 << 20
	// hurry is how many times the expected time of a pass must remain, or it has no limit.
	hurry = 2
)

// pace limits the rate of a pass.
type pace struct {
	// total is the number of items, as far as known, visited how many of them the pass has visited.
	total, visited int64
	// deadline is when the pass must be over. It has no limit shortly before. The zero time is no limit at all.
	deadline time.Time

	began, due          time.Time
	batch, batchedBytes int64
}

// add counts an item that is sent, and returns how long to wait before the next one.
func (p *pace) add(bytes int64, now time.Time) time.Duration {
	if p.deadline.IsZero() {
		return 0
	}
	if p.began.IsZero() {
		p.began, p.due = now, now
	}
	p.batch++
	p.batchedBytes += bytes
	if p.batch < peerlink.BatchItems && p.batchedBytes < peerlink.BatchBytes {
		return 0
	}
	took := copyTime(p.batch, p.batchedBytes)
	p.batch, p.batchedBytes = 0, 0
	// Time that was lost is not recovered with a burst.
	p.due = later(p.due.Add(took), now)
	if p.hurries(now) {
		p.due = now
	}
	return p.due.Sub(now)
}

// copyTime returns how long a copy takes at the limited rate.
func copyTime(items, bytes int64) time.Duration {
	return time.Duration(max(float64(items)/itemsPerSecond, float64(bytes)/bytesPerSecond) * float64(time.Second))
}

// hurries reports whether the pass would take too long at its current rate.
func (p *pace) hurries(now time.Time) bool {
	expected := float64(now.Sub(p.began)) * float64(p.total-p.visited) / float64(max(p.visited, 1))
	return float64(p.deadline.Sub(now)) < hurry*expected
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

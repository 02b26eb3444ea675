package peerlink

import (
	"context"
	"time"
)

const (
	// ItemsPerSecond is the rate while clients share the network and the processor.
	ItemsPerSecond = 50_000
	// BytesPerSecond limits it too.
	BytesPerSecond = 100 << 20
	// BatchItems are sent at once.
	BatchItems = 200
	// BatchBytes are, too.
	BatchBytes = 1 << 20
	// hurry is how many times the expected time of a pass must remain, or it has no limit.
	hurry = 2
)

// Pace limits the rate of a pass.
type Pace struct {
	// Total is the number of items, as far as known, Visited how many of them the pass has visited.
	Total, Visited int64
	// Deadline is when the pass must be over. It has no limit shortly before. The zero time is no limit at all.
	Deadline time.Time
	// Share is how many passes have the rate together; 0 is one.
	Share int

	began, due          time.Time
	batch, batchedBytes int64
}

// Add counts an item that is sent, and returns how long to wait before the next one.
func (p *Pace) Add(bytes int64, now time.Time) time.Duration {
	if p.Deadline.IsZero() {
		return 0
	}
	if p.began.IsZero() {
		p.began, p.due = now, now
	}
	p.batch++
	p.batchedBytes += bytes
	if p.batch < BatchItems && p.batchedBytes < BatchBytes {
		return 0
	}
	took := CopyTime(p.batch, p.batchedBytes) * time.Duration(max(p.Share, 1))
	p.batch, p.batchedBytes = 0, 0
	// Time that was lost is not recovered with a burst.
	p.due = later(p.due.Add(took), now)
	if p.hurries(now) {
		p.due = now
	}
	return p.due.Sub(now)
}

// CopyTime returns how long a copy takes at the limited rate.
func CopyTime(items, bytes int64) time.Duration {
	return time.Duration(max(float64(items)/ItemsPerSecond, float64(bytes)/BytesPerSecond) * float64(time.Second))
}

// hurries reports whether the pass would take too long at its current rate.
func (p *Pace) hurries(now time.Time) bool {
	expected := float64(now.Sub(p.began)) * float64(p.Total-p.Visited) / float64(max(p.Visited, 1))
	return float64(p.Deadline.Sub(now)) < hurry*expected
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Sleep returns an error if the context is done before the time is over.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

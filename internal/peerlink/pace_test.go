package peerlink

import (
	"testing"
	"time"
)

func TestPaceKeepsTheRate(t *testing.T) {
	began := time.Now()
	run := func(items int, bytes int64, share int, lost time.Duration) time.Duration {
		p := Pace{Total: int64(items), Deadline: began.Add(time.Hour), Share: share}
		now := began
		for range items {
			p.Visited++
			wait := p.Add(bytes, now)
			if wait > 2*time.Duration(max(share, 1))*BatchItems*time.Second/ItemsPerSecond && bytes < 1000 {
				t.Errorf("waits %s at once", wait)
			}
			now = now.Add(wait + lost)
		}
		return now.Sub(began)
	}
	for name, c := range map[string]struct {
		items int
		bytes int64
		share int
		lost  time.Duration
		want  time.Duration
	}{
		"by items": {100_000, 100, 0, 0, 2 * time.Second},
		"by bytes": {1000, 1 << 20, 1, 0, 10 * time.Second},
		"slower":   {100_000, 100, 0, 100 * time.Microsecond, 10 * time.Second},
		"shared":   {100_000, 100, 4, 0, 8 * time.Second},
	} {
		if took := run(c.items, c.bytes, c.share, c.lost); took < c.want*9/10 || took > c.want*11/10 {
			t.Errorf("%s: %s, want %s", name, took, c.want)
		}
	}
}

func TestNoRateLimitShortlyBeforeDeadline(t *testing.T) {
	began := time.Now()
	p := Pace{Total: 1_000_000, Deadline: began.Add(time.Second)}
	now := began
	for range 10_000 {
		p.Visited++
		now = now.Add(p.Add(100, now) + time.Microsecond)
	}
	if took := now.Sub(began); took > 50*time.Millisecond {
		t.Errorf("10000 items took %s", took)
	}
}

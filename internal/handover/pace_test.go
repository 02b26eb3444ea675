package handover

import (
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

func TestPaceKeepsTheRate(t *testing.T) {
	began := time.Now()
	run := func(items int, bytes int64, lost time.Duration) time.Duration {
		p := pace{total: int64(items), deadline: began.Add(time.Hour)}
		now := began
		for range items {
			p.visited++
			wait := p.add(bytes, now)
			if wait > 2*peerlink.BatchItems*time.Second/itemsPerSecond && bytes < 1000 {
				t.Errorf("waits %s at once", wait)
			}
			now = now.Add(wait + lost)
		}
		return now.Sub(began)
	}
	for name, c := range map[string]struct {
		items int
		bytes int64
		lost  time.Duration
		want  time.Duration
	}{
		"by items": {100_000, 100, 0, 2 * time.Second},
		"by bytes": {1000, 1 << 20, 0, 10 * time.Second},
		"slower":   {100_000, 100, 100 * time.Microsecond, 10 * time.Second},
	} {
		if took := run(c.items, c.bytes, c.lost); took < c.want*9/10 || took > c.want*11/10 {
			t.Errorf("%s: %s, want %s", name, took, c.want)
		}
	}
}

func TestNoRateLimitShortlyBeforeDeadline(t *testing.T) {
	began := time.Now()
	p := pace{total: 1_000_000, deadline: began.Add(time.Second)}
	now := began
	for range 10_000 {
		p.visited++
		now = now.Add(p.add(100, now) + time.Microsecond)
	}
	if took := now.Sub(began); took > 50*time.Millisecond {
		t.Errorf("10000 items took %s", took)
	}
}

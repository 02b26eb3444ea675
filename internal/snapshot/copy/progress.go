package copy

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Progress counts what a run has done. It may be read while the run counts.
type Progress struct {
	items, total, bytes atomic.Int64

	mu      sync.Mutex
	seconds [rateSeconds + 1]struct{ second, items int64 }
}

// rateSeconds is how many whole seconds the rate covers.
const rateSeconds = 5

// add counts items and the bytes of their keys and values. Call it once per batch.
func (p *Progress) add(items, bytes int64) {
	p.items.Add(items)
	p.bytes.Add(bytes)
	now := time.Now().Unix()
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := &p.seconds[now%int64(len(p.seconds))]
	if slot.second != now {
		slot.second, slot.items = now, 0
	}
	slot.items += items
}

func (p *Progress) expect(items int64) { p.total.Add(items) }

// Report returns the counts, and the rate over the last five whole seconds.
func (p *Progress) Report(taskID string) wire.Progress {
	report := wire.Progress{
		TaskID: taskID,
		Items:  p.items.Load(), TotalItems: p.total.Load(), Bytes: p.bytes.Load(),
	}
	now := time.Now().Unix()
	p.mu.Lock()
	defer p.mu.Unlock()
	var items int64
	for _, slot := range p.seconds {
		if slot.second < now && slot.second >= now-rateSeconds {
			items += slot.items
		}
	}
	report.ItemsPerSecond = items / rateSeconds
	return report
}

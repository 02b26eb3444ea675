package snapshot

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// Meter counts what a run has done. It may be read while it counts.
type Meter struct {
	items, total, bytes atomic.Int64

	mu      sync.Mutex
	seconds [rateSeconds + 1]struct{ second, items int64 }
}

// rateSeconds are the last whole seconds that the rate is of.
const rateSeconds = 5

// add counts items and the bytes of their keys and values. It is called once a batch.
func (m *Meter) add(items, bytes int64) {
	m.items.Add(items)
	m.bytes.Add(bytes)
	now := time.Now().Unix()
	m.mu.Lock()
	defer m.mu.Unlock()
	slot := &m.seconds[now%int64(len(m.seconds))]
	if slot.second != now {
		slot.second, slot.items = now, 0
	}
	slot.items += items
}

// expect adds to what there is to do.
func (m *Meter) expect(items int64) { m.total.Add(items) }

// Progress returns the counts, and the rate over the last five whole seconds.
func (m *Meter) Progress(taskID string) snapshotapi.Progress {
	progress := snapshotapi.Progress{
		TaskID: taskID,
		Items:  m.items.Load(), TotalItems: m.total.Load(), Bytes: m.bytes.Load(),
	}
	now := time.Now().Unix()
	m.mu.Lock()
	defer m.mu.Unlock()
	var items int64
	for _, slot := range m.seconds {
		if slot.second < now && slot.second >= now-rateSeconds {
			items += slot.items
		}
	}
	progress.ItemsPerSecond = items / rateSeconds
	return progress
}

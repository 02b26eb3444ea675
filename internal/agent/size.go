package agent

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/sizing"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// size keeps the windows from which the recommended memory follows, with the items of the shard.
type size struct {
	now func() time.Time

	mu      sync.Mutex // a stop and a handover wait for it, so its holders do not wait for memcached
	windows sizing.Windows
}

// add returns nil if memcached doesn't report what is needed. Its statistics cost it as much as those of a scrape. The reading is the
// former one of the same memcached.
func (s *size) add(ctx context.Context, c *process.Client, file memoryFile, items []sizing.Item, reading *metrics.Reading) *sizing.Report {
	if err := c.Command(ctx, func(conn *protocol.Conn, ctx context.Context) error { return reading.Read(ctx, conn) }); err != nil {
		return nil
	}
	counters := reading.Counters()
	if math.IsNaN(counters.Hits + counters.Stored + counters.Evicted + counters.EvictedUnread + counters.Refused + reading.Limit()) {
		return nil
	}
	// The operator adds a page for each class to spec.memory.
	pages := int64(slab.Of(file.arguments, file.version).Classes()) << 20
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.windows.Add(sizing.Reading{At: now, Next: idleInterval, Memory: int64(reading.Limit()) - pages,
		EvictionAge: reading.EvictionAge(now), Counters: counters, Flushes: reading.Flushes(), Items: items})
	return s.windows.Report()
}

func (s *size) keeper() keeper {
	return keeper{
		export: func() []byte {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.windows.Marshal()
		},
		load: func(content []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.windows = sizing.Windows{}
			s.windows.Unmarshal(content) // without any, the shard is observed again
		},
	}
}

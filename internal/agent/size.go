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

	mu      sync.Mutex
	windows sizing.Windows
	reading metrics.Reading
}

// add returns nil if memcached doesn't report what is needed. Its statistics cost it as much as those of a scrape.
func (s *size) add(ctx context.Context, c *process.Client, file memoryFile, items []sizing.Item) *sizing.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := c.Command(ctx, func(conn *protocol.Conn, ctx context.Context) error { return s.reading.Read(ctx, conn) }); err != nil {
		return nil
	}
	counters := s.reading.Counters()
	if math.IsNaN(counters.Hits + counters.Stored + counters.Evicted + counters.EvictedUnread + counters.Refused + s.reading.Limit()) {
		return nil
	}
	// The operator adds a page for each class to spec.memory.
	pages := int64(slab.Of(file.arguments, file.version).Classes()) << 20
	now := s.now()
	s.windows.Add(sizing.Reading{At: now, Next: idleInterval, Memory: int64(s.reading.Limit()) - pages,
		EvictionAge: s.reading.EvictionAge(now), Counters: counters, Items: items})
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
			s.windows, s.reading = sizing.Windows{}, metrics.Reading{}
			s.windows.Unmarshal(content) // one of another release doesn't fit, and the shard is observed again
		},
	}
}

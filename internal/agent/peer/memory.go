package peer

import (
	"context"
	"fmt"
	"sync"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// Memory is the memory file of a memcached with these arguments.
type Memory struct {
	DataDir   string
	Client    *process.Client
	Arguments []string
	Version   string

	mu sync.Mutex
	// clock is memcached's, according to the best reading since it started.
	clock protocol.Clock
}

// Verify returns an error if the memory file can't be read as memcached does.
func (m *Memory) Verify(ctx context.Context) error {
	file, err := datadir.OpenMemory(m.DataDir, m.Arguments, m.Version)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Verify(ctx, m.Client.Server); err != nil {
		return fmt.Errorf("comparing the memory file with memcached: %w", err)
	}
	return nil
}

// Scan visits all items of a memcached that runs.
func (m *Memory) Scan(ctx context.Context, order handover.Order, visit func(*memfile.Item) error) (memfile.Report, error) {
	return m.scanRunning(ctx, order, nil, visit)
}

func (m *Memory) scanRunning(ctx context.Context, order handover.Order, which func(*memfile.Item) bool, visit func(*memfile.Item) error) (memfile.Report, error) {
	clock, err := memfile.ClockOfRunning(ctx, m.Client)
	if err != nil {
		return memfile.Report{}, fmt.Errorf("reading memcached's clock: %w", err)
	}
	return m.scan(clock, order, which, visit)
}

// ScanSaved visits all items that memcached has saved.
func (m *Memory) ScanSaved(order handover.Order, visit func(*memfile.Item) error) (memfile.Report, error) {
	clock, err := datadir.SavedClock(m.DataDir)
	if err != nil {
		return memfile.Report{}, fmt.Errorf("reading memcached's clock: %w", err)
	}
	return m.scan(clock, order, nil, visit)
}

func (m *Memory) scan(clock memfile.Clock, order handover.Order, which func(*memfile.Item) bool, visit func(*memfile.Item) error) (memfile.Report, error) {
	file, err := datadir.OpenMemory(m.DataDir, m.Arguments, m.Version)
	if err != nil {
		return memfile.Report{}, err
	}
	defer file.Close()
	file.Which = which
	m.mu.Lock()
	clock.Clock = clock.Best(m.clock)
	m.clock = clock.Clock
	m.mu.Unlock()
	switch order {
	case handover.ColdFirst:
		return file.ScanColdFirst(clock, visit)
	case handover.HotFirst:
		return file.ScanHotFirst(clock, visit)
	}
	return file.Scan(clock, visit)
}

// Reserve lets a copy of items use that much memory beside its buffers until it calls release, and returns false, and the buffers
// only, if the container has no room for it.
func (m *Memory) Reserve(bytes int64) (release func(), ok bool) {
	return memory.Reserve(bytes, slab.Of(m.Arguments, m.Version).MaxBytes)
}

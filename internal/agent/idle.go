package agent

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/sizing"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
)

const (
	// idleInterval is the time between two samples of the memory file.
	idleInterval = time.Minute
	// idlePlaces is how many places of the file a sample reads: 9 ms of CPU, and a standard
	// error of at most 0.8% of the memory.
	idlePlaces = 4096
	// idleUnreadable is the share of them, 1 in so many, that may not have the expected layout.
	idleUnreadable = 10
)

// memoryFile says how to read the items of a memcached that runs.
type memoryFile struct {
	dataDir   string
	arguments []string
	version   string
	pid       int
	uses      *atomic.Pointer[handover.Uses]
}

// sampleIdle estimates periodically what memory no client uses, until done is closed. It sends
// no request for an item, so that memcached's own statistics don't change.
func sampleIdle(c *process.Client, done <-chan struct{}, file memoryFile, size *size) {
	ticker := time.NewTicker(idleInterval)
	defer ticker.Stop()
	var reading metrics.Reading
	for {
		ctx, cancel := context.WithTimeout(context.Background(), process.QueryTimeout)
		var items []sizing.Item
		sample, err := file.sampleIdle(ctx, c, &items)
		if err != nil {
			sample = nil
		}
		var report *sizing.Report
		if sample != nil {
			report = size.add(ctx, c, file, items, &reading)
		}
		cancel()
		c.Size.Store(report)
		c.Idle.Store(sample)
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}

// sampleIdle returns nil if too much of the file doesn't have the expected layout.
func (m memoryFile) sampleIdle(ctx context.Context, c *process.Client, items *[]sizing.Item) (*metrics.Idle, error) {
	file, err := datadir.OpenMemory(m.dataDir, m.arguments, m.version)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	clock, err := memfile.ClockOfRunning(ctx, c)
	if err != nil {
		return nil, err
	}
	sample, now := &metrics.Idle{}, clock.At(clock.Now)
	uses := m.uses.Load()
	report, err := file.Sample(clock, mappedAt("/proc", m.pid, datadir.MemoryPath(m.dataDir)), idlePlaces, func(item memfile.Sampled) {
		used, read := uses.Of(item.CAS, clock.At(item.LastAccess), item.Fetched)
		age := uint32(max(now.Sub(used), 0) / time.Second)
		sample.Add(age, read, item.Bytes)
		*items = append(*items, sizing.Item{Age: age, Left: item.Expires - min(item.Expires, clock.Now),
			Fetched: read, Active: item.Active, Bytes: float64(item.Bytes), Count: item.Items})
	})
	if err != nil || report.Unreadable*idleUnreadable > report.Items+report.Skipped+report.Unreadable {
		return nil, err
	}
	return sample, nil
}

// mappedAt returns the address at which a process has mapped a file, 0 if it is unknown.
func mappedAt(proc string, pid int, path string) uint64 {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "maps"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 6 && fields[5] == path && fields[2] == "00000000" {
			from, _, _ := strings.Cut(fields[0], "-")
			address, err := strconv.ParseUint(from, 16, 64)
			if err != nil {
				return 0
			}
			return address
		}
	}
	return 0
}

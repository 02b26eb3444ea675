package peer

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// The garbage collector would run all the time with the agent's own limit.
func TestMoverHasTheMemoryOfItsBuffersAndTables(t *testing.T) {
	limit := func() int64 { return debug.SetMemoryLimit(-1) }
	before := limit()
	t.Cleanup(func() { debug.SetMemoryLimit(before); debug.SetGCPercent(100) })
	memory.Limit()
	idle := limit()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := &Mover{Config: Config{ScalingKey: key, Ordinal: 1}, Memory: &Memory{Client: &process.Client{}}, Process: &process.Process{}, Log: slog.New(slog.DiscardHandler),
		Request: wire.Scaling{ID: "id", Ring: "Ketama", From: []string{"a"}, To: []string{"a", "b"}, Ordinal: 1}, Concluded: &atomic.Pointer[string]{}, Reports: make(chan Moved)}
	var buffers, table int64
	m.Step = func() wire.ScalingStep {
		buffers = limit()
		release, ok := m.Memory.movable(m.Config, m.run).Reserve(1 << 20)
		if table = limit(); !ok {
			t.Error("the container has no room for the table")
		}
		release()
		cancel()
		return wire.ScalingCopy
	}
	m.Run(ctx)
	if want := idle + memory.Handover; buffers != want || table != want+memory.Handover+1<<20 || limit() != idle {
		t.Errorf("the limit is %d while it runs, %d with a table, and %d afterwards; want %d, %d and %d", buffers, table, limit(), want, want+memory.Handover+1<<20, idle)
	}
}

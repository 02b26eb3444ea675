package peer

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
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

// No shard waits for one that has a problem, until clients use the new owners only: then it must have no old value.
func TestMoverWithAProblemClosesTheChange(t *testing.T) {
	const id = "id"
	for name, c := range map[string]struct {
		ring, concluded string
		closes          bool
	}{
		"memcached doesn't answer, and the agent tries again": {ring: "Ketama", concluded: "former"},
		"an unknown ring, by which no items can move":         {ring: "Maglev", closes: true},
		"all items are new": {ring: "Ketama", concluded: id, closes: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reports := make(chan Moved, 10)
				var step atomic.Pointer[wire.ScalingStep]
				step.Store(new(wire.ScalingPublished))
				memcached := &process.Client{Server: protocol.Server{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }}}
				m := &Mover{Config: Config{ScalingKey: t.TempDir(), Ordinal: 1}, Memory: &Memory{Client: memcached}, Process: &process.Process{}, Log: slog.New(slog.DiscardHandler),
					Request:   wire.Scaling{ID: id, Ring: c.ring, From: []string{"a"}, To: []string{"a", "b"}, Ordinal: 1},
					Concluded: &atomic.Pointer[string]{}, Reports: reports, Step: func() wire.ScalingStep { return *step.Load() }}
				m.Concluded.Store(&c.concluded)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				returned := make(chan struct{})
				go func() {
					m.Run(ctx)
					close(returned)
				}()
				synctest.Wait()
				if r := (<-reports).Status; r.Problem == "" || !r.Forgets || r.Step != "" || len(reports) > 0 {
					t.Errorf("before the close, it reports %+v", r)
				}
				step.Store(new(wire.ScalingClose))
				for range 2 {
					r := (<-reports).Status
					if r.Problem == "" || (r.Step == wire.ScalingClose) != c.closes || strings.Contains(r.Error, "refused") == c.closes {
						t.Errorf("at the close, it reports %+v", r)
					}
					if c.closes {
						break
					}
				}
				if !c.closes {
					stop()
				}
				<-returned
			})
		})
	}
}

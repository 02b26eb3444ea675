package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
	"github.com/memcached-operator/memcached-operator/internal/scaling"
)

// Mover gets the keys of other shards into one process of memcached, while the number of shards changes. It runs on a goroutine
// of its own.
type Mover struct {
	Config
	Network Network
	Memory  *Memory
	Process *process.Process
	Request wire.Scaling
	// Step returns the present one of the request.
	Step func() wire.ScalingStep
	// Concluded contains the ID of the last change for which nothing is compared with the sources any more.
	Concluded *atomic.Pointer[string]
	Reports   chan<- Moved
	Log       *slog.Logger
}

// Moved is how far the moves into a process are.
type Moved struct {
	Process *process.Process
	Status  wire.ScalingStatus
}

// forgetInterval is between two looks at the step, or two attempts to delete items.
const forgetInterval = time.Second

// Run returns when the change is closed, or the purge is done, or the context is done and what it has copied is deleted where that is required.
func (m *Mover) Run(ctx context.Context) {
	defer memory.Use(memory.Handover)()
	if step := m.Request.Step; step == wire.ScalingPurge || step == wire.ScalingCount {
		m.purge(ctx)
		return
	}
	last := wire.ScalingStatus{}
	err := m.move(ctx, &last)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		m.Log.Warn("This shard does not get its keys from the other ones", "error", err)
		last.Problem, last.Error, last.Forgets = err.Error(), "", true
		m.report(ctx, last)
		m.forget(ctx, last)
		return
	}
	m.Log.Info("The other shards have no more keys of this one", "moved", last.Moved, "deleted", last.Deleted, "purged", last.Purged)
	last.Step = wire.ScalingClose
	m.report(ctx, last)
}

// move returns nil when the change is closed. last is the last report.
func (m *Mover) move(ctx context.Context, last *wire.ScalingStatus) error {
	key, err := readKey(m.ScalingKey)
	if err != nil {
		return err
	}
	return scaling.Run(ctx, scaling.Target{
		Memcached: m.Memory.movable(m.Config, m.run), Key: key, Log: m.Log,
		Change:    m.change(),
		Dial:      m.dial,
		Step:      m.Step,
		Concluded: m.isConcluded(),
		Conclude:  func() { m.Concluded.Store(&m.Request.ID) },
		Progress: func(p scaling.Progress) {
			*last = statusOf(p)
			m.report(ctx, *last)
		},
	})
}

func (m *Mover) isConcluded() bool {
	id := m.Concluded.Load()
	return id != nil && *id == m.Request.ID
}

// forget closes a change that has a problem, when clients use the new owners only: what this process has of the keys that move is
// compared with nothing any more, and would be old values.
func (m *Mover) forget(ctx context.Context, last wire.ScalingStatus) {
	for {
		if m.Step() == wire.ScalingClose {
			var err error
			if !m.isConcluded() { // all values are new then
				err = scaling.Forget(ctx, m.Memory.movable(m.Config, m.run), m.change())
			}
			if err == nil || errors.Is(err, scaling.ErrImpossible) { // also no earlier attempt could copy items
				m.Log.Info("Closed without the keys of the other shards", "error", err)
				last.Step, last.Error = wire.ScalingClose, ""
				m.report(ctx, last)
				return
			}
			last.Error = err.Error()
			m.report(ctx, last)
		}
		if peerlink.Sleep(ctx, forgetInterval) != nil {
			return
		}
	}
}

func (m *Mover) change() scaling.Change {
	return scaling.Change{Ring: m.Request.Ring, From: m.Request.From, To: m.Request.To}
}

// purge deletes the items of keys that other shards own, or counts them.
func (m *Mover) purge(ctx context.Context) {
	orphans, err := scaling.Purge(ctx, m.Memory.movable(m.Config, m.run), m.Request.Ring, m.Request.To, m.Request.Step == wire.ScalingCount)
	report := wire.ScalingStatus{Step: m.Request.Step, Purged: orphans.Items, PurgedBytes: orphans.Bytes}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		report.Step, report.Problem = "", err.Error()
	}
	m.Log.Info("Purged the items of keys that other shards own", "request", m.Request.ID, "step", m.Request.Step, "items", orphans.Items, "error", err)
	m.report(ctx, report)
}

func statusOf(p scaling.Progress) wire.ScalingStatus {
	s := wire.ScalingStatus{Step: p.Step, Moved: p.Moved, Total: p.Total, StaleSeconds: p.Stale.Seconds(), Deleted: p.Deleted, Purged: p.Purged}
	if p.Error != nil {
		s.Error = p.Error.Error()
	}
	return s
}

func (m *Mover) report(ctx context.Context, s wire.ScalingStatus) {
	s.ID = m.Request.ID
	select {
	case m.Reports <- Moved{Process: m.Process, Status: s}:
	case <-ctx.Done():
	}
}

// run identifies the process.
func (m *Mover) run() string {
	select {
	case <-m.Process.Done:
		return ""
	default:
		return strconv.Itoa(m.Process.PID)
	}
}

// dial connects to the pod that serves a shard.
func (m *Mover) dial(ctx context.Context, ordinal int) (net.Conn, error) {
	if ordinal >= len(m.Request.Agents) {
		return nil, fmt.Errorf("the request has no agent of shard %d", ordinal)
	}
	status, err := m.Network.Status(ctx, m.Request.Agents[ordinal])
	if err != nil {
		return nil, err
	}
	if status.Scaling == nil || status.PodIP == "" || status.HandoverPort == 0 {
		return nil, errors.New("the agent of the shard can't move keys yet")
	}
	return ofMoves.dial(nil)(ctx, "tcp", net.JoinHostPort(status.PodIP, strconv.Itoa(status.HandoverPort)))
}

// services returns what the handover port serves besides handovers: the items of keys that get other owners.
func (c Config) services(log *slog.Logger) []handover.Service {
	if c.ScalingKey == "" {
		return nil
	}
	key, err := readKey(c.ScalingKey)
	var service handover.Service
	if err == nil {
		service, err = scaling.Service(key, func() (scaling.Memcached, error) {
			m, began := c.Serving()
			if m == nil {
				return scaling.Memcached{}, errNotServing
			}
			return m.movable(c, func() string {
				if present, run := c.Serving(); present != nil && run == began {
					return run
				}
				return ""
			}), nil
		})
	}
	if err != nil {
		log.Warn("The items of this pod can't move to other shards", "error", err)
		return nil
	}
	return []handover.Service{service}
}

var errNotServing = errors.New("memcached does not serve clients now")

// movable returns the memcached of a memory, between whose shards keys move.
func (m *Memory) movable(c Config, run func() string) scaling.Memcached {
	server := m.Client.Server
	server.DialContext = ofMoves.dial(server.DialContext)
	scan := func(ctx context.Context, order handover.Order, which func(key []byte) bool, visit func(*memfile.Item) error) (memfile.Report, error) {
		return m.scanRunning(ctx, order, ofMoves.scan(ctx, which), visit)
	}
	dump := func(ctx context.Context, visit func(protocol.Listed) error) error {
		return m.Client.Server.Dump(ctx, peerlink.Silence, visit)
	}
	return scaling.Memcached{Server: server, Scan: scan, Dump: dump, Run: run, Reserve: m.Reserve, Owner: c.Owner, Ordinal: c.Ordinal}
}

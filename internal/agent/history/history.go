// Package history counts what happens to the memcacheds of a pod, and keeps it over restarts of its container.
package history

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/files"
	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// probeInterval is the time between two measured round trips, hungInterval that after
	// one without an answer.
	probeInterval = 10 * time.Second
	hungInterval  = 500 * time.Millisecond
)

// History keeps what the metrics report about earlier starts of the pod in the data
// volume. Any number of goroutines may use it.
type History struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu     sync.Mutex
	record metrics.History
	probes metrics.Probes
	// hung is whether the probe has found that memcached does not answer.
	hung bool
	// saveBegan is zero unless memcached is saving its items.
	saveBegan time.Time
	saveItems int64
}

// Read reads a data directory. After the last agent was killed, memcached has not
// answered since its last answer, which is at most probeInterval too early.
func Read(dir string, now func() time.Time, log *slog.Logger) *History {
	h := &History{path: filepath.Join(dir, "history.json"), now: now, log: log}
	if text, err := os.ReadFile(h.path); err == nil && json.Unmarshal(text, &h.record) != nil {
		h.record = metrics.History{}
	}
	if h.record.Starts == nil {
		h.record.Starts = map[wire.StartResult]int64{}
	}
	if h.record.UnavailableSince.IsZero() {
		h.record.UnavailableSince = h.record.AnsweredAt
	}
	return h
}

// change modifies the record and writes it.
func (h *History) change(modify func(*metrics.History)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	modify(&h.record)
	text, err := json.Marshal(h.record)
	if err == nil {
		err = files.Replace(h.path, text)
	}
	if err != nil {
		h.log.Warn("Cannot write the history of this pod", "error", err)
	}
}

// SetAnswering records whether memcached answers clients from now on.
func (h *History) SetAnswering(answers bool) {
	now := h.now()
	h.change(func(r *metrics.History) {
		h.hung = false
		switch {
		case answers:
			r.AnsweredAt = now
			if !r.UnavailableSince.IsZero() {
				r.LastOutage = max(now.Sub(r.UnavailableSince).Seconds(), 0)
				r.UnavailableSeconds += r.LastOutage
				r.UnavailableSince = time.Time{}
			}
		case r.UnavailableSince.IsZero() && !r.AnsweredAt.IsZero():
			r.UnavailableSince = now
		}
	})
}

// Unavailable returns for how many seconds no memcached answered clients before a start that is
// complete now.
func (h *History) Unavailable(start wire.Start) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch since := h.record.UnavailableSince; {
	case start.Result == wire.StartHandedOver:
		return start.GapSeconds
	case since.IsZero():
		return 0
	default:
		return max(h.now().Sub(since).Seconds(), 0)
	}
}

// Started records a start that is complete.
func (h *History) Started(start wire.Start) {
	h.change(func(r *metrics.History) {
		r.Starts[start.Result]++
		if start.Result == wire.StartHandedOver {
			r.Received++
			r.Handover = &start
			r.LastOutage = start.GapSeconds
			r.UnavailableSeconds += start.GapSeconds
		}
	})
}

// SaveBegins records that memcached saves that many items.
func (h *History) SaveBegins(items int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.saveBegan, h.saveItems = h.now(), items
}

// SaveEnds records whether the items are saved. It does nothing if no save has begun.
func (h *History) SaveEnds(saved bool) {
	h.mu.Lock()
	began, items := h.saveBegan, h.saveItems
	h.saveBegan = time.Time{}
	h.mu.Unlock()
	if began.IsZero() {
		return
	}
	h.change(func(r *metrics.History) {
		if !saved {
			r.FailedSaves++
			return
		}
		r.Saves++
		r.SavedAt, r.SaveSeconds, r.SavedItems = h.now(), h.now().Sub(began).Seconds(), items
	})
}

// HandoverFailed records a handover that failed, to this pod or from it.
func (h *History) HandoverFailed(received bool) {
	h.change(func(r *metrics.History) {
		if received {
			r.FailedReceived++
		} else {
			r.FailedSent++
		}
	})
}

// Drains records that a drain has begun.
func (h *History) Drains() {
	h.change(func(r *metrics.History) {
		r.Drains++
		r.DrainedAt = h.now()
	})
}

// Snapshot returns a copy in which the unavailable time includes the present outage.
func (h *History) Snapshot() (metrics.History, metrics.Probes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.record
	r.Starts = maps.Clone(r.Starts)
	if !r.UnavailableSince.IsZero() {
		r.UnavailableSeconds += max(h.now().Sub(r.UnavailableSince).Seconds(), 0)
	}
	return r, h.probes
}

// probed records a round trip to a memcached that should answer, and returns whether it
// did. The supervisor may know by now that memcached has stopped.
func (h *History) probed(began time.Time, took time.Duration, answered bool) bool {
	h.mu.Lock()
	stopped := !h.record.UnavailableSince.IsZero() && !h.hung
	recovered := answered && h.hung
	if answered {
		h.probes.Add(took)
	}
	h.mu.Unlock()
	switch {
	case stopped:
	case recovered:
		h.SetAnswering(true)
	case answered:
		h.change(func(r *metrics.History) { r.AnsweredAt = began })
	default:
		h.change(func(r *metrics.History) {
			if r.UnavailableSince.IsZero() {
				r.UnavailableSince = began
			}
			h.hung = true
		})
	}
	return answered
}

// Probe measures round trips to one memcached until it has exited.
func (h *History) Probe(c *process.Client, done <-chan struct{}) {
	for pause := time.Duration(0); ; {
		select {
		case <-done:
			return
		case <-time.After(pause):
		}
		began, took, err := roundTrip(c)
		select {
		case <-done:
			return
		default:
		}
		pause = probeInterval
		if !h.probed(began, took, err == nil || protocol.IsAnswer(err)) {
			pause = hungInterval
		}
	}
}

// roundTrip measures one request, without the wait for others of this agent.
func roundTrip(c *process.Client) (began time.Time, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), process.QueryTimeout)
	defer cancel()
	began = time.Now()
	took, err = process.Query(ctx, c, func(conn *protocol.Conn, ctx context.Context) (time.Duration, error) {
		sent := time.Now()
		_, err := conn.Version(ctx)
		return time.Since(sent), err
	})
	return began, took, err
}

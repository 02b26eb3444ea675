package history

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

type testClock struct{ time.Time }

func (c *testClock) now() time.Time { return c.Time }

func (c *testClock) pass(seconds float64) {
	c.Time = c.Add(time.Duration(seconds * float64(time.Second)))
}

func TestHistoryCountsOutagesOverRestartsOfTheContainer(t *testing.T) {
	dir, clock, log := t.TempDir(), &testClock{time.Unix(1_800_000_000, 0)}, slog.New(slog.DiscardHandler)
	start := func() *History { return Read(dir, clock.now, log) }
	want := func(h *History, total, last float64) {
		t.Helper()
		if r, _ := h.Snapshot(); r.UnavailableSeconds != total || r.LastOutage != last {
			t.Errorf("unavailable for %v s, at last for %v s; want %v and %v", r.UnavailableSeconds, r.LastOutage, total, last)
		}
	}
	h := start()
	h.SetAnswering(false)
	clock.pass(30)
	want(h, 0, 0) // a pod that has not served yet replaces no other one
	h.SetAnswering(true)
	clock.pass(100)

	h.SetAnswering(false) // a restart in place
	clock.pass(0.25)
	want(h, 0.25, 0)
	if warm, handedOver := h.Unavailable(wire.Start{Result: wire.StartWarm}), h.Unavailable(wire.Start{Result: wire.StartHandedOver, GapSeconds: 0.5}); warm != 0.25 || handedOver != 0.5 {
		t.Errorf("unavailable for %v s before a restart, and for %v s in a handover", warm, handedOver)
	}
	h.SetAnswering(true)
	clock.pass(100)
	want(h, 0.25, 0.25)

	h.SetAnswering(false) // the container stops
	clock.pass(1)
	h = start()
	h.SetAnswering(false)
	clock.pass(0.5)
	h.SetAnswering(true)
	want(h, 1.75, 1.5)

	clock.pass(8)
	h.probed(clock.now(), time.Millisecond, true)
	clock.pass(2) // the agent is killed, 3 s later the next one has started
	clock.pass(3)
	h = start()
	h.SetAnswering(false)
	h.SetAnswering(true)
	want(h, 6.75, 5)
}

func TestProbeCountsAMemcachedThatHangs(t *testing.T) {
	clock := &testClock{time.Unix(1_800_000_000, 0)}
	h := Read(t.TempDir(), clock.now, slog.New(slog.DiscardHandler))
	h.SetAnswering(true)
	clock.pass(10)
	hangs := clock.now()
	clock.pass(0.5)
	if h.probed(hangs, 0, false) {
		t.Error("it answered")
	}
	clock.pass(0.5)
	h.probed(clock.now(), 0, false)
	clock.pass(1)
	if r, _ := h.Snapshot(); r.UnavailableSeconds != 2 {
		t.Errorf("unavailable for %v s while it hangs; want 2", r.UnavailableSeconds)
	}
	h.probed(clock.now(), time.Millisecond, true)
	clock.pass(10)
	h.probed(clock.now(), time.Millisecond, true)
	if r, _ := h.Snapshot(); r.UnavailableSeconds != 2 || r.LastOutage != 2 {
		t.Errorf("unavailable for %v s, at last %v s; want 2", r.UnavailableSeconds, r.LastOutage)
	}

	// The answer to a probe may arrive when the supervisor has stopped memcached.
	h.SetAnswering(false)
	h.probed(clock.now(), time.Millisecond, true)
	clock.pass(3)
	if r, _ := h.Snapshot(); r.UnavailableSeconds != 5 {
		t.Errorf("unavailable for %v s during a stop; want 5", r.UnavailableSeconds)
	}
}

func TestHistoryOfAHandover(t *testing.T) {
	clock, dir := &testClock{time.Unix(1_800_000_000, 0)}, t.TempDir()
	h := Read(dir, clock.now, slog.New(slog.DiscardHandler))
	h.Started(wire.Start{Result: wire.StartHandedOver, Items: 9, ItemsBefore: 10, HandoverSeconds: 4, GapSeconds: 0.5})
	h.SetAnswering(true)
	h.Drains()
	h.SaveBegins(7)
	clock.pass(2)
	h.SaveEnds(true)
	h.SaveEnds(false) // a kill is no save
	h.SaveBegins(7)
	h.SaveEnds(false)
	r, _ := Read(dir, clock.now, slog.New(slog.DiscardHandler)).Snapshot()
	if r.Received != 1 || r.Handover == nil || r.Handover.Items != 9 || r.UnavailableSeconds != 2.5 || r.Drains != 1 ||
		r.Saves != 1 || r.FailedSaves != 1 || r.SaveSeconds != 2 || r.SavedItems != 7 || r.Starts[wire.StartHandedOver] != 1 {
		t.Errorf("%+v", r)
	}
}

func TestDamagedHistoryStartsAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "history.json"), []byte(`{"saves": 3, "drains": "`), 0o600); err != nil {
		t.Fatal(err)
	}
	h := Read(dir, time.Now, slog.New(slog.DiscardHandler))
	if r, _ := h.Snapshot(); r.Saves != 0 {
		t.Errorf("%+v", r)
	}
	h.change(func(r *metrics.History) { r.Drains++ })
	if r, _ := Read(dir, time.Now, slog.New(slog.DiscardHandler)).Snapshot(); r.Drains != 1 {
		t.Errorf("%+v", r)
	}
}

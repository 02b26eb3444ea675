package agent

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/history"
	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/secrets"
	"github.com/memcached-operator/memcached-operator/internal/agent/serve"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// testHistory returns a history that no one reads.
func testHistory() *history.History {
	return history.Read(os.DevNull, time.Now, slog.New(slog.DiscardHandler))
}

func testSupervisor(phase wire.Phase) *supervisor {
	s := &supervisor{
		secrets: &secrets.Set{},
		history: testHistory(),
		phase:   phase, states: &serve.States{}, now: time.Now, log: slog.New(slog.DiscardHandler), timer: time.NewTimer(time.Hour),
		process: &process.Process{Client: process.NewClient(protocol.At("127.0.0.1:1"))},
	}
	s.publish()
	return s
}

func (s *supervisor) request(o *peer.Source, event peer.Event) error {
	r := peer.Request{Source: o, Event: event, Reply: make(chan error, 1)}
	s.handleSource(r)
	return <-r.Reply
}

func TestItemsAreHandedOverDuringADrainOrToAPodThatReplacesTheOneThatServes(t *testing.T) {
	for _, phase := range []wire.Phase{
		wire.PhaseStarting, wire.PhaseReceiving, wire.PhaseFollowing, wire.PhaseServing, wire.PhaseRestarting, wire.PhaseDraining, wire.PhaseStopping,
	} {
		for _, requested := range []bool{false, true} {
			s := testSupervisor(wire.PhaseServing)
			if s.phase = phase; phase == wire.PhaseDraining {
				s.drainUntil = time.Now()
			}
			r := peer.Request{Source: &peer.Source{}, Event: peer.Begins, Requested: requested, Reply: make(chan error, 1)}
			s.handleSource(r)
			err := <-r.Reply
			begins := phase == wire.PhaseDraining || phase == wire.PhaseServing && requested
			if begins != (err == nil) || !begins && !errors.Is(err, handover.ErrNotStarted) {
				t.Errorf("%s, requested %t: %v", phase, requested, err)
			}
		}
	}
}

func TestOnlyTheLatestTargetEndsAHandover(t *testing.T) {
	s := testSupervisor(wire.PhaseDraining)
	s.drainUntil = time.Now()
	first, second := &peer.Source{}, &peer.Source{}
	for _, o := range []*peer.Source{first, second} {
		if err := s.request(o, peer.Begins); err != nil {
			t.Fatal(err)
		}
	}
	for _, event := range []peer.Event{peer.Commits, peer.Stops, peer.Resumes, peer.Abandons, peer.Completes, peer.Releases} {
		if err := s.request(first, event); !errors.Is(err, errSuperseded) || s.phase != wire.PhaseDraining || s.finished {
			t.Errorf("event %d: %v, phase %s, finished %t", event, err, s.phase, s.finished)
		}
	}
}

// The items would not be those that the target then reads.
func TestHandoverDoesNotEndWithoutAStop(t *testing.T) {
	for _, phase := range []wire.Phase{wire.PhaseServing, wire.PhaseRestarting, wire.PhaseStopping} {
		s := testSupervisor(wire.PhaseServing)
		s.phase, s.source = phase, &peer.Source{}
		if err := s.request(s.source, peer.Stops); !errors.Is(err, errNotServing) || s.phase != phase {
			t.Errorf("%s: %v, then %s", phase, err, s.phase)
		}
	}
}

func TestOldPodExitsWhenTheTargetDoesNotTakeOverInTime(t *testing.T) {
	s := testSupervisor(wire.PhaseStopping)
	s.process, s.source, s.drainUntil = nil, &peer.Source{}, time.Now()
	if err := s.request(s.source, peer.Resumes); err != nil || !s.finished || s.err != nil {
		t.Errorf("%v, finished %t, %v", err, s.finished, s.err)
	}
}

func TestHandedOverItemsAreLogged(t *testing.T) {
	s, log := testSupervisor(wire.PhaseStopping), &strings.Builder{}
	s.process, s.source, s.drainUntil, s.log = nil, &peer.Source{}, time.Now(), slog.New(slog.NewTextHandler(log, nil))
	r := peer.Request{Source: s.source, Event: peer.Completes, Reply: make(chan error, 1),
		Result: handover.Result{ItemsBefore: 10, Items: 8, Rejected: 2, Bytes: 4000, Passes: 1}}
	s.handleSource(r)
	if want := "items=8 itemsBefore=10 rejected=2 bytes=4000 passes=1"; !strings.Contains(log.String(), want) || !s.finished {
		t.Errorf("finished %t; the log lacks %q:\n%s", s.finished, want, log)
	}
}

func TestOldPodExitsWhenTheTargetMayHaveServedAndIsLost(t *testing.T) {
	s := testSupervisor(wire.PhaseStopping)
	s.process, s.source, s.drainUntil = nil, &peer.Source{}, time.Now().Add(time.Hour)
	if err := s.request(s.source, peer.Abandons); err != nil || !s.finished || s.err != nil {
		t.Errorf("%v, finished %t, %v", err, s.finished, s.err)
	}
}

// A handover interrupts the drain, which continues when memcached starts again.
func TestEndOfAnEarlierDrainIsIgnored(t *testing.T) {
	s := testSupervisor(wire.PhaseDraining)
	s.drain = &drainRun{cancel: func() {}}
	s.handleDrained(drainEnd{run: &drainRun{}, reason: "canceled"})
	if s.phase != wire.PhaseDraining {
		t.Errorf("phase %s", s.phase)
	}
}

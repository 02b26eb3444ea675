package checker

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"
)

type honest map[string]string

func (s honest) get(key string) (string, bool, error) {
	value, there := s[key]
	return value, there, nil
}

func (s honest) set(key, value string) error {
	s[key] = value
	return nil
}

func (s honest) delete(key string) error {
	delete(s, key)
	return nil
}

// faulty is an honest store with some wrong answers.
type faulty struct {
	honest
	random *rand.Rand
	// read, write and remove replace the operation when isFaulty returns true.
	read   func(s honest, key string) (string, bool)
	write  func(s honest, key, value string) error
	remove func(s honest, key string) error
	// late are writes of requests that wait in a connection which the client has abandoned.
	late []func()
}

// isFaulty returns true once in twenty times. Before that, a late write may happen.
func (s *faulty) isFaulty() bool {
	if len(s.late) > 0 && s.random.IntN(10) == 0 {
		s.late[0]()
		s.late = s.late[1:]
	}
	return s.random.IntN(20) == 0
}

func (s *faulty) later(do func()) { s.late = append(s.late, do) }

func (s *faulty) get(key string) (string, bool, error) {
	if s.isFaulty() && s.read != nil {
		value, there := s.read(s.honest, key)
		return value, there, nil
	}
	return s.honest.get(key)
}

func (s *faulty) set(key, value string) error {
	if s.isFaulty() && s.write != nil {
		return s.write(s.honest, key, value)
	}
	return s.honest.set(key, value)
}

func (s *faulty) delete(key string) error {
	if s.isFaulty() && s.remove != nil {
		return s.remove(s.honest, key)
	}
	return s.honest.delete(key)
}

var errNoAnswer = errors.New("no answer")

func TestCheckerFindsWrongAnswersAndNothingElse(t *testing.T) {
	for _, store := range []struct {
		name  string
		fault func(*faulty)
		finds []Kind
		loses bool
	}{
		{name: "honest"},
		{name: "loses items", loses: true, fault: func(s *faulty) {
			s.read = func(h honest, key string) (string, bool) { delete(h, key); return "", false }
		}},
		{name: "confirms writes that it did not do", loses: true, finds: []Kind{Stale}, fault: func(s *faulty) {
			s.write = func(honest, string, string) error { return nil }
		}},
		{name: "confirms deletions that it did not do", finds: []Kind{Back}, fault: func(s *faulty) {
			s.remove = func(honest, string) error { return nil }
		}},
		{name: "returns the value of another key", finds: []Kind{Wrong}, fault: func(s *faulty) {
			s.read = func(honest, string) (string, bool) { return value("other", 1), true }
		}},
		{name: "returns a broken value", finds: []Kind{Wrong}, fault: func(s *faulty) {
			s.read = func(h honest, key string) (string, bool) { return h[key] + ".", true }
		}},
		{name: "returns an invented value", finds: []Kind{Wrong}, fault: func(s *faulty) {
			s.read = func(_ honest, key string) (string, bool) { return value(key, 1<<40), true }
		}},
		{name: "does not answer, but did it", fault: func(s *faulty) {
			s.write = func(h honest, key, value string) error { h[key] = value; return errNoAnswer }
			s.remove = func(h honest, key string) error { delete(h, key); return errNoAnswer }
		}},
		{name: "does not answer and did not do it", fault: func(s *faulty) {
			s.write = func(honest, string, string) error { return errNoAnswer }
			s.remove = func(honest, string) error { return errNoAnswer }
		}},
		{name: "does not answer and does it later", fault: func(s *faulty) {
			s.write = func(h honest, key, value string) error { s.later(func() { h[key] = value }); return errNoAnswer }
			s.remove = func(h honest, key string) error { s.later(func() { delete(h, key) }); return errNoAnswer }
		}},
		{name: "reverts what it did without an answer", finds: []Kind{Stale}, fault: func(s *faulty) {
			s.write = func(h honest, key, value string) error {
				if before, there := h[key]; there {
					s.later(func() { h[key] = before })
				}
				h[key] = value
				return errNoAnswer
			}
		}},
	} {
		t.Run(store.name, func(t *testing.T) {
			s := &faulty{honest: honest{}, random: rand.New(rand.NewPCG(1, 1))}
			if store.fault != nil {
				store.fault(s)
			}
			w := newWorker("w", 20, rand.New(rand.NewPCG(2, 2)), s)
			for range 20_000 {
				w.step()
			}
			w.sweep()
			found := map[Kind]int{}
			for _, f := range w.report.Findings {
				found[f.Kind]++
			}
			kinds := slices.Sorted(maps.Keys(found))
			if !slices.Equal(kinds, store.finds) || store.loses != (w.report.Lost > 0) {
				t.Errorf("found %v, want %v, items lost: %t", kinds, store.finds, store.loses)
			}
			if w.report.Reads == 0 || w.report.Writes == 0 || w.report.Deletes == 0 || w.report.Err != nil {
				t.Error("too few operations")
			}
			t.Logf("%.400s", w.report)
		})
	}
}

func TestWriteWithoutAnswerAllowsBothValuesUntilOneIsSeen(t *testing.T) {
	for _, sequence := range []struct {
		name  string
		start state
		saw   []int
		want  []Kind
	}{
		{"not done, then done, then reverted", state{newest: 2, now: 1, maybe: 2, open: true}, []int{1, 1, 2, 2, 1}, []Kind{fine, fine, fine, fine, Stale}},
		{"late deletion", state{newest: 1, now: 1, maybe: absent, open: true}, []int{1, absent, 1}, []Kind{fine, fine, Back}},
		{"lost, then written late", state{newest: 2, now: 1, maybe: 2, open: true}, []int{absent, 2, 1}, []Kind{Lost, fine, Stale}},
		{"deleted, and back", state{newest: 3, now: absent}, []int{absent, 3}, []Kind{fine, Back}},
		{"invented value", state{newest: 3, now: 3}, []int{4}, []Kind{Wrong}},
	} {
		s := sequence.start
		for i, version := range sequence.saw {
			if kind := s.saw(version); kind != sequence.want[i] {
				t.Errorf("%s: read %d of version %d is %q, want %q", sequence.name, i+1, version, kind, sequence.want[i])
			}
		}
	}
}

func TestWriteThatReachedNoServerIsUndone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Read(make([]byte, 1))
			_ = connection.Close()
		}
	}()
	c := dial([]string{address})
	if came := outcomeOf(c.set("a", "1")); came != unknown {
		t.Errorf("a write to a server that closes is %d, want %d", came, unknown)
	}
	_ = listener.Close()
	_ = c.client.Close()
	if came := outcomeOf(c.set("a", "1")); came != undone {
		t.Errorf("a write to a closed port is %d, want %d", came, undone)
	}
}

// An item may live longer by what the clock of a restarted memcached is behind, and not shorter.
func TestExpiryFollowsTheClocksOfTheServers(t *testing.T) {
	now := time.Now()
	servers := &clocks{zero: map[string]time.Time{}, behind: map[string]time.Duration{}}
	for _, reading := range []struct {
		address string
		late    time.Duration
	}{{"old", time.Second}, {"old", 0}, {"old", 20 * time.Second}, {"new", time.Hour}, {"old", 19 * time.Second}} {
		servers.read(reading.address, now.Add(reading.late))
	}
	want := stored{there: true, expires: now.Add(100 * time.Second)}
	for ttl, kind := range map[int64]Kind{95: Expiry, 97: fine, 100: fine, 123: fine, 125: Expiry} {
		found := stored{there: true, ttl: ttl, behind: servers.total()}
		if got := want.expected(found, now); got != kind {
			t.Errorf("a time to live of %d s with clocks that are behind by %s: %q, want %q", ttl, found.behind, got, kind)
		}
	}
}

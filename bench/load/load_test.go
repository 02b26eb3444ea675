package load

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// server is a shard that answers after a millisecond.
type server struct {
	lock  sync.Mutex
	items map[string]string
	// down refuses connections and requests, silent never answers.
	down, silent bool
}

// pass lets the fake time of a bubble pass.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // it doesn't wait

var errDown = errors.New("connection refused")

// answer calls do unless the server is down.
func (s *server) answer(ctx context.Context, do func()) error {
	s.lock.Lock()
	silent := s.silent
	s.lock.Unlock()
	if silent {
		<-ctx.Done()
		return ctx.Err()
	}
	pass(time.Millisecond)
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.down {
		return errDown
	}
	do()
	return nil
}

func (s *server) set(change func()) {
	s.lock.Lock()
	defer s.lock.Unlock()
	change()
}

func (s *server) Get(ctx context.Context, key, _ string) (head protocol.Head, item []byte, err error) {
	head.Code = protocol.MetaMiss
	err = s.answer(ctx, func() {
		if v, ok := s.items[key]; ok {
			head.Code, item = protocol.MetaValue, []byte(v)
		}
	})
	return head, item, err
}

func (s *server) Set(ctx context.Context, key string, value []byte, _ int64) error {
	return s.answer(ctx, func() { s.items[key] = string(value) })
}

func (s *server) Close() error { return nil }

const rate = 2000

// withLoad calls use with a filled load on two servers, in fake time.
func withLoad(t *testing.T, use func(l *Load, servers []*server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		servers := []*server{{items: map[string]string{}}, {items: map[string]string{}}}
		l, err := New(Config{Addresses: []string{"0", "1"}, Keys: rate, Rate: rate, Seed: 1, dial: func(ctx context.Context, address string) (conn, error) {
			s := servers[strings.Index("01", address)]
			return s, s.answer(ctx, func() {})
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
		use(l, servers)
	})
}

// shard returns the sum of one shard.
func (r Report) shard(ordinal int) Counts {
	return Report{Began: r.Began, Every: r.Every, Shards: r.Shards[ordinal : ordinal+1]}.Sum(Span{r.Began, r.Began.Add(time.Hour)})
}

func TestEachOperationIsCountedOnce(t *testing.T) {
	withLoad(t, func(l *Load, servers []*server) {
		if n := len(servers[0].items) + len(servers[1].items); n != rate {
			t.Fatalf("%d of %d keys are stored after the filling", n, rate)
		}
		l.Start()
		pass(2*time.Second - Every)
		servers[1].set(func() { servers[1].items = map[string]string{} })
		pass(Every)
		r := l.Stop()
		full, lost := r.shard(0), r.shard(1)
		if n := full.Gets + full.Sets + lost.Gets + lost.Sets; n < 2*rate || n > 2*rate+2 { // one is due at the end, and one in the queue
			t.Errorf("%d operations in 2 s, want %d a second", n, rate)
		}
		if full.Hits != full.Gets || full.Misses+full.Errors+full.Wrong+full.Fills != 0 {
			t.Errorf("with all its items, a shard has %+v", full)
		}
		if lost.Misses == 0 || lost.Fills < lost.Misses-1 || lost.Hits+lost.Misses != lost.Gets || lost.Errors != 0 {
			t.Errorf("a shard that lost its items has %+v, want a fill for each miss", lost)
		}
		if p99 := r.Latency(Span{r.Began, r.Began.Add(time.Hour)}, 0.99); p99 < time.Millisecond || p99 > 5*time.Millisecond {
			t.Errorf("p99 %s of a server that takes 1 ms", p99)
		}
	})
}

func TestValueOfAnotherKeyIsWrong(t *testing.T) {
	withLoad(t, func(l *Load, servers []*server) {
		for key := range servers[0].items {
			servers[0].items[key] = "another"
		}
		l.Start()
		pass(Every)
		if c := l.Stop().shard(0); c.Wrong == 0 || c.Wrong+c.Hits != c.Gets {
			t.Errorf("%+v", c)
		}
	})
}

func TestOlderValuesAreStale(t *testing.T) {
	withLoad(t, func(l *Load, servers []*server) {
		l.Start()
		pass(time.Second)
		kept := maps.Clone(servers[0].items)
		pass(2 * Old)
		if c := l.Report().Sum(Span{l.began, time.Now()}); c.Stale != 0 || c.Hits != c.Gets || c.Hits == 0 {
			t.Errorf("without a change: %+v", c)
		}
		servers[0].set(func() { servers[0].items = kept })
		pass(Every)
		r := l.Stop()
		if c := r.shard(0); c.Stale < 10 || c.Stale == c.Hits || c.Old < 10 || c.Old == c.Stale || c.Oldest < Old || c.Oldest > 3*Old {
			t.Errorf("of a shard with the former values: %d stale hits of %d, %d old ones, the oldest %s", c.Stale, c.Hits, c.Old, c.Oldest)
		}
		if c := r.shard(1); c.Stale != 0 {
			t.Errorf("%d stale hits of the other shard", c.Stale)
		}
		servers[1].set(func() { servers[1].items = map[string]string{} })
		if n, err := l.Stale(t.Context()); err != nil || n < 10 || n > rate/2 {
			t.Errorf("%d of %d keys are stale, %v", n, rate, err)
		}
	})
}

func TestVersionsOfConcurrentWritesAreNotOlderThanEachOther(t *testing.T) {
	var v versions
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	is := func(second int, want ...int) {
		t.Helper()
		for version, since := range want {
			if got := v.replaced(uint64(version), at(second)); got != time.Duration(since)*time.Second { //nolint:gosec // a small number
				t.Errorf("at %d s, version %d has been replaced for %s, want %d s", second, version, got, since)
			}
		}
	}
	one, ofOne := v.begin(set)
	v.end(one, ofOne, true, at(0))
	two, ofTwo := v.begin(set)
	filled, ofFill := v.begin(fill) // after a miss, what the database has
	three, ofThree := v.begin(set)
	v.end(three, ofThree, true, at(1))
	is(2, 2, 1, 0, 0)
	v.end(two, ofTwo, false, at(3))
	v.end(filled, ofFill, true, at(4))
	is(5, 5, 4, 0, 0)
	four, ofFour := v.begin(set)
	is(6, 6, 5, 0, 0)
	v.end(four, ofFour, true, at(7))
	is(8, 8, 7, 1, 1, 0)
	five, ofFive := v.begin(set)
	v.end(five, ofFive, false, at(9)) // without an answer
	is(10, 10, 9, 3, 3, 0)
	if one != 1 || two != 2 || filled != 2 || three != 3 || four != 4 {
		t.Errorf("the versions are %d", []uint64{one, two, filled, three, four})
	}
}

func TestAddedShardGetsItsKeys(t *testing.T) {
	withLoad(t, func(l *Load, _ []*server) {
		var shard atomic.Int64
		l.Config.Shard = func(string) int { return int(shard.Load()) }
		l.Start()
		pass(Every)
		l.Add("1")
		pass(Every)
		shard.Store(2)
		pass(2 * Every)
		r := l.Stop()
		if c, added := r.shard(1), r.Shards[2]; c.Gets != 0 || len(added) != len(r.Shards[0]) || added[1].Gets != 0 || added[3].Gets < rate/4 {
			t.Errorf("a shard of no key has %+v, and the added one %+v", c, added)
		}
	})
}

func TestUnavailableShardDoesNotAffectOthers(t *testing.T) {
	for name, set := range map[string]func(s *server, out bool){
		"Refuses": func(s *server, out bool) { s.down = out },
		"Silent":  func(s *server, out bool) { s.silent = out },
	} {
		t.Run(name, func(t *testing.T) {
			withLoad(t, func(l *Load, servers []*server) {
				l.Start()
				pass(Every)
				servers[0].set(func() { set(servers[0], true) })
				pass(2 * time.Second)
				servers[0].set(func() { set(servers[0], false) })
				pass(2 * Every)
				r := l.Stop()
				out, other := r.shard(0), r.shard(1)
				if least, all := rate/2, 3*rate/2; out.Errors < least || out.Errors > all {
					t.Errorf("a shard with %d operations a second was unavailable for 2 s and has %d errors", rate/2, out.Errors)
				}
				if other.Errors != 0 || other.Hits != other.Gets {
					t.Errorf("the other shard has %+v", other)
				}
				silences := r.Silences(Span{r.Began, r.Began.Add(time.Hour)})
				if silences[0] < 2*time.Second || silences[0] > 2*time.Second+Patience || silences[1] > Every {
					t.Errorf("the shards did not answer for %v", silences)
				}
			})
		})
	}
}

func TestStopWaitsForAtMostPatience(t *testing.T) {
	withLoad(t, func(l *Load, servers []*server) {
		for _, s := range servers {
			s.silent = true
		}
		l.Start()
		pass(3 * time.Second)
		began := time.Now()
		r := l.Stop()
		if took := time.Since(began); took > 2*Patience { //nolint:forbidigo // the fake time of a bubble
			t.Errorf("it takes %s", took)
		}
		if a, b := r.shard(0), r.shard(1); a.Errors+b.Errors < 3*rate || a.Hits+b.Hits != 0 {
			t.Errorf("%d errors of %d operations", a.Errors+b.Errors, 3*rate)
		}
	})
}

func TestSaturateCountsAnswersAndReportsLostItems(t *testing.T) {
	withLoad(t, func(l *Load, servers []*server) {
		// Each of the workers does an operation a millisecond.
		perSecond, p99, err := l.Saturate(t.Context(), time.Second)
		if err != nil || perSecond < 900*workers || perSecond > 1000*workers || p99 < time.Millisecond || p99 > 3*time.Millisecond {
			t.Errorf("%.0f operations per second, p99 %s, %v", perSecond, p99, err)
		}
		servers[1].set(func() { servers[1].items = map[string]string{} })
		if _, _, err := l.Saturate(t.Context(), time.Second); err == nil {
			t.Error("no error with lost items")
		}
	})
}

func TestNewRejectsIncompleteConfig(t *testing.T) {
	if slices.ContainsFunc([]Config{{Keys: 1, Rate: 1}, {Addresses: []string{"x:1"}, Rate: 1}, {Addresses: []string{"x:1"}, Keys: 1}}, func(c Config) bool {
		_, err := New(c)
		return err == nil
	}) {
		t.Error("no error")
	}
}

package load

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/memcacheclient"
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

func (s *server) Get(ctx context.Context, key, _ string) (item *memcacheclient.Item, err error) {
	err = s.answer(ctx, func() {
		if v, ok := s.items[key]; ok {
			item = &memcacheclient.Item{Value: []byte(v)}
		}
	})
	return item, err
}

func (s *server) Set(ctx context.Context, key string, value []byte, _ uint64, _ int64) error {
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

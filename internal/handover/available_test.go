package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// available is a handover in which both sides serve. ready is what clients do then.
func available(t *testing.T, origin *fakeOrigin, cache *fakeCache, ready func()) Result {
	t.Helper()
	source := start(t, cache.network, offerOf(origin, len(origin.items)))
	target := targetOf(t, cache)
	called := 0
	target.Ready = func() {
		called++
		if outcome := origin.outcome(); outcome != "" {
			t.Errorf("the source did %s before the target serves", outcome)
		}
		if ready != nil {
			ready()
		}
	}
	result, err := Receive(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	source.wait()
	if outcome := origin.outcome(); called != 1 || outcome != "stop, complete" || result.Gap != 0 || result.Both < followFor || result.Strict != "" {
		t.Errorf("the target was ready %d times, the source did %s: %+v", called, outcome, result)
	}
	return result
}

// A connection that reaches the source later is reset at the source's end.
func TestBothServeUntilNewConnectionsReachTheTarget(t *testing.T) {
	const never, end = -1, time.Minute
	for name, c := range map[string]struct{ routed, grace, both time.Duration }{
		"at once":                             {0, 0, followFor},
		"after a node was busy":               {20 * time.Second, 0, 20 * time.Second},
		"never: the source has to stop":       {never, 0, end},
		"never: its grace period is shorter":  {never, 10 * time.Second, 20 * time.Second},
		"its grace period is nearly over now": {never, time.Second, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(10), newCache(t)
				origin.onRouted = func(ctx context.Context) {
					if c.routed == never {
						<-ctx.Done()
						return
					}
					_ = peerlink.Sleep(ctx, c.routed)
				}
				offer := offerOf(origin, 10)
				source := start(t, cache.network, func(ctx context.Context) (Offer, error) {
					offer, err := offer(ctx)
					offer.Deadline = time.Now().Add(end)
					return offer, err
				})
				target := targetOf(t, cache)
				target.Ready = func() {}
				began := time.Now()
				target.Announced = func() (bool, time.Duration) { // the first hello is too early
					if time.Since(began) < 10*time.Second {
						return false, 0
					}
					return false, c.grace
				}
				result, err := Receive(t.Context(), target)
				if err != nil {
					t.Fatal(err)
				}
				source.wait()
				if result.Both < c.both || result.Both > c.both+time.Second {
					t.Errorf("both served for %s, want %s", result.Both, c.both)
				}
			})
		})
	}
}

func wantOnly(t *testing.T, cache *fakeCache, origin *fakeOrigin, without ...string) {
	t.Helper()
	want := origin.snapshot()
	for _, key := range without {
		delete(want, key)
	}
	mustEqual(t, cache.snapshot(), want)
}

func TestChangesWhileBothServeAreDeletedAndNeverAdded(t *testing.T) {
	// At each of these moments a client of the source changes something.
	for name, moment := range map[string]func(*fakeOrigin, func()) (ready func()){
		"when the target is ready": func(_ *fakeOrigin, change func()) func() { return change },
		"during a pass": func(o *fakeOrigin, change func()) func() {
			o.during = func(scan int) {
				if scan == 5 {
					change()
				}
			}
			return nil
		},
		"before the stop": func(o *fakeOrigin, change func()) func() {
			o.onStop = func(context.Context) error {
				change()
				return nil
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(1000), newCache(t)
				ready := moment(origin, func() {
					origin.set("key-1", entry{value: "changed"})
					origin.set("key-2", origin.snapshot()["key-2"]) // another client may have changed it in the target
					origin.set("key-3", entry{value: "value-3", flags: 3, expires: time.Now().Unix() + 100})
					origin.remove("key-4")
					origin.set("new", entry{value: "new"})
					// Clients of the target have older values of these.
					cache.set("key-5", entry{value: "older"})
					origin.set("key-5", entry{value: "newer"})
					cache.set("also new", entry{value: "older"})
					origin.set("also new", entry{value: "newer"})
				})
				result := available(t, origin, cache, ready)
				wantOnly(t, cache, origin, "key-1", "key-2", "key-3", "key-5", "new", "also new")
				if result.Items != int64(len(origin.items)-6) || result.ItemsBefore != int64(len(origin.items)) {
					t.Errorf("%+v", result)
				}
			})
		})
	}
}

func TestTargetKeepsWhatOnlyItsClientsHaveChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(1000), newCache(t)
		available(t, origin, cache, func() { cache.set("key-1", entry{value: "changed"}) })
		if got := cache.snapshot()["key-1"].value; got != "changed" {
			t.Errorf("the client's value is %q", got)
		}
	})
}

// A deletion in the source of a key that only the target has leaves no trace. After the source has
// stopped, "md I", "incr" and others can give an older value a new CAS.
func TestWhatOnlyTheTargetHasIsDeletedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(1000), newCache(t)
		origin.onStop = func(context.Context) error {
			cache.set("before the stop", entry{})
			origin.remove("key-1")
			return nil
		}
		var once bool
		cache.Before = func(request string) string {
			if strings.HasPrefix(request, "lru_crawler") && !once {
				once = true
				cache.set("after the stop", entry{value: "new"})
				cache.set("in the overlap", entry{value: "own"})
			}
			return ""
		}
		available(t, origin, cache, func() {
			cache.set("in the overlap", entry{value: "own"})
			cache.SetCAS("with a CAS of its client", fake.Item{Value: "own"}, 7)
			for i := range 3 * maxRemoved / 8 { // more than one question
				cache.set(fmt.Sprintf("own-%d", i), entry{value: "own"})
			}
			origin.remove("key-2")
			cache.set("key-2", entry{value: "own"})
		})
		wantOnly(t, cache, origin)
	})
}

// Clients can use all connections of the target as soon as it serves. If memcached has closed the idle one before, the end waits.
func TestEndNeedsNoConnection(t *testing.T) {
	for name, closed := range map[string]bool{"kept": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(1000), newCache(t)
				start(t, cache.network, offerOf(origin, 1000))
				target := targetOf(t, cache)
				var kept net.Conn
				var full atomic.Bool
				target.Ready = func() {
					full.Store(true)
					cache.set("in the overlap", entry{value: "own"})
					if closed {
						_ = kept.Close()
						time.AfterFunc(2*followFor, func() { full.Store(false) })
					}
				}
				target.Memcached.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					if !full.Load() {
						conn, err := cache.dial(ctx, network, address)
						if kept == nil {
							kept = conn
						}
						return conn, err
					}
					conn, server := fake.Pipe()
					go func() {
						defer server.Close()
						_, _ = io.WriteString(server, "ERROR Too many open connections\r\n")
						_, _ = server.Read(make([]byte, 1<<10))
					}()
					return conn, nil
				}
				if result, err := Receive(t.Context(), target); err != nil || result.Items != 1000 {
					t.Errorf("%d items: %v", result.Items, err)
				}
				wantOnly(t, cache, origin)
			})
		})
	}
}

// A scan of the target's memory misses an item that a client stores at the same time, and those of a page that it can't read.
func TestLastNamesAreThoseOfADump(t *testing.T) {
	for name, atStop := range map[string]bool{"removed before the stop": false, "removed when the source stops": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(1000), newCache(t)
				cache.hidden = "key-1"
				remove := func() { origin.remove("key-1") }
				if !atStop {
					available(t, origin, cache, remove)
				} else {
					origin.onStop = func(context.Context) error {
						remove()
						return nil
					}
					available(t, origin, cache, nil)
				}
				wantOnly(t, cache, origin)
			})
		})
	}
}

// Clients of the binary protocol can store keys that the text protocol can't delete, which must not cost the pods their items.
func TestKeyThatNoRequestCanExpress(t *testing.T) {
	key := strings.Repeat("k ", 100)
	for name, c := range map[string]struct {
		source, target bool
		left           int
	}{
		"stored in the source": {true, false, 1000}, "stored in the target": {false, true, 0}, "stored in both": {true, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(1000), newCache(t)
				available(t, origin, cache, func() {
					if c.source {
						origin.set(key, entry{value: "new"})
					}
					if c.target {
						cache.set(key, entry{value: "own"})
					}
				})
				if items := cache.snapshot(); len(items) != c.left || items[key].value != "" {
					t.Errorf("the target has %d items", len(items))
				}
			})
		})
	}
}

// The last pass with values can read an item while memcached changes it.
func TestTargetServesAfterAPassWithoutValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(1000), newCache(t)
		origin.during = func(scan int) {
			if scan == 3 {
				origin.set("key-1", entry{value: "what it really is"})
			}
		}
		available(t, origin, cache, func() {
			if got, there := cache.snapshot()["key-1"]; there {
				t.Errorf("the target serves %q", got.value)
			}
			if got := fmt.Sprint(cache.moves()); got != "[0]" {
				t.Errorf("the page mover: %s, want it to be off", got)
			}
		})
		wantOnly(t, cache, origin, "key-1")
		if got := fmt.Sprint(cache.moves()); got != "[0 1]" {
			t.Errorf("the page mover: %s, want it to be on again", got)
		}
	})
}

func TestFlushOfEitherSideWhileBothServe(t *testing.T) {
	empty := map[string]entry{}
	t.Run("the source", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			origin, cache := newOrigin(1000), newCache(t)
			available(t, origin, cache, origin.flush)
			mustEqual(t, cache.snapshot(), empty)
		})
	})
	t.Run("the source, just before it stops", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			origin, cache := newOrigin(1000), newCache(t)
			origin.onStop = func(context.Context) error {
				origin.flush()
				return nil
			}
			available(t, origin, cache, nil)
			mustEqual(t, cache.snapshot(), empty)
		})
	})
	t.Run("the source, before the target serves", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			origin, cache := newOrigin(1000), newCache(t)
			origin.during = func(scan int) {
				if scan == 1 {
					origin.flush()
				}
			}
			available(t, origin, cache, nil)
			wantOnly(t, cache, origin)
		})
	})
	t.Run("the target", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			origin, cache := newOrigin(1000), newCache(t)
			available(t, origin, cache, func() {
				cache.Clear()
				cache.set("key-1", entry{value: "changed"})
			})
			mustEqual(t, cache.snapshot(), map[string]entry{"key-1": {value: "changed"}})
		})
	})
}

func TestHandoverIsStrictIfOneSideCanNotServeBefore(t *testing.T) {
	for name, prepare := range map[string]func(*fakeOrigin, *fakeCache, *Offer){
		"the source has no CAS": func(_ *fakeOrigin, _ *fakeCache, offer *Offer) { offer.CAS = false },
		"the target has no CAS": func(_ *fakeOrigin, c *fakeCache, _ *Offer) { c.NoCAS = true },
		"the target lists no keys": func(_ *fakeOrigin, c *fakeCache, _ *Offer) {
			c.Before = func(request string) string {
				return map[string]string{"stats settings": "STAT cas_enabled yes\r\nSTAT dump_enabled no\r\nEND\r\n"}[strings.TrimSpace(request)]
			}
		},
		"the source has no room":          func(o *fakeOrigin, _ *fakeCache, _ *Offer) { o.noRoom = true },
		"the end comes too early":         func(_ *fakeOrigin, _ *fakeCache, offer *Offer) { offer.Deadline = time.Now().Add(followFor / 2) },
		"the end comes in the first pass": func(_ *fakeOrigin, _ *fakeCache, offer *Offer) { offer.Deadline = time.Now() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(1000), newCache(t)
				start(t, cache.network, func(ctx context.Context) (Offer, error) {
					offer, err := offerOf(origin, 1000)(ctx)
					prepare(origin, cache, &offer)
					return offer, err
				})
				prepare(origin, cache, &Offer{})
				target := targetOf(t, cache)
				target.Ready = func() { t.Error("the target serves before the end") }
				result, err := Receive(t.Context(), target)
				if err != nil || result.Strict == "" || result.Both != 0 {
					t.Errorf("%+v, %v", result, err)
				}
				mustEqual(t, cache.snapshot(), origin.snapshot())
			})
		})
	}
}

// A client can disable the LRU crawler at any time. The agent enables it again, and the last dump waits for that.
func TestLastNamesWaitForTheCrawler(t *testing.T) {
	for name, c := range map[string]struct {
		disabled time.Duration
		want     error
	}{"enabled again": {15 * time.Second, nil}, "disabled for good": {time.Hour, ErrDiverged}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(1000), newCache(t)
				var enabled time.Time
				cache.Before = func(request string) string {
					if !strings.HasPrefix(request, "lru_crawler") {
						return ""
					}
					if enabled.IsZero() {
						enabled = time.Now().Add(c.disabled)
					}
					if time.Now().Before(enabled) {
						return "CLIENT_ERROR lru crawler disabled\r\n"
					}
					return ""
				}
				source := start(t, cache.network, offerOf(origin, 1000))
				target := targetOf(t, cache)
				target.Ready = func() {}
				result, err := Receive(t.Context(), target)
				source.wait()
				if !errors.Is(err, c.want) || (err == nil) != (result.Both > c.disabled) {
					t.Errorf("both served for %s: %v", result.Both, err)
				}
			})
		})
	}
}

// availableSteps are what a target does that serves before the end, in this order.
var availableSteps = []string{"hello", "offer", "pass", "done", "follow", "followed", "follow", "followed", "finish", "end", "ask", "answer", "acknowledge"}

// A target that is lost may have served: the source must not serve again, nor hand its items to another one.
func TestSourceAbandonsItsItemsWhenTheTargetMayHaveServed(t *testing.T) {
	failures := map[string]func(*script){
		"dies":             func(s *script) { s.link.Abort() },
		"is silent":        func(s *script) { s.stop() },
		"only sends beats": func(*script) {},
		"wants values":     func(s *script) { _ = s.link.Send(kindPass, nil) },
	}
	for name, fail := range failures {
		for steps := 5; steps < len(availableSteps); steps++ {
			t.Run(fmt.Sprintf("%s before %d %s", name, steps, availableSteps[steps]), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					origin, cache := newOrigin(500), newCache(t)
					source := start(t, cache.network, offerOf(origin, 500))
					first := newScript(t, cache.network)
					first.available = true
					first.follow("first", steps)
					stopped := slices.Index(availableSteps, "finish") < steps
					synctest.Wait()
					if _, err := Receive(t.Context(), targetOf(t, cache)); !errors.Is(err, ErrBusy) {
						t.Errorf("another target: %v", err)
					}
					fail(first)
					source.wait()
					want := "abandon"
					if stopped {
						want = "stop, abandon"
					}
					if outcome := origin.outcome(); outcome != want {
						t.Errorf("the source did %s, want %s", outcome, want)
					}
				})
			})
		}
	}
}

// A target that did not ask for it, or without a copy, can't follow.
func TestSourceFollowsOnlyAfterACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		start(t, network, offerOf(newOrigin(10), 10))
		values := newScript(t, network)
		values.available = true
		values.follow("target", 6)
		if err := values.step("pass", ""); err != nil {
			t.Fatal(err)
		}
		if err := values.step("done", ""); err == nil {
			t.Error("the source sends values while both serve")
		}
	})
	for name, available := range map[string]bool{"without a copy": true, "in mode Strict": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, network := newOrigin(10), newNetwork(t)
				start(t, network, offerOf(origin, 10))
				s := newScript(t, network)
				s.available = available
				for _, step := range []string{"hello", "offer", "follow"} {
					if err := s.step(step, "target"); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.step("followed", ""); err == nil {
					t.Error("the source follows")
				}
				if outcome := origin.outcome(); outcome != "" {
					t.Errorf("the source did %s", outcome)
				}
			})
		})
	}
}

// A target whose source is lost while both serve can have older values, whatever step was reached.
func TestTargetReportsThatItsSourceWasLostWhileBothServed(t *testing.T) {
	steps := []string{"accept", "handshake", "hello", "offer", "pass", "items", "done", "follow", "done", "finish", "done", "acknowledge", "confirm"}
	failures := map[string]func(*script){
		"dies":             func(s *script) { s.link.Abort() },
		"only sends beats": func(*script) {},
		"is silent":        func(s *script) { s.stop() },
		"fails":            func(s *script) { _ = s.link.Fail(errTest) },
		"sends a value":    func(s *script) { _ = s.link.SendContent(kindConfirm, []byte("x")) },
	}
	for name, fail := range failures {
		for n := slices.Index(steps, "follow"); n < len(steps); n++ {
			t.Run(fmt.Sprintf("%s before %d %s", name, n, steps[n]), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cache := newCache(t)
					ready := false
					target := targetOf(t, cache)
					fakeSource(t, cache.network, steps[:n], fail)
					target.Ready = func() { ready = true }
					within(t, "the target", func() {
						if result, err := Receive(t.Context(), target); !errors.Is(err, ErrDiverged) {
							t.Errorf("%+v, %v", result, err)
						}
					})
					if want := n > slices.Index(steps, "follow")+1; ready != want {
						t.Errorf("the target serves: %t, want %t", ready, want)
					}
				})
			})
		}
	}
}

package handover

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// Whatever waits for whatever on the way of an item, it expires in the target when it would have in the source.
func TestItemExpiresOnTimeHoweverLongItsWayTakes(t *testing.T) {
	const stall = 6 * time.Second
	for name, prepare := range map[string]func(*testing.T, *fakeOrigin, *fakeCache, *Target){
		"nothing waits": func(*testing.T, *fakeOrigin, *fakeCache, *Target) {},
		"the scan is slow": func(t *testing.T, o *fakeOrigin, _ *fakeCache, _ *Target) {
			o.during = func(int) { _ = peerlink.Sleep(t.Context(), stall) }
		},
		"the target stops between two items": func(t *testing.T, _ *fakeOrigin, _ *fakeCache, target *Target) {
			target.Progress = func(Progress) { _ = peerlink.Sleep(t.Context(), stall) }
		},
		"the target's memcached stops before it stores": func(t *testing.T, _ *fakeOrigin, c *fakeCache, _ *Target) {
			c.Before = hangAt("ms", func() { _ = peerlink.Sleep(t.Context(), stall/200) })
		},
		"the target's memcached stores while its clock stands still": func(t *testing.T, _ *fakeOrigin, c *fakeCache, _ *Target) {
			c.Before = hangAt("slabs", func() {
				c.Freeze()
				_ = peerlink.Sleep(t.Context(), stall)
			})
		},
		"the clock of the target's memcached stands still when it is first read": frozenAtReading(1, stall),
		"the clock of the target's memcached stands still when it is read again": frozenAtReading(2, stall),
		"the answer of the target's memcached about its clock is late": func(t *testing.T, _ *fakeOrigin, c *fakeCache, target *Target) {
			slow := true
			target.Memcached.DialContext = stalled(c.network.DialContext, func() {
				if slow {
					_ = peerlink.Sleep(t.Context(), stall)
				}
				slow = false
			})
		},
		"the clock of the target's memcached is off since a restart": func(_ *testing.T, _ *fakeOrigin, c *fakeCache, _ *Target) {
			c.Started += 9
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(300), newCache(t)
				want := map[string]time.Time{}
				for i := range 3 {
					for _, ttl := range []int64{1800, 86400, 31 * 86400} {
						key, expires := fmt.Sprintf("expires-%d-%d", ttl, i), time.Now().Unix()+ttl
						origin.items[key] = entry{expires: expires}
						want[key] = time.Unix(expires, 0)
					}
				}
				origin.items["expires on the way"] = entry{expires: time.Now().Unix() + 1}
				start(t, cache.network, offerOf(origin, 300))
				target := targetOf(t, cache)
				prepare(t, origin, cache, &target)
				if _, err := Receive(t.Context(), target); err != nil {
					t.Fatal(err)
				}
				_ = peerlink.Sleep(t.Context(), stall)
				got := cache.Items()
				for key, at := range want {
					if expires := cache.Zero().Add(time.Duration(got[key].Expires-cache.Started) * time.Second); !expires.Equal(at) {
						t.Errorf("%s expires %s after it should", key, expires.Sub(at))
					}
				}
				for key, item := range got {
					if strings.HasPrefix(key, "key-") && item.Expires != 0 {
						t.Errorf("%s expires", key)
					}
				}
				if item, there := got["expires on the way"]; there && item.Expires > cache.Started+int64(time.Since(cache.Zero())/time.Second) { //nolint:forbidigo // the fake time of a bubble
					t.Errorf("an item is alive that has expired: %+v", item)
				}
			})
		})
	}
}

// frozenAtReading lets a clock stand still when it is read for the nth time.
func frozenAtReading(n int, stall time.Duration) func(*testing.T, *fakeOrigin, *fakeCache, *Target) {
	return func(t *testing.T, _ *fakeOrigin, c *fakeCache, _ *Target) {
		readings := 0
		c.Before = func(request string) string {
			if request == "stats" {
				readings++
			}
			if c.Thaw(); request == "stats" && readings == n {
				c.Freeze()
				_ = peerlink.Sleep(t.Context(), stall)
			}
			return ""
		}
	}
}

func TestClocksOfTheNodesMayDiffer(t *testing.T) {
	for _, differ := range []time.Duration{0, time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			cache := newCache(t)
			fakeSource(t, cache.network, sourceSteps[:3], func(s *script) {
				now := time.Now().Add(differ)
				_ = peerlink.Sleep(t.Context(), time.Second) // an answer that is slow is no sign that they differ
				_ = s.link.Send(kindOffer, offer{Version: protocolVersion, Pod: "source", Now: now.UnixMilli()})
				_ = s.sourceStep("finish")
				_, _ = s.link.sendItem(&memfile.Item{Key: []byte("k"), Size: 1, ExpiresAt: now.Add(time.Minute)}, newHasher())
				for _, step := range []string{"done", "acknowledge"} {
					_ = s.sourceStep(step)
				}
				_ = s.link.Send(kindConfirm, confirmation{})
			})
			want := time.Now().Add(time.Minute).Unix()
			if _, err := Receive(t.Context(), targetOf(t, cache)); err != nil {
				t.Fatal(err)
			}
			if got := cache.Items()["k"].Expires; got < want || got > want+1 || differ == 0 && got != want {
				t.Errorf("clocks that differ by %s: the item expires %d s after it should", differ, got-want)
			}
		})
	}
}

// stalled is a dialer whose connections wait before they pass on what they have read.
func stalled(dial protocol.DialContext, wait func()) protocol.DialContext {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &stalledConn{conn, wait}, err
	}
}

type stalledConn struct {
	net.Conn
	wait func()
}

func (c *stalledConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.wait()
	return n, err
}

// Without it, what the flush_all of a client would have deleted stays. It replaces an earlier one in memcached: those items are
// served again, of which the target has not learned which ones are deleted.
func TestFlushWithADelayFollowsInTheTarget(t *testing.T) {
	const strict, available, between = "Strict", "Available", "Available, while both serve"
	for _, mode := range []string{strict, available, between} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(100), newCache(t)
				cache.Started += 9 // its clock is off since a restart
				flush := func() {
					origin.mu.Lock()
					defer origin.mu.Unlock()
					origin.flushes, origin.flushesAt = 1, time.Now().Add(time.Hour).UnixMilli()
				}
				start(t, cache.network, offerOf(origin, 100))
				target := targetOf(t, cache)
				switch mode {
				case strict:
					flush()
				case available:
					flush()
					target.Ready = func() {
						if len(cache.Requests("flush_all")) != 1 {
							t.Error("the target serves before the flush_all, which undoes what its clients flush")
						}
					}
				case between:
					target.Ready = flush
				}
				if _, err := Receive(t.Context(), target); err != nil {
					t.Fatal(err)
				}
				mustEqual(t, cache.snapshot(), origin.snapshot())
				want := fmt.Sprintf("flush_all %d", origin.flushesAt/1000+9)
				if got := cache.Requests("flush_all"); len(got) != 1 || got[0] != want {
					t.Errorf("requests %q, want %s", got, want)
				}
			})
		})
	}
}

// An update can add -F, with which no flush_all is possible. What one has deleted is deleted by name.
func TestFlushThatTheTargetRejects(t *testing.T) {
	const strict, available, between = "Strict", "Available", "Available, without a delay while both serve"
	for _, mode := range []string{strict, available, between} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(100), newCache(t)
				if mode != between {
					origin.flushes, origin.flushesAt = 1, time.Now().Add(time.Hour).UnixMilli()
				}
				cache.Before = func(request string) string {
					switch {
					case strings.HasPrefix(request, "flush_all"):
						return "CLIENT_ERROR flush_all not allowed\r\n"
					case strings.TrimSpace(request) == "stats settings":
						return "STAT cas_enabled yes\r\nSTAT flush_enabled no\r\nEND\r\n"
					}
					return ""
				}
				start(t, cache.network, offerOf(origin, 100))
				target := targetOf(t, cache)
				switch mode {
				case available:
					target.Ready = func() {}
				case between:
					target.Ready = func() {
						cache.set("stored before", entry{value: "by a client of the target"})
						origin.mu.Lock()
						defer origin.mu.Unlock()
						origin.flushes, origin.items = 1, map[string]entry{"stored since": {value: "new"}}
					}
				}
				if _, err := Receive(t.Context(), target); err != nil {
					t.Fatal(err)
				}
				want := origin.snapshot()
				if mode == between {
					want = map[string]entry{} // the new item is a miss, as both served
				}
				mustEqual(t, cache.snapshot(), want)
			})
		})
	}
}

// Without a CAS (-C), items of the target are newer than such a time.
func TestFlushThatIsDueBeforeTheTargetHasEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		origin.flushesAt = time.Now().UnixMilli()
		start(t, cache.network, offerOf(origin, 100))
		if _, err := Receive(t.Context(), targetOf(t, cache)); err != nil {
			t.Fatal(err)
		}
		if got := cache.Requests("flush_all"); len(got) != 1 || got[0] != "flush_all 1" {
			t.Errorf("requests %q", got)
		}
	})
}

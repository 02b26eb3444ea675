package handover

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

func TestWithoutRoomEverythingIsSentInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		origin.noRoom = true
		source := start(t, cache.network, offerOf(origin, 100))
		result, err := Receive(t.Context(), targetOf(t, cache))
		if err != nil || result.Passes != 0 || result.Items != 100 {
			t.Errorf("%+v, %v", result, err)
		}
		source.wait()
		if events := strings.Join(origin.history(), ", "); events != "stop, scan, cold first, complete" {
			t.Error(events)
		}
		mustEqual(t, cache.snapshot(), origin.snapshot())
		if origin.reserved != 0 {
			t.Errorf("%d bytes remain reserved", origin.reserved)
		}
	})
}

func TestPassesStopAfterThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		origin.during = func(scan int) {
			if scan < 4 {
				origin.set("key-1", entry{value: fmt.Sprint(scan)})
			}
		}
		start(t, cache.network, offerOf(origin, 100))
		result, err := Receive(t.Context(), targetOf(t, cache))
		if err != nil || result.Passes != maxPasses {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// At the deadline the passes stop wherever they are, and the end sends what is missing, and nothing else: it takes time
// in which no memcached serves.
func TestDeadlineStopsLivePasses(t *testing.T) {
	for interrupted := 1; interrupted < maxPasses; interrupted++ {
		t.Run(fmt.Sprintf("pass %d", interrupted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const items = 5000
				origin, cache := newOrigin(items), newCache(t)
				changes := 0
				origin.during = func(scan int) {
					if scan != interrupted || scan == 1 {
						return
					}
					for i := 0; i < items; i += 10 {
						origin.set(fmt.Sprintf("key-%d", i), entry{value: "changed"})
						changes++
					}
				}
				origin.visiting = func(scan int, item int64) {
					if scan == interrupted && item == items/5 {
						_ = peerlink.Sleep(t.Context(), time.Minute)
					}
				}
				start(t, cache.network, func(ctx context.Context) (Offer, error) {
					offer, err := offerOf(origin, items)(ctx)
					offer.Deadline = time.Now().Add(time.Minute)
					return offer, err
				})
				result, err := Receive(t.Context(), targetOf(t, cache))
				if err != nil || result.Items != items || result.Passes != interrupted {
					t.Errorf("%+v, %v", result, err)
				}
				if n := cache.writes(); n != items+changes {
					t.Errorf("%d items are sent, want %d, and %d that changed", n, items, changes)
				}
				mustEqual(t, cache.snapshot(), origin.snapshot())
			})
		})
	}
}

// A large item can take seconds on a slow network.
func TestDeadlineStopsLivePassesBeforeEachItem(t *testing.T) {
	t.Parallel()
	p := pass{session: &session{link: newLink(nil), hasher: newHasher()}, ctx: t.Context(), live: true}
	p.session.ends.Store(&ends{deadline: time.Now().Add(-time.Millisecond)})
	if err := p.visit(&memfile.Item{Key: []byte("k")}); !errors.Is(err, errDeadline) || p.done.Sent != 0 {
		t.Errorf("%v, %d items are sent", err, p.done.Sent)
	}
}

// hookedConn calls onWrite after each write.
type hookedConn struct {
	net.Conn
	onWrite func()
}

func (c hookedConn) Write(p []byte) (int, error) {
	defer c.onWrite()
	return c.Conn.Write(p)
}

// The value of a large item is read twice, since it can be larger than the memory of an agent: memcached can have changed it between.
func TestItemThatChangesWhileItIsSentIsSentAgain(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	compressed, err := os.ReadFile("../memcached/memfile/testdata/memory.gz")
	must(err)
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	must(err)
	data, err := io.ReadAll(r)
	must(err)
	memory, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	must(err)
	defer memory.Close()
	_, err = memory.Write(data)
	must(err)
	layout, err := memfile.LayoutOf([]string{"-f", "16", "-n", "1000", "-m", "8", "-I", "4m"}, "1.6.45")
	must(err)
	file, err := memfile.Open(memory.Name(), layout)
	must(err)
	defer file.Close()
	change := func(value string) {
		_, err := memory.WriteAt([]byte(value), int64(bytes.LastIndex(data, []byte("0123456789"))))
		must(err)
	}
	table, err := newTable(tableSize(1))
	must(err)
	defer table.Close()
	near, far := fake.Pipe()
	defer near.Close()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	s := &session{link: newLink(hookedConn{near, func() { change("012345678x") }}), table: table, hasher: newHasher()}
	s.ends.Store(&ends{deadline: time.Now().Add(time.Hour)})
	for _, want := range []int64{1, 1, 0} {
		p := pass{session: s, ctx: t.Context(), live: true, ends: s.ends.Load()}
		_, err := file.Scan(memfile.Clock{Now: 64}, func(item *memfile.Item) error {
			if string(item.Key) == "large" {
				return p.visit(item)
			}
			return nil
		})
		if err != nil || p.done.Sent != want {
			t.Errorf("%d items are sent, want %d: %v", p.done.Sent, want, err)
		}
		change("0123456789")
		s.link = newLink(near)
	}
}

// After the limit the target loses what it doesn't have, and keeps nothing that is wrong.
func TestAfterLimitNoContentsAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(1000), newCache(t)
		origin.onStop = func(context.Context) error {
			origin.set("key-1", entry{value: "changed"})
			origin.remove("key-2")
			origin.set("new", entry{value: "new"})
			return nil
		}
		start(t, cache.network, func(ctx context.Context) (Offer, error) {
			offer, err := offerOf(origin, 1000)(ctx)
			offer.Limit = time.Now().Add(-time.Second)
			return offer, err
		})
		result, err := Receive(t.Context(), targetOf(t, cache))
		if err != nil || result.ItemsBefore != 1000 || result.Items != 998 {
			t.Errorf("%+v, %v", result, err)
		}
		want := origin.snapshot()
		delete(want, "key-1")
		delete(want, "new")
		mustEqual(t, cache.snapshot(), want)
	})
}

// A deletion can leave less time than the pod's own grace period, and be shortened while the items are copied. At its end the kubelet
// kills the source, and what the target has by then would be lost.
func TestHottestItemsThatFitIntoAShorterGracePeriodAreKept(t *testing.T) {
	const (
		items, each = 1000, 70 * time.Millisecond // 70 s in all
		grace       = 30 * time.Second
		fit         = int(grace / each)
	)
	for name, c := range map[string]struct {
		known   time.Duration // after the start
		coldest int           // items that were copied before
		want    string
	}{
		"known at the start":      {0, 0, "scan, hot first, stop, scan, complete"},
		"known in the first pass": {15500 * time.Millisecond, int(16 * time.Second / each), "scan, cold first, scan, hot first, stop, scan, complete"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(items), newCache(t)
				origin.visiting = func(int, int64) {
					if !slices.Contains(origin.calls(), "stop") {
						_ = peerlink.Sleep(t.Context(), each)
					}
				}
				keys := slices.Sorted(maps.Keys(origin.snapshot()))
				origin.read = keys[items-fit-1] // the last one for which there is time
				origin.onStop = func(context.Context) error {
					origin.set(keys[items-1], entry{value: "changed"})
					origin.set("new", entry{value: "new"}) // used last
					return nil
				}
				source := start(t, cache.network, func(ctx context.Context) (Offer, error) {
					offer, err := offerOf(origin, 2*int(grace/time.Second)*itemsPerSecond)(ctx)
					offer.Limit = time.Now().Add(time.Hour)
					return offer, err
				})
				target, began := targetOf(t, cache), time.Now()
				target.Ready = func() { t.Error("both serve, although the end has to begin") }
				target.Announced = func() (bool, time.Duration) {
					if time.Since(began) < c.known {
						return false, 0
					}
					return false, grace
				}
				result, err := Receive(t.Context(), target)
				if err != nil {
					t.Fatal(err)
				}
				source.wait()
				if events := strings.Join(origin.history(), ", "); events != c.want {
					t.Error(events)
				}
				if early := result.Took - c.known - grace; early < 0 || early > 10*time.Second {
					t.Errorf("%s after the grace period", early)
				}
				wantOnly(t, cache, origin, keys[c.coldest:items-fit-1]...)
			})
		})
	}
}

// The target evicts in the order of the copy, so the coldest items are first while there is time for all.
func TestHottestItemsAreFirstWhenTimeIsShort(t *testing.T) {
	for name, c := range map[string]struct {
		items, bytes    int64
		deadline, limit time.Duration // 0: none
		want            string
	}{
		"time for all":                {1000, 1000, time.Hour, time.Hour, "scan, cold first, scan, stop, scan, complete"},
		"no limit":                    {1000, 1000, time.Hour, 0, "scan, cold first, scan, stop, scan, complete"},
		"many items":                  {itemsPerSecond * 20, 1000, 10 * time.Second, 0, "scan, hot first, scan, stop, scan, complete"},
		"many bytes":                  {1000, bytesPerSecond * 20, 10 * time.Second, 0, "scan, hot first, scan, stop, scan, complete"},
		"a pass that was interrupted": {1000, 1000, -time.Second, time.Hour, "scan, hot first, stop, scan, hot first, complete"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(1000), newCache(t)
				origin.onScan = func(_ context.Context, scan int) error {
					if scan == 1 {
						origin.set("changed", entry{})
					}
					return nil
				}
				source := start(t, cache.network, func(ctx context.Context) (Offer, error) {
					offer, err := offerOf(origin, 1000)(ctx)
					offer.Items, offer.Bytes, offer.Deadline = c.items, c.bytes, time.Now().Add(c.deadline)
					if c.limit != 0 {
						offer.Limit = time.Now().Add(c.limit)
					}
					return offer, err
				})
				if _, err := Receive(t.Context(), targetOf(t, cache)); err != nil {
					t.Fatal(err)
				}
				source.wait()
				if events := strings.Join(origin.history(), ", "); events != c.want {
					t.Error(events)
				}
			})
		})
	}
}

func TestProgressIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(100), newCache(t)
		start(t, cache.network, offerOf(origin, 90))
		var all []Progress
		target := targetOf(t, cache)
		target.Progress = func(p Progress) { all = append(all, p) }
		if _, err := Receive(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		if len(all) < 3 || all[0].Pass != 1 || all[0].Total != 90 {
			t.Fatalf("%+v", all)
		}
		if last := all[len(all)-1]; last.Pass != 0 || last.Items != 100 || last.Total != 100 || last.Bytes == 0 {
			t.Errorf("%+v", last)
		}
	})
}

func TestPageMoverRunsAgainAfterHandover(t *testing.T) {
	for level, want := range map[string]string{"1": "[0 1]", "2": "[0 2]", "0": "[]"} {
		synctest.Test(t, func(t *testing.T) {
			origin, cache := newOrigin(10), newCache(t)
			cache.Automove = level
			start(t, cache.network, offerOf(origin, 10))
			if _, err := Receive(t.Context(), targetOf(t, cache)); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(cache.moves()); got != want {
				t.Errorf("level %s: %s, want %s", level, got, want)
			}
		})
	}
}

// A sweep removes the keys that a pass has not visited.
func TestTableAgreesWithMap(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		table, err := newTable(tableSize(0))
		if err != nil {
			t.Fatal(err)
		}
		want := map[uint64]uint64{}
		for range 30 {
			visited := map[uint64]bool{}
			for range random.IntN(600) {
				hash, content := uint64(random.IntN(1500)+1)*0x9e3779b97f4a7c15, random.Uint64N(4)*4
				at, found := table.Find(hash)
				known, has := want[hash]
				if !has && found && table.unchanged(at, content) || has && table.unchanged(at, content) != (known == content) {
					t.Fatalf("key %x: %t, want %d, %t", hash, found, known, has)
				}
				if !table.put(at, found, hash, content) {
					if found {
						t.Fatal("a key of the table has no room")
					}
					continue
				}
				want[hash], visited[hash] = content, true
			}
			if random.IntN(3) == 0 {
				_ = table.sweep(nil)
				continue
			}
			removed := map[uint64]bool{}
			_ = table.sweep(func(hash uint64) error {
				removed[hash] = true
				return nil
			})
			for hash := range want {
				if removed[hash] == visited[hash] {
					t.Fatalf("key %x is removed: %t", hash, removed[hash])
				}
				delete(removed, hash)
				if !visited[hash] {
					delete(want, hash)
				}
			}
			if len(removed) > 0 {
				t.Fatalf("%d keys are removed that weren't there", len(removed))
			}
		}
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFullTableHasFreeSlots(t *testing.T) {
	const items = 10_000
	size := tableSize(items)
	if perItem := float64(size) / items; perItem > 32 {
		t.Errorf("%.1f bytes an item", perItem)
	}
	table, err := newTable(size)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	put := 0
	for n := uint64(1); ; n++ {
		hash := peerlink.KeyHash(1, fmt.Append(nil, n))
		at, found := table.Find(hash)
		if found || !table.put(at, found, hash, n) {
			break
		}
		put++
	}
	if put < items*6/5 {
		t.Errorf("it has room for %d items", put)
	}
}

// Each part of an item makes another content.
func TestContentHashCoversWholeItem(t *testing.T) {
	h := newHasher()
	item := memfile.Item{Key: []byte("key"), Value: []byte("value"), Flags: 1, Expires: 2, LastAccess: 4, CAS: 5}
	contentOf := func(item *memfile.Item) uint64 {
		content, err := h.content(item)
		if err != nil {
			t.Error(err)
		}
		return content
	}
	content := contentOf(&item)
	same := item
	same.ExpiresAt, same.LastAccess, same.CAS = time.Unix(6, 0), 7, 8
	if contentOf(&same) != content {
		t.Error("what every access changes is a part of the content")
	}
	h.cas = true
	if content := contentOf(&item); content == contentOf(&same) {
		t.Error("a write of the same value is no change")
	}
	h.cas = false
	for name, change := range map[string]func(*memfile.Item){
		"key":             func(i *memfile.Item) { i.Key = []byte("kez") },
		"value":           func(i *memfile.Item) { i.Value = []byte("valuf") },
		"border":          func(i *memfile.Item) { i.Key, i.Value = []byte("keyv"), []byte("alue") },
		"flags":           func(i *memfile.Item) { i.Flags++ },
		"expiry":          func(i *memfile.Item) { i.Expires++ },
		"form of the key": func(i *memfile.Item) { i.Binary = true },
	} {
		other := item
		change(&other)
		if contentOf(&other) == content {
			t.Errorf("another %s has the same content", name)
		}
	}
}

// A source that starts again must not serve items that the target may have changed.
func TestSourceCommitsBeforeTheTargetMayServe(t *testing.T) {
	for _, available := range []bool{false, true} {
		t.Run(fmt.Sprintf("available %t", available), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(100), newCache(t)
				start(t, cache.network, offerOf(origin, 100))
				target := targetOf(t, cache)
				committed := func() bool { return slices.Contains(origin.calls(), "commit") }
				if available {
					target.Ready = func() {
						if !committed() {
							t.Error("the target serves before the source has committed")
						}
					}
				}
				origin.onStop = func(context.Context) error {
					if committed() != available {
						t.Errorf("committed %t when memcached stops", committed())
					}
					return nil
				}
				if _, err := Receive(t.Context(), target); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if events := origin.calls(); !committed() || !slices.Equal(events[len(events)-2:], []string{"complete", "release"}) {
					t.Error(events)
				}
			})
		})
	}
}

func TestTargetDoesNotServeIfTheSourceCanNotCommit(t *testing.T) {
	for available, want := range map[bool]string{false: "stop, resume", true: ""} {
		t.Run(fmt.Sprintf("available %t", available), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(100), newCache(t)
				origin.onCommit = func() error { return errTest }
				start(t, cache.network, offerOf(origin, 100))
				target := targetOf(t, cache)
				if available {
					target.Ready = func() { t.Error("the target serves") }
				}
				if _, err := Receive(t.Context(), target); err == nil || IsNotReady(err) {
					t.Errorf("the target gets %v", err)
				}
				synctest.Wait()
				if got := origin.outcome(); got != want || origin.calls()[len(origin.calls())-1] != "release" {
					t.Errorf("the source did %v", origin.calls())
				}
			})
		})
	}
}

func TestSourceKnowsWhetherTheTargetWasRequested(t *testing.T) {
	for name, c := range map[string]struct {
		announced func() (bool, time.Duration)
		want      bool
	}{
		"by no one": {nil, false}, "not yet": {func() (bool, time.Duration) { return false, 0 }, false},
		"by the operator": {func() (bool, time.Duration) { return true, 0 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, cache := newOrigin(1), newCache(t)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				listener := cache.network.Listen(sourceAddress)
				go func() {
					_ = Serve(ctx, listener, testKey, func(ctx context.Context, requested bool) (Offer, error) {
						if requested != c.want {
							t.Errorf("requested %t", requested)
						}
						return offerOf(origin, 1)(ctx)
					}, logOf(t, "source"))
				}()
				target := targetOf(t, cache)
				target.Announced = c.announced
				if _, err := Receive(t.Context(), target); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A control character has six bytes as JSON. Without the frame, the target would try again what is impossible.
func TestFailureFitsIntoAFrame(t *testing.T) {
	for _, message := range []string{"short", strings.Repeat("x", 5000), strings.Repeat("\x01", 5000), strings.Repeat("\xff", 5000)} {
		near, far := fake.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		if err := newLink(near).Fail(fmt.Errorf("%w: %s", ErrImpossible, message)); err != nil {
			t.Errorf("%.9q: %v", message, err)
		}
	}
}

package scaling

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// owners are the only source of a change, which is shard 1, and the target.
type owners struct {
	change   Change
	ordinals [2]int
	key      []byte // of the target
	t        *testing.T
	network  fake.Network
	servers  [2]*fake.Server
	runs     [2]atomic.Int64
	keys     []string
	// other is a key that stays where it is.
	other    string
	progress Progress
	// onScan, if any, is called at the end of each scan, onDial when the source's agent connects to memcached. An item for which
	// hidden returns true isn't shown, the key twice is twice; shown replaces what is.
	onScan func(side) error
	onDial func()
	hidden func(at side, key string) bool
	twice  string
	shown  *fake.Server
	dumps  int
	// noRoom are those whose container is full; reserved is how many reservations there are. wants is how the run ends.
	noRoom   [2]bool
	reserved atomic.Int64
	wants    error
	// withdraw ends the run.
	withdraw func()
}

// exited is the run of a memcached that doesn't run.
const exited = -1

func newOwners(t *testing.T) *owners {
	o := &owners{t: t, key: testKey, change: Change{ring.Modulo, servers(2), servers(4)}, ordinals: [2]int{theirs: 1, ours: 3}}
	to, err := ring.New(o.change.Ring, o.change.To)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; len(o.keys) < 50; i++ {
		if key := fmt.Sprintf("key-%d", i); to.Shard([]byte(key)) == o.ordinals[ours] {
			o.keys = append(o.keys, key)
		} else {
			o.other = key
		}
	}
	for at := range o.servers {
		o.serve(side(at))
	}
	for _, key := range o.keys {
		o.servers[theirs].Set(key, fake.Item{Value: "first"})
	}
	return o
}

// leaves lets the source be a shard that leaves, and the target one that stays.
func (o *owners) leaves() { o.change.To, o.ordinals[ours] = servers(1), 0 }

// serve starts an empty memcached.
func (o *owners) serve(at side) {
	if former := o.servers[at]; former != nil {
		former.Stop()
		o.runs[at].Add(1)
	}
	o.servers[at] = fake.New().Serve(&o.network, fmt.Sprint(at))
}

func (o *owners) memcached(at side) Memcached {
	began := o.runs[at].Load()
	return Memcached{
		Server: protocol.Server{Address: fmt.Sprint(at), DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if at == theirs && o.onDial != nil {
				o.onDial()
			}
			return o.network.DialContext(ctx, network, address)
		}}, Owner: "owner", Ordinal: o.ordinals[at],
		Run: func() string {
			run := o.runs[at].Load()
			if at == theirs && run != began || run == exited {
				return "" // as an agent's
			}
			return fmt.Sprint(run)
		},
		Reserve: func(int64) (func(), bool) {
			o.reserved.Add(1)
			return func() { o.reserved.Add(-1) }, !o.noRoom[at]
		},
		Dump: func(ctx context.Context, visit func(protocol.Listed) error) error {
			o.dumps++
			before := len(o.servers[at].Requests("md "))
			err := protocol.Server{Address: fmt.Sprint(at), DialContext: o.network.DialContext}.Dump(ctx, peerlink.Silence, visit)
			if len(o.servers[at].Requests("md ")) != before {
				o.t.Error("deletes during a dump")
			}
			return err
		},
		Scan: func(_ context.Context, _ handover.Order, which func([]byte) bool, visit func(*memfile.Item) error) (report memfile.Report, err error) {
			server := o.servers[at]
			if at == theirs && o.shown != nil {
				server = o.shown
			}
			server.Each(func(key string, _ fake.Item, cas uint64, expires uint32) {
				if !which([]byte(key)) {
					return
				}
				report.Items++
				for range map[bool]int{true: 2}[key == o.twice] {
					err = visit(&memfile.Item{Key: []byte(key), CAS: cas, Expires: expires})
				}
				if err == nil && key != o.twice && (o.hidden == nil || !o.hidden(at, key)) {
					err = visit(&memfile.Item{Key: []byte(key), CAS: cas, Expires: expires})
				}
			})
			if err == nil && o.onScan != nil {
				err = o.onScan(at)
			}
			return report, err
		},
	}
}

// unprove replaces the source by one in which the keys are not where the ring puts them.
func (o *owners) unprove() {
	o.serve(theirs)
	for i := range 50 {
		o.servers[theirs].Set(fmt.Sprintf("other-%d", i), fake.Item{})
	}
}

// run moves the keys. script is called before each sweep, from 1, and returns the step.
func (o *owners) run(script func(sweep int) Step) {
	o.t.Helper()
	defer o.network.Close()
	log := slog.New(slog.DiscardHandler)
	service, err := Service(testKey, func() (Memcached, error) { return o.memcached(theirs), nil })
	if err != nil {
		o.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(o.t.Context())
	defer cancel()
	o.withdraw = cancel
	sweep := 0
	err = Run(ctx, Target{
		Memcached: o.memcached(ours), Change: o.change, Key: o.key, Log: log,
		Dial: func(context.Context, int) (net.Conn, error) {
			near, far := fake.Pipe()
			go func() {
				conn := tls.Server(far, service.Identity)
				service.Handle(ctx, conn, log)
				_ = conn.Close()
			}()
			return near, nil
		},
		Step: func() Step {
			if sweep++; sweep > 100 {
				o.t.Fatal("no end after 100 sweeps")
			}
			synctest.Wait() // what the source still does after a failure reads what the script changes
			return script(sweep)
		},
		Progress: func(p Progress) { o.progress = p },
	})
	if !errors.Is(err, o.wants) {
		o.t.Error(err)
	}
	cancel()
	synctest.Wait()
	if n := o.reserved.Load(); n != 0 {
		o.t.Errorf("%d reservations remain", n)
	}
}

// talk sends a request of a client.
func (o *owners) talk(at side, request string) {
	o.t.Helper()
	conn, err := o.network.DialContext(o.t.Context(), "tcp", fmt.Sprint(at))
	if err == nil {
		_, err = io.WriteString(conn, request+"\r\nquit\r\n")
	}
	if err == nil {
		_, err = io.ReadAll(conn)
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *owners) value(at side, key string) string { return o.servers[at].Items()[key].Value }

// What a client changes in one owner, after copying in sweep 3 of 4, is what both have after the next two sweeps. After the close, the
// target has that or nothing, and the source nothing.
func TestChangesReachTheOtherOwner(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *owners, key string)
		// want is what both have while lists differ, at the end what the target has after the close.
		want, end string
	}{
		"nothing":                  {func(*owners, string) {}, "first", "first"},
		"the source":               {func(o *owners, key string) { o.servers[theirs].Set(key, fake.Item{Value: "next"}) }, "next", "next"},
		"the target":               {func(o *owners, key string) { o.servers[ours].Set(key, fake.Item{Value: "next"}) }, "next", "next"},
		"a deletion in the source": {func(o *owners, key string) { o.servers[theirs].Delete(key) }, "", ""},
		"a deletion in the target": {func(o *owners, key string) { o.servers[ours].Delete(key) }, "", ""},
		"flush_all of the source":  {func(o *owners, _ string) { o.talk(theirs, "flush_all") }, "", ""},
		"flush_all of the target":  {func(o *owners, _ string) { o.talk(ours, "flush_all") }, "", ""},
		"flush_all that no scan shows": {func(o *owners, _ string) {
			o.shown = o.servers[theirs]
			o.serve(theirs)
			o.runs[theirs].Store(0)
			o.talk(theirs, "flush_all")
		}, "", ""},
		"another value in both": {func(o *owners, key string) {
			o.servers[theirs].Set(key, fake.Item{Value: "a"})
			o.servers[ours].Set(key, fake.Item{Value: "b"})
		}, "", ""},
		"the same value in both": {func(o *owners, key string) {
			for at := range o.servers {
				o.servers[at].Set(key, fake.Item{Value: "next"})
			}
		}, "next", "next"},
		"the same number in both": {func(o *owners, key string) {
			for at := range o.servers {
				o.servers[at].Set(key, fake.Item{Value: "8"})
			}
		}, "", ""},
		"the same value, another flag": {func(o *owners, key string) {
			for at := range o.servers {
				o.servers[at].Set(key, fake.Item{Value: "next", Flags: uint64(at)})
			}
		}, "", ""},
		"the source starts again": {func(o *owners, key string) {
			o.serve(theirs)
			for _, k := range o.keys {
				o.servers[theirs].Set(k, fake.Item{Value: "next"})
			}
		}, "", ""},
		"the target starts again": {func(o *owners, _ string) { o.serve(ours) }, "first in the source only", ""},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			o := newOwners(t)
			key := o.keys[7]
			o.run(func(sweep int) Step {
				switch {
				case sweep <= 3:
					return Copy
				case sweep == 4:
					if o.progress.Step != Copy || o.value(ours, key) != "first" {
						t.Errorf("after copying: %+v, %q", o.progress, o.value(ours, key))
					}
					c.change(o, key)
				case sweep == 9:
					theirsHas, oursHas := o.value(theirs, key), o.value(ours, key)
					if want := strings.TrimSuffix(c.want, " in the source only"); theirsHas != want || oursHas != want && want == c.want {
						t.Errorf("the source has %q, the target %q, want %q", theirsHas, oursHas, c.want)
					}
				case sweep > 9:
					return Close
				}
				return Published
			})
			if got := o.value(ours, key); got != c.end {
				t.Errorf("after the close, the target has %q, want %q", got, c.end)
			}
			for _, key := range o.keys {
				if got := o.value(theirs, key); got != "" {
					t.Fatalf("after the close, the source has %q", got)
				}
			}
		}))
	}
}

func TestSourceThatLeavesKeepsItsItems(t *testing.T) {
	bubble(func(t *testing.T) {
		o := newOwners(t)
		o.leaves()
		o.run(func(sweep int) Step { return []Step{Copy, Copy, Copy, Published, Close}[min(sweep, 5)-1] })
		if theirs, ours := len(o.servers[theirs].Items()), len(o.servers[ours].Items()); theirs != len(o.keys) || ours != theirs || o.progress.Purged > 0 {
			t.Errorf("the source has %d items, the target %d, of %d: %+v", theirs, ours, len(o.keys), o.progress)
		}
	})(t)
}

func TestScansTakeAsLongAsTheyNeed(t *testing.T) {
	bubble(func(t *testing.T) {
		o := newOwners(t)
		o.onScan = func(side) error { return peerlink.Sleep(t.Context(), time.Hour) }
		o.run(func(sweep int) Step { return []Step{Copy, Copy, Copy, Published, Close}[min(sweep, 5)-1] })
		if ours := len(o.servers[ours].Items()); ours != len(o.keys) {
			t.Errorf("the target has %d items of %d: %+v", ours, len(o.keys), o.progress)
		}
	})(t)
}

// idle_timeout of memcached can be shorter than a scan.
func TestConnectionsThatMemcachedHasClosedAreOpenedAgain(t *testing.T) {
	bubble(func(t *testing.T) {
		o := newOwners(t)
		o.onScan = func(side) error {
			for at := range o.servers {
				o.servers[at].Disconnect()
			}
			return peerlink.Sleep(t.Context(), time.Second)
		}
		o.run(func(sweep int) Step {
			if sweep == 4 {
				o.servers[theirs].Set(o.keys[7], fake.Item{Value: "next"})
			}
			return []Step{Copy, Copy, Copy, Published, Close}[min(sweep, 5)-1]
		})
		if n := len(o.servers[ours].Items()); n != len(o.keys) || o.value(ours, o.keys[7]) != "next" {
			t.Errorf("the target has %d items of %d: %+v", n, len(o.keys), o.progress)
		}
	})(t)
}

// The close deletes all that isn't a pair, however many there are.
func TestCloseOfATargetWithoutPairsLeavesNothingThatMoved(t *testing.T) {
	bubble(func(t *testing.T) {
		o := newOwners(t)
		to, err := ring.New(o.change.Ring, o.change.To)
		if err != nil {
			t.Fatal(err)
		}
		stay := 0
		o.run(func(sweep int) Step {
			if sweep == 1 {
				return Published // nothing was copied
			}
			o.servers[theirs].Clear()
			for i := range 72_000 {
				key := fmt.Sprintf("%0245d", i)
				if to.Shard([]byte(key)) != o.ordinals[ours] {
					stay++
				}
				o.servers[ours].Set(key, fake.Item{Value: "old"})
			}
			return Close
		})
		for key := range o.servers[ours].Items() {
			if stay--; to.Shard([]byte(key)) == o.ordinals[ours] {
				t.Fatalf("%s is left, after %d dumps", key, o.dumps)
			}
		}
		if stay != 0 {
			t.Errorf("%d items of other keys were deleted", stay)
		}
		if o.dumps < 2 {
			t.Errorf("%d dumps for more names than the memory holds", o.dumps)
		}
	})(t)
}

func TestMoveWithoutMemoryForTables(t *testing.T) {
	for at, want := range [2]error{theirs: nil, ours: ErrNoMemory} {
		bubble(func(t *testing.T) {
			o := newOwners(t)
			o.leaves()
			o.noRoom[at], o.wants = true, want
			o.run(func(sweep int) Step {
				if sweep < 3 {
					return Copy
				}
				return Close
			})
		})(t)
	}
}

// When nothing keeps it equal to what the source has, it would be old values as soon as clients look there.
func TestWhatWasCopiedIsDeletedIfTheMoveEndsBeforeItsPublication(t *testing.T) {
	const ends = 4 // the sweep in which it does
	withdraw := func(o *owners) { o.withdraw() }
	for name, c := range map[string]struct {
		step    Step
		copies  bool
		end     func(o *owners)
		wants   error
		deletes bool
	}{
		"the operator withdraws it":               {Copy, true, withdraw, context.Canceled, true},
		"the source comes back with another ring": {Copy, true, (*owners).unprove, ErrUnproven, true},
		"memcached has a free connection later": {Copy, true, func(o *owners) {
			began := time.Now()
			o.servers[ours].Before = func(string) string {
				if time.Since(began) < time.Minute {
					return "ERROR Too many open connections\r\n"
				}
				return ""
			}
			o.withdraw()
		}, context.Canceled, true},
		"memcached has exited": {Copy, true, func(o *owners) { o.runs[ours].Store(exited); o.withdraw() }, context.Canceled, false},
		"clients may use it":   {Published, true, withdraw, context.Canceled, false},
		"nothing was copied":   {Copy, false, func(*owners) {}, ErrUnproven, false},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			o := newOwners(t)
			o.wants = c.wants
			if !c.copies {
				o.unprove()
			}
			o.servers[ours].Set(o.keys[0], fake.Item{Value: "own"})
			o.servers[ours].Set(o.other, fake.Item{Value: "own"})
			o.run(func(sweep int) Step {
				if sweep == ends {
					c.end(o)
				}
				if sweep < ends {
					return Copy
				}
				return c.step
			})
			if got := o.value(ours, o.keys[0]); (got == "") != c.deletes || c.deletes && len(o.servers[ours].Items()) != 1 {
				t.Errorf("%d items are left, of a key that moves %q", len(o.servers[ours].Items()), got)
			}
		}))
	}
}

// Its memcached has started again with its items, and no source was reached since.
func TestCopiesOfAFormerProcessAreDeletedIfTheMoveEndsBeforeItBegins(t *testing.T) {
	bubble(func(t *testing.T) {
		o := newOwners(t)
		o.leaves()
		o.wants = context.Canceled
		o.servers[ours].Set(o.keys[0], fake.Item{Value: "first"})
		o.run(func(int) Step {
			o.withdraw()
			return Copy
		})
		if got := o.value(ours, o.keys[0]); got != "" {
			t.Errorf("it has %q", got)
		}
	})(t)
}

// A shard that a Memcached has adopted has other keys than its new shards.
func TestKeysOfAnAdoptedShardDoNotMove(t *testing.T) {
	bubble(func(t *testing.T) {
		o := newOwners(t)
		o.key, o.wants = bytes.Repeat([]byte("x"), peerlink.KeySize), ErrImpossible
		o.run(func(int) Step { return Copy })
	})(t)
}

// A pair whose source has changed is none after the close, also if the target neither gets the value nor sees that.
func TestUnresolvedPairsAreDeletedAtTheClose(t *testing.T) {
	for name, closing := range map[string]bool{"changed before the close": false, "changed when it begins": true} {
		t.Run(name, bubble(func(t *testing.T) {
			o := newOwners(t)
			key, rejects := o.keys[7], false
			o.servers[ours].Before = func(request string) string {
				if rejects && strings.HasPrefix(request, "ms "+key+" ") {
					return "EX\r\n"
				}
				return ""
			}
			o.hidden = func(at side, of string) bool { return rejects && at == ours && of == key }
			o.run(func(sweep int) Step {
				switch {
				case sweep <= 3:
					return Copy
				case sweep == 4 && closing:
					return Published
				case sweep == 4 || sweep == 5 && closing:
					rejects = true
					o.servers[theirs].Set(key, fake.Item{Value: "next"})
				}
				if sweep == 4 {
					return Published
				}
				return Close
			})
			if got := o.value(ours, key); got != "" || o.progress.Deleted == 0 || len(o.servers[ours].Items()) != len(o.keys)-1 {
				t.Errorf("the target has %q, %d items, %+v", got, len(o.servers[ours].Items()), o.progress)
			}
		}))
	}
}

// What the target can't store, or is too large, is fetched again only when it has changed. What it evicts while it copies stays in the source.
func TestWhatTheTargetHasNoRoomForStaysInTheSource(t *testing.T) {
	bubble(func(t *testing.T) {
		o := newOwners(t)
		large, evicted, tooLarge := o.keys[7], o.keys[8], o.keys[9]
		o.servers[theirs].Set(tooLarge, fake.Item{Value: strings.Repeat("x", maxValue+1)})
		o.servers[ours].Before = func(request string) string {
			if strings.HasPrefix(request, "ms "+large+" ") {
				return "SERVER_ERROR object too large for cache\r\n"
			}
			return ""
		}
		o.run(func(sweep int) Step {
			switch {
			case sweep == 5:
				o.servers[theirs].Set(large, fake.Item{Value: "next"})
				o.servers[ours].Delete(evicted)
			case sweep == 12:
				for _, key := range []string{large, evicted, tooLarge} {
					if o.value(theirs, key) == "" || o.value(ours, key) != "" {
						t.Errorf("%s: the source has %.9q, the target %.9q", key, o.value(theirs, key), o.value(ours, key))
					}
				}
				return Close
			case sweep > 8:
				return Published
			}
			return Copy
		})
		for key, want := range map[string]int{large: 2, tooLarge: 1} {
			if n := len(o.servers[theirs].Requests("mg " + key + " ")); n != want {
				t.Errorf("the source was requested for the item %d times, want %d", n, want)
			}
		}
	})(t)
}

// A value can be larger than the memory of the container.
func TestValueThatIsTooLargeToMoveTakesNoMemory(t *testing.T) {
	bubble(func(t *testing.T) {
		o := newOwners(t)
		defer o.network.Close()
		p, err := openPipe(t.Context(), o.memcached(theirs))
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		var got []int
		for _, size := range []int{4 * maxValue, maxValue + 1, 5, maxValue} {
			o.servers[theirs].Set("key", fake.Item{Value: strings.Repeat("x", size)})
			err := p.fetch([]byte("key"), false, func(found *item) error {
				if found != nil {
					got = append(got, len(found.value))
				}
				return nil
			})
			if err == nil {
				err = p.barrier()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, []int{5, maxValue}) || cap(p.value) > 2*maxValue {
			t.Errorf("values of %d bytes, in %d bytes of memory", got, cap(p.value))
		}
	})(t)
}

// A value is never stored where it could replace a newer one: an action that comes too late does nothing.
func TestItemThatAScanShowsTwiceReplacesNothing(t *testing.T) {
	bubble(func(t *testing.T) {
		o := newOwners(t)
		key, gets := o.keys[7], 0
		o.run(func(sweep int) Step {
			if sweep == 4 {
				o.servers[theirs].Set(key, fake.Item{Value: "next"})
				o.twice = key
				o.servers[theirs].Before = func(request string) string {
					if gets++; strings.HasPrefix(request, "mg "+key+" ") {
						o.servers[theirs].Before = nil
						return "EN\r\n"
					}
					return ""
				}
			}
			if sweep == 5 && o.value(ours, key) != "" {
				t.Errorf("the target has %q of a pair that was dropped", o.value(ours, key))
			}
			return []Step{Copy, Copy, Copy, Published, Published, Close}[min(sweep, 6)-1]
		})
	})(t)
}

// A scan is complete only if memcached was the same process until its end, and only a complete scan shows what isn't there.
func TestStaleValuesGetOlderWhileSweepsFail(t *testing.T) {
	bubble(func(t *testing.T) {
		o := newOwners(t)
		o.run(func(sweep int) Step {
			switch {
			case sweep <= 3:
				return Copy
			case sweep == 5:
				o.onScan = func(side) error { return io.ErrUnexpectedEOF }
			case sweep == 65:
				if o.progress.Stale < 2*time.Minute {
					t.Errorf("after a minute of sweeps that fail: %+v", o.progress)
				}
				o.onScan = nil
			case sweep > 65:
				return Close
			}
			return Published
		})
	})(t)
}

func TestIncompleteScansShowNothing(t *testing.T) {
	failing := errors.New("a scan that fails")
	for name, begin := range map[string]func(o *owners){
		"the source starts again in a list": func(o *owners) {
			o.onScan = func(at side) error {
				if at == theirs {
					o.runs[theirs].Add(1)
				}
				return nil
			}
		},
		"it starts again between lists": func(o *owners) { o.runs[theirs].Add(1) },
		"it starts again when its agent connects": func(o *owners) {
			o.servers[theirs].Disconnect()
			o.onDial = func() { o.runs[theirs].Add(1) }
		},
		"the target doesn't answer": func(o *owners) {
			o.servers[theirs].Set(o.keys[9], fake.Item{Value: "next"})
			o.onScan = func(side) error { o.servers[ours].Disconnect(); return nil }
		},
		"the target starts again in its scan": func(o *owners) {
			o.onScan = func(at side) error { o.runs[at].Add(int64(at)); return nil }
		},
		"the source's scan fails": func(o *owners) { o.onScan = func(at side) error { return map[side]error{theirs: failing}[at] } },
		"the own scan fails":      func(o *owners) { o.onScan = func(at side) error { return map[side]error{ours: failing}[at] } },
	} {
		t.Run(name, bubble(func(t *testing.T) {
			o := newOwners(t)
			o.run(func(sweep int) Step {
				switch sweep {
				case 1, 2, 3:
					if o.progress.Error != nil {
						t.Error(o.progress.Error)
					}
					_ = peerlink.Sleep(t.Context(), time.Minute) // an idle connection stays
					return Copy
				case 5:
					begin(o)
				case 6:
					if o.progress.Error == nil || o.progress.Step != Published {
						t.Errorf("sweep %d is complete: %+v", sweep-1, o.progress)
					}
					o.onScan, o.onDial = nil, nil
					o.servers[theirs].Delete(o.keys[7])
					o.servers[ours].Delete(o.keys[8])
				}
				if sweep > 5 {
					return Close
				}
				return Published
			})
			if n := len(o.servers[ours].Items()); n != len(o.keys)-2 {
				t.Errorf("%d items are left", n)
			}
		}))
	}
}

// A shard that leaves or joins a large cache has many sources, each of which takes memory of its container.
func TestTargetWorksWithSomeOfManySourcesAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{sources: map[int]*source{}}
		for ordinal := range 127 {
			r.sources[ordinal] = &source{receiver: r, ordinal: ordinal}
		}
		var began atomic.Int64
		free, done := make(chan struct{}), make(chan error)
		go func() {
			done <- r.each(func(*source) error {
				began.Add(1)
				<-free
				return nil
			})
		}()
		if synctest.Wait(); began.Load() != maxSources {
			t.Errorf("%d at a time", began.Load())
		}
		close(free)
		if err := <-done; err != nil || began.Load() != 127 {
			t.Errorf("%d of 127: %v", began.Load(), err)
		}
	})
}

func TestPipeKeepsNoLargeBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwners(t)
		defer o.network.Close()
		o.servers[ours].Set("large", fake.Item{Value: strings.Repeat("v", 2*keptSize)})
		own, err := openPipe(t.Context(), o.memcached(ours))
		if err != nil {
			t.Fatal(err)
		}
		defer own.close()
		read := 0
		err = own.fetch([]byte("large"), false, func(found *item) error {
			read = len(found.value)
			return own.set(&item{key: []byte("copy"), value: found.value}, time.Time{}, 0, func(protocol.Head, []byte) error { return nil })
		})
		if err = errors.Join(err, own.barrier()); err != nil || read != 2*keptSize || cap(own.value) > keptSize || cap(own.batch) > keptSize {
			t.Errorf("read %d bytes, keeps %d and %d: %v", read, cap(own.value), cap(own.batch), err)
		}
	})
}

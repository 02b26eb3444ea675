package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// layouts are arguments with which the memory file has a different layout.
var layouts = []string{
	"", "-I 8m -C -f 1.05 -n 8", "-I 2m -o slab_chunk_max=16", "-I 8m -o slab_sizes=100-200-400-1000-100000,no_slab_reassign",
	"-o no_chunked_items",
}

func layoutArguments(version, options string) []string {
	if version == oldest { // in KiB since 1.6.24, in bytes before
		options = strings.Replace(options, "slab_chunk_max=16", "slab_chunk_max=16384", 1)
	}
	// An item in a page that moves gets another CAS (1.6.18), or is deleted if it's in use for long.
	options += " -o slab_automove=0"
	return append([]string{"-m", "100"}, strings.Fields(options)...)
}

// A scan finds exactly what memcached returns, while it runs and after it has saved its items.
func TestMemoryFileHasTheItemsThatMemcachedReturns(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		for _, options := range layouts {
			t.Run(version+" "+options, func(t *testing.T) {
				t.Parallel()
				arguments := layoutArguments(version, options)
				server := startRaw(t, version, sharedDir(t), arguments...)
				file := server.memoryFile(arguments)
				w := newWorkload(t, server)
				w.run(1500)
				// Below 1.6.25, nothing but memory.meta says which items of its second a flush_all removed.
				nextSecond(time.Now().Unix() + 1)
				w.do("flush_all")
				w.run(1500)
				w.do("flush_all 1000")
				nextSecond(time.Now().Unix() + 3) // the short-lived items expire

				clock, err := memfile.ClockOfRunning(t.Context(), protocol.At(server.address()))
				if err != nil {
					t.Fatal(err)
				}
				want := w.answers(server)
				wantInFile(t, "of the running memcached", file, clock, want)
				if err := file.Verify(t.Context(), protocol.At(server.address())); err != nil {
					t.Error(err)
				}

				w.reconnect(server)
				w.run(200)
				w.do("flush_all")
				w.run(300)
				nextSecond(time.Now().Unix() + 1) // without CAS, 1.6.18 removes all items of the second
				w.run(300)
				server.stop(syscall.SIGUSR1)
				nextSecond(max(stopSecond(t, server.meta()), time.Now().Unix()+2))
				clock = clockOfMeta(t, server)
				saved := collect(t, file.Scan, clock)
				coldFirst := collect(t, file.ScanColdFirst, clock)
				again := startRaw(t, version, server.dir, arguments...)
				want = w.answers(again)
				wantEqual(t, "after the save", saved, want)
				wantEqual(t, "after the save, coldest first", coldFirst, want)
				t.Logf("%d items", len(want))
			})
		}
	}
}

// A page that moves to another slab class leaves chunks behind, and moves the chunks of large items.
func TestMemoryFileAfterPagesHaveMoved(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			arguments := layoutArguments(version, "-I 4m -o slab_chunk_max=16 -f 2")
			server := startRaw(t, version, sharedDir(t), arguments...)
			file := server.memoryFile(arguments)
			w := newWorkload(t, server)
			for range 20 {
				w.run(200)
				for class := range 8 {
					w.do(fmt.Sprintf("slabs reassign %d %d", class+1, (class+1)%8+1))
				}
			}
			nextSecond(time.Now().Unix() + 3) // the short-lived items expire, and the last pages have moved
			stats := map[string]string{}
			for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				if stats = w.stats(); stats["slab_reassign_running"] == "0" {
					break
				}
			}
			if stats["slab_reassign_running"] != "0" || stats["slabs_moved"] == "0" || stats["slab_reassign_chunk_rescues"] == "0" {
				t.Fatalf("%s pages have moved, %s chunks of large items", stats["slabs_moved"], stats["slab_reassign_chunk_rescues"])
			}
			t.Logf("%s pages, %s items, %s chunks", stats["slabs_moved"], stats["slab_reassign_rescues"], stats["slab_reassign_chunk_rescues"])
			clock, err := memfile.ClockOfRunning(t.Context(), protocol.At(server.address()))
			if err != nil {
				t.Fatal(err)
			}
			wantInFile(t, "after moves", file, clock, w.answers(server))
		})
	}
}

// Placeholders and invalidated items would be hits at another memcached.
func TestMemoryFileOmitsItemsThatAreNotValues(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := startRaw(t, version, sharedDir(t))
			file := server.memoryFile(nil)
			w := newWorkload(t, server)
			for _, request := range []string{
				"ms empty 0\r\n", "mg placeholder N100 c", "mg won N100 c", "ms won 1\r\nx", "ms stale 1\r\nx", "md stale I T100",
				"ms expiring 1 T10\r\nx", "mg expiring R30 c", "ms negative 1 T-1\r\nx",
			} {
				w.do(request)
			}
			clock, err := memfile.ClockOfRunning(t.Context(), protocol.At(server.address()))
			if err != nil {
				t.Fatal(err)
			}
			got := collect(t, file.Scan, clock)
			for key, want := range map[string]bool{"empty": true, "placeholder": false, "won": true, "stale": false, "expiring": true, "negative": false} {
				if _, found := got[key]; found != want {
					t.Errorf("%s is found: %v, want %v", key, found, want)
				}
			}
		})
	}
}

// The clock in memory.meta stands still while memcached is stopped.
func TestClockOfAStoppedMemcached(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := startRaw(t, version, sharedDir(t))
			file := server.memoryFile(nil)
			w := newWorkload(t, server)
			w.do("ms short 1 T3\r\nx")
			w.do("ms long 1 T1000\r\nx")
			running, err := memfile.ClockOfRunning(t.Context(), protocol.At(server.address()))
			if err != nil {
				t.Fatal(err)
			}
			server.stop(syscall.SIGUSR1)
			if stopped := clockOfMeta(t, server); stopped.Now < running.Now || stopped.Now > running.Now+60 {
				t.Errorf("the clock is %d after it was %d", stopped.Now, running.Now)
			}
			nextSecond(time.Now().Unix() + 4)
			got := collect(t, file.Scan, clockOfMeta(t, server))
			if _, ok := got["short"]; ok || len(got) != 1 {
				t.Errorf("got %v", got)
			}
		})
	}
}

// What a scan sees of an item that changes is undefined, but it is bounded, and other items are there.
func TestMemoryFileIsReadWhileClientsWrite(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			arguments := layoutArguments(version, "-I 4m")
			server := startRaw(t, version, sharedDir(t), arguments...)
			file := server.memoryFile(arguments)
			const constant = 2000
			fill(t, server.address(), constant)
			ctx, cancel := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			for i := range 3 {
				w := newWorkload(t, server)
				w.rand = rand.New(rand.NewPCG(uint64(i), 0))
				clients.Go(func() {
					for ctx.Err() == nil {
						w.step()
					}
				})
			}
			for i := range 30 {
				clock, err := memfile.ClockOfRunning(t.Context(), protocol.At(server.address()))
				if err != nil {
					t.Fatal(err)
				}
				scan := file.Scan
				if i%2 == 1 {
					scan = file.ScanColdFirst
				}
				found := map[string]bool{}
				report, err := scan(clock, func(item *memfile.Item) error {
					if len(item.Key) == 0 || len(item.Key) > protocol.MaxKey || len(item.Value) > 4<<20 {
						return fmt.Errorf("item %q of %d bytes", item.Key, len(item.Value))
					}
					found[string(item.Key)] = true
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if len(found) < constant {
					t.Errorf("%d items: %+v", len(found), report)
				}
			}
			if err := file.Verify(t.Context(), protocol.At(server.address())); err != nil {
				t.Error(err)
			}
			cancel()
			clients.Wait()
		})
	}
}

func TestMemoryFileOfOtherArgumentsIsRejected(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := startRaw(t, version, sharedDir(t))
			fill(t, server.address(), 20_000) // more than a sample, so that dumps are cut off
			for range 3 {
				if err := server.memoryFile(nil).Verify(t.Context(), protocol.At(server.address())); err != nil {
					t.Error(err)
				}
			}
			if err := server.memoryFile([]string{"-f", "1.26"}).Verify(t.Context(), protocol.At(server.address())); !errors.Is(err, memfile.ErrLayout) {
				t.Errorf("another growth factor: %v", err)
			}
			other := startRaw(t, version, sharedDir(t))
			if err := other.memoryFile([]string{"-n", "40"}).Verify(t.Context(), protocol.At(other.address())); !errors.Is(err, memfile.ErrLayout) {
				t.Errorf("another smallest item, without items: %v", err)
			}
			newWorkload(t, other).run(500)
			if err := server.memoryFile(nil).Verify(t.Context(), protocol.At(other.address())); !errors.Is(err, memfile.ErrLayout) {
				t.Errorf("another memcached: %v", err)
			}
			layout, err := memfile.LayoutOf([]string{"-m", "65"}, version)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := memfile.Open(filepath.Join(server.dir, "memory"), layout); !errors.Is(err, memfile.ErrLayout) {
				t.Errorf("more memory: %v", err)
			}
		})
	}
}

func (r *raw) memoryFile(arguments []string) *memfile.File {
	r.t.Helper()
	version := filepath.Base(filepath.Dir(r.command.Args[4])) // after sh -c script name
	layout, err := memfile.LayoutOf(arguments, version)
	if err != nil {
		r.t.Fatal(err)
	}
	file, err := memfile.Open(filepath.Join(r.dir, "memory"), layout)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = file.Close() })
	return file
}

func clockOfMeta(t *testing.T, server *raw) memfile.Clock {
	t.Helper()
	text, err := os.ReadFile(server.meta())
	if err != nil {
		t.Fatal(err)
	}
	clock, err := memfile.ClockOfMeta(string(text), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return clock
}

// content is what of an item must be equal.
type content struct {
	value string
	flags uint64
	cas   uint64
	ttl   int64
}

func (c content) String() string {
	return fmt.Sprintf("%d bytes %.20q flags %d cas %d ttl %d", len(c.value), c.value, c.flags, c.cas, c.ttl)
}

type scanFunc func(memfile.Clock, func(*memfile.Item) error) (memfile.Report, error)

func collect(t *testing.T, scan scanFunc, clock memfile.Clock) map[string]content {
	t.Helper()
	items := map[string]content{}
	report, err := scan(clock, func(item *memfile.Item) error {
		key := string(item.Key)
		if _, twice := items[key]; twice {
			t.Errorf("%q is found twice", key)
		}
		var ttl int64
		if item.Expires != 0 {
			ttl = int64(item.Expires) - int64(clock.Now)
		}
		items[key] = content{string(item.Value), uint64(item.Flags), item.CAS, ttl}
		return nil
	})
	if err != nil || report.Unreadable != 0 || report.Items != int64(len(items)) {
		t.Errorf("%d items, %+v: %v", len(items), report, err)
	}
	return items
}

func wantInFile(t *testing.T, when string, file *memfile.File, clock memfile.Clock, want map[string]content) {
	t.Helper()
	wantEqual(t, when, collect(t, file.Scan, clock), want)
	wantEqual(t, when+", coldest first", collect(t, file.ScanColdFirst, clock), want)
	wantEqual(t, when+", hottest first", collect(t, file.ScanHotFirst, clock), want)
	wantOrder(t, when, file.ScanColdFirst, clock, func(last, next uint32) bool { return last <= next })
	wantOrder(t, when, file.ScanHotFirst, clock, func(last, next uint32) bool { return last >= next })
}

func wantOrder(t *testing.T, when string, scan scanFunc, clock memfile.Clock, inOrder func(last, next uint32) bool) {
	t.Helper()
	var times []uint32
	_, err := scan(clock, func(item *memfile.Item) error {
		if n := len(times); n > 0 && !inOrder(times[n-1], item.LastAccess) {
			t.Errorf("%s: an item of %d after one of %d", when, item.LastAccess, times[n-1])
		}
		times = append(times, item.LastAccess)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func wantEqual(t *testing.T, when string, got, want map[string]content) {
	t.Helper()
	if len(want) == 0 {
		t.Error("there are no items")
	}
	for key, w := range want {
		g, ok := got[key]
		// The clock goes on between two observations.
		if near := g.ttl - w.ttl; ok && near > -30 && near < 30 && (g.ttl == 0) == (w.ttl == 0) {
			g.ttl = w.ttl
		}
		if !ok || g != w {
			t.Errorf("%s: item %.40q is found: %v %v, want %v", when, key, ok, g, w)
		}
	}
	for key, g := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("%s: item %.40q doesn't exist: %v", when, key, g)
		}
	}
}

// workload is a client that does all kinds of changes.
type workload struct {
	t       *testing.T
	rand    *rand.Rand
	conn    net.Conn
	r       *bufio.Reader
	keys    [][]byte
	largest int
}

func newWorkload(t *testing.T, server *raw) *workload {
	t.Helper()
	w := &workload{t: t, rand: rand.New(rand.NewPCG(14, 0)), largest: 1 << 20}
	for i, word := range server.command.Args {
		if word == "-I" {
			if _, err := fmt.Sscanf(server.command.Args[i+1], "%dm", &w.largest); err != nil {
				t.Fatal(err)
			}
			w.largest <<= 20
		}
	}
	for i := range 300 {
		key := []byte(fmt.Sprintf("key-%d", i))
		switch i % 5 {
		case 1:
			key = append(key, bytes.Repeat([]byte("k"), protocol.MaxKey-len(key))...)
		case 2:
			key = make([]byte, 4+w.rand.IntN(183)) // at most 250 bytes in base64
			for i := range key {
				key[i] = byte(w.rand.Uint32())
			}
		}
		w.keys = append(w.keys, key)
	}
	w.reconnect(server)
	t.Cleanup(func() { _ = w.conn.Close() })
	return w
}

func (w *workload) reconnect(server *raw) {
	w.t.Helper()
	if w.conn != nil {
		_ = w.conn.Close()
	}
	var err error
	if w.conn, err = net.Dial("tcp", server.address()); err != nil {
		w.t.Fatal(err)
	}
	w.r = bufio.NewReaderSize(w.conn, 64<<10)
}

func (w *workload) run(steps int) {
	for range steps {
		w.step()
	}
}

// encode returns a key and a flag with which each command accepts it.
func encode(key []byte) (text, flag string) {
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return base64.StdEncoding.EncodeToString(key), " b"
		}
	}
	return string(key), ""
}

// step changes a random key.
func (w *workload) step() {
	key, flag := encode(w.keys[w.rand.IntN(len(w.keys))])
	switch w.rand.IntN(12) {
	case 0:
		w.do("md " + key + flag)
	case 1:
		w.do("ma " + key + " N0 J97 D3" + flag)
	case 2:
		w.do("ma " + key + " MD D1" + flag)
	case 3:
		w.do("ms " + key + " 5 MA" + flag + "\r\nafter")
	case 4:
		w.do("ms " + key + " 6 MP" + flag + "\r\nbefore")
	case 5:
		w.do("mg " + key + " T" + w.ttl() + flag)
	case 6:
		w.do("md " + key + " I T1000" + flag)
	case 7:
		w.do("ms " + key + " 2" + flag + "\r\n99")
	default:
		request := fmt.Sprintf("ms %s %%d T%s%s\r\n", key, w.ttl(), flag)
		if w.rand.IntN(2) == 0 {
			request = fmt.Sprintf("ms %s %%d T%s F%d%s\r\n", key, w.ttl(), w.rand.Uint32(), flag)
		}
		size := w.rand.IntN(600)
		switch w.rand.IntN(30) {
		case 0:
			size = w.rand.IntN(w.largest - 2000)
		case 1, 2:
			size = w.rand.IntN(40_000)
		}
		value := make([]byte, size)
		first := byte(w.rand.Uint32())
		for i := range value {
			value[i] = first + byte(i*i>>7)
		}
		w.do(fmt.Sprintf(request, size) + string(value))
	}
}

func (w *workload) ttl() string {
	return []string{"0", "0", "1", "2", "1000", "100000", fmt.Sprint(time.Now().Unix() + 40*86400)}[w.rand.IntN(7)]
}

// do sends a request whose answer is one line.
func (w *workload) do(request string) {
	if _, err := w.conn.Write([]byte(request + "\r\n")); err != nil {
		w.t.Error(err)
	}
	if _, err := w.r.ReadString('\n'); err != nil {
		w.t.Error(err)
	}
}

func (w *workload) stats() protocol.Stats {
	w.t.Helper()
	if _, err := w.conn.Write([]byte("stats\r\n")); err != nil {
		w.t.Fatal(err)
	}
	stats, err := protocol.ReadStats(w.r)
	if err != nil {
		w.t.Fatal(err)
	}
	return stats
}

// answers asks memcached for all keys. It returns none that are stale.
func (w *workload) answers(server *raw) map[string]content {
	w.t.Helper()
	w.reconnect(server)
	items := map[string]content{}
	for _, key := range w.keys {
		text, flag := encode(key)
		if _, err := fmt.Fprintf(w.conn, "mg %s v f t c u%s\r\n", text, flag); err != nil {
			w.t.Fatal(err)
		}
		head, err := protocol.ReadHead(w.r)
		if err != nil {
			w.t.Fatal(err)
		}
		if head.Code != protocol.MetaValue {
			continue
		}
		value, err := protocol.ReadValue(w.r, nil, head.Size)
		if err != nil {
			w.t.Fatal(err)
		}
		if !head.Stale {
			items[string(key)] = content{string(value), head.Flags, head.CAS, max(head.TTL, 0)}
		}
	}
	return items
}

package facts

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// A scan finds exactly what memcached returns, while it runs and after it has saved its items.
func TestMemoryFileHasTheItemsThatMemcachedReturns(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Versions {
		for _, options := range pods.Layouts {
			t.Run(version+" "+options, func(t *testing.T) {
				t.Parallel()
				arguments := pods.LayoutArguments(version, options)
				server := pods.StartCache(t, version, arguments...)
				file := server.MemoryFile(arguments)
				w := pods.NewWorkload(t, server)
				w.Run(1500)
				// Below 1.6.25, nothing but memory.meta says which items of its second a flush_all removed.
				pods.NextSecond(time.Now().Unix() + 1)
				w.Do("flush_all")
				w.Run(1500)
				w.Do("flush_all 1000")
				pods.NextSecond(time.Now().Unix() + 3) // the short-lived items expire

				clock, err := memfile.ClockOfRunning(t.Context(), protocol.At(server.Address()))
				pods.Must(t, err)
				want := w.Answers(server)
				pods.WantInFile(t, "of the running memcached", file, clock, want)
				pods.Must(t, file.Verify(t.Context(), protocol.At(server.Address())))

				w.Reconnect(server)
				w.Run(200)
				w.Do("flush_all")
				w.Run(300)
				pods.NextSecond(time.Now().Unix() + 1) // without CAS, 1.6.18 removes all items of the second
				w.Run(300)
				server.Stop(syscall.SIGUSR1)
				pods.NextSecond(max(pods.StopSecond(t, server.Meta()), time.Now().Unix()+2))
				clock = pods.ClockOfMeta(t, server)
				saved := pods.Collect(t, file.Scan, clock)
				coldFirst := pods.Collect(t, file.ScanColdFirst, clock)
				again := pods.StartCacheIn(t, version, server.Dir, arguments...)
				want = w.Answers(again)
				pods.WantEqual(t, "after the save", saved, want)
				pods.WantEqual(t, "after the save, coldest first", coldFirst, want)
				t.Logf("%d items", len(want))
			})
		}
	}
}

// A page that moves to another slab class leaves chunks behind, and moves the chunks of large items.
func TestMemoryFileAfterPagesHaveMoved(t *testing.T) {
	pods.WithEach(t, pods.Versions, func(t *testing.T, version string) {
		arguments := pods.LayoutArguments(version, "-I 4m -o slab_chunk_max=16 -f 2")
		server := pods.StartCache(t, version, arguments...)
		file := server.MemoryFile(arguments)
		w := pods.NewWorkload(t, server)
		for range 20 {
			w.Run(200)
			for class := range 8 {
				w.Do(fmt.Sprintf("slabs reassign %d %d", class+1, (class+1)%8+1))
			}
		}
		pods.NextSecond(time.Now().Unix() + 3) // the short-lived items expire, and the last pages have moved
		var stats map[string]string
		if !pods.Eventually(func() bool {
			stats = server.Stats("stats")
			return stats["slab_reassign_running"] == "0"
		}) || stats["slabs_moved"] == "0" || stats["slab_reassign_chunk_rescues"] == "0" {
			t.Fatalf("%s pages have moved, %s chunks of large items", stats["slabs_moved"], stats["slab_reassign_chunk_rescues"])
		}
		t.Logf("%s pages, %s items, %s chunks", stats["slabs_moved"], stats["slab_reassign_rescues"], stats["slab_reassign_chunk_rescues"])
		clock, err := memfile.ClockOfRunning(t.Context(), protocol.At(server.Address()))
		pods.Must(t, err)
		pods.WantInFile(t, "after moves", file, clock, w.Answers(server))
	})
}

// Placeholders and invalidated items would be hits at another memcached.
func TestMemoryFileOmitsItemsThatAreNotValues(t *testing.T) {
	pods.WithEach(t, pods.Versions, func(t *testing.T, version string) {
		server := pods.StartCache(t, version)
		file := server.MemoryFile(nil)
		w := pods.NewWorkload(t, server)
		for _, request := range []string{
			"ms empty 0\r\n", "mg placeholder N100 c", "mg won N100 c", "ms won 1\r\nx", "ms stale 1\r\nx", "md stale I T100",
			"ms expiring 1 T1000\r\nx", "mg expiring R2000 c", "ms negative 1 T-1\r\nx",
		} {
			w.Do(request)
		}
		clock, err := memfile.ClockOfRunning(t.Context(), protocol.At(server.Address()))
		pods.Must(t, err)
		got := pods.Collect(t, file.Scan, clock)
		for key, want := range map[string]bool{"empty": true, "placeholder": false, "won": true, "stale": false, "expiring": true, "negative": false} {
			if _, found := got[key]; found != want {
				t.Errorf("%s is found: %v, want %v", key, found, want)
			}
		}
	})
}

// The clock in memory.meta stands still while memcached is stopped.
func TestClockOfAStoppedMemcached(t *testing.T) {
	pods.WithEach(t, pods.Versions, func(t *testing.T, version string) {
		server := pods.StartCache(t, version)
		file := server.MemoryFile(nil)
		w := pods.NewWorkload(t, server)
		w.Do("ms short 1 T3\r\nx")
		w.Do("ms long 1 T1000\r\nx")
		running, err := memfile.ClockOfRunning(t.Context(), protocol.At(server.Address()))
		pods.Must(t, err)
		server.Stop(syscall.SIGUSR1)
		if stopped := pods.ClockOfMeta(t, server); stopped.Now < running.Now || stopped.Now > running.Now+60 {
			t.Errorf("the clock is %d after it was %d", stopped.Now, running.Now)
		}
		pods.NextSecond(time.Now().Unix() + 4)
		got := pods.Collect(t, file.Scan, pods.ClockOfMeta(t, server))
		if _, ok := got["short"]; ok || len(got) != 1 {
			t.Errorf("got %v", got)
		}
	})
}

// What a scan sees of an item that changes is undefined, but it is bounded, and other items are there.
func TestMemoryFileIsReadWhileClientsWrite(t *testing.T) {
	pods.WithEach(t, pods.Versions, func(t *testing.T, version string) {
		arguments := pods.LayoutArguments(version, "-I 4m")
		server := pods.StartCache(t, version, arguments...)
		file := server.MemoryFile(arguments)
		const constant = 2000
		pods.Fill(t, server.Address(), constant)
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for i := range 3 {
			w := pods.NewWorkload(t, server)
			w.Rand = rand.New(rand.NewPCG(uint64(i), 0))
			clients.Go(func() {
				for ctx.Err() == nil {
					w.Step()
				}
			})
		}
		for i := range 30 {
			clock, err := memfile.ClockOfRunning(t.Context(), protocol.At(server.Address()))
			pods.Must(t, err)
			scan := file.Scan
			if i%2 == 1 {
				scan = file.ScanColdFirst
			}
			found := map[string]bool{}
			report, err := scan(clock, func(item *memfile.Item) error {
				if err := item.EachPart(func([]byte) error { return nil }); len(item.Key) == 0 || len(item.Key) > protocol.MaxKey || item.Size > 5<<20 || err != nil && !errors.Is(err, memfile.ErrTorn) {
					return fmt.Errorf("item %q of %d bytes: %w", item.Key, item.Size, err)
				}
				found[string(item.Key)] = true
				return nil
			})
			pods.Must(t, err)
			if len(found) < constant {
				t.Errorf("%d items: %+v", len(found), report)
			}
		}
		pods.Must(t, file.Verify(t.Context(), protocol.At(server.Address())))
		// Its thread ends later, and until then the settings say that keys are listed.
		pods.Talk(t, server.Address(), "lru_crawler disable\r\n")
		if !pods.Eventually(func() bool {
			stats, err := protocol.At(server.Address()).QueryStats(t.Context(), "stats settings")
			return err == nil && !stats[0].ListsKeys()
		}) {
			t.Error("the LRU crawler isn't disabled")
		}
		pods.Must(t, file.Verify(t.Context(), protocol.At(server.Address())))
		cancel()
		clients.Wait()
	})
}

func TestMemoryFileOfOtherArgumentsIsRejected(t *testing.T) {
	pods.WithEach(t, pods.Versions, func(t *testing.T, version string) {
		empty := pods.StartCache(t, version)
		for _, arguments := range [][]string{nil, {"-X"}, {"-o", "no_lru_crawler"}} {
			server, other := pods.StartCache(t, version, arguments...), pods.StartCache(t, version, arguments...)
			pods.Fill(t, server.Address(), 5000) // more than a sample
			pods.Talk(t, other.Address(), "set another 0 0 1\r\nx\r\n")
			pods.Must(t, server.MemoryFile(nil).Verify(t.Context(), protocol.At(server.Address())))
			reject := func(name string, file, server *pods.Cache, layout ...string) {
				if err := file.MemoryFile(layout).Verify(t.Context(), protocol.At(server.Address())); !errors.Is(err, memfile.ErrLayout) {
					t.Errorf("%s, %v: %v", name, arguments, err)
				}
			}
			reject("another growth factor", server, server, "-f", "1.26")
			reject("another smallest item, without items", empty, empty, "-n", "40")
			reject("another memcached", server, other)
			reject("the file of another, without items", empty, server)
			layout, err := memfile.LayoutOf([]string{"-m", "65"}, version)
			pods.Must(t, err)
			if _, err := memfile.Open(filepath.Join(server.Dir, "memory"), layout); !errors.Is(err, memfile.ErrLayout) {
				t.Errorf("more memory: %v", err)
			}
		}
	})
}

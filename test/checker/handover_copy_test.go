package checker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func receiveFrom(t *testing.T, source string, own *pods.Cache, arguments []string) (handover.Result, error) {
	return handover.Receive(t.Context(), handover.Target{
		Source: source, Key: handoverKey, Pod: "target", Shard: "cache-0", Memcached: protocol.At(own.Address()),
		Scan: scanRunning(own.MemoryFile(arguments), own.Address()), Log: slog.New(slog.NewTextHandler(own.Log, nil)),
	})
}

// Clients use all commands until the source stops. After that, the target answers with what the
// source has saved.
func TestHandedOverItemsAreThoseThatTheSourceSaved(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		// The other pod may have another version and more memory.
		other := pods.Versions[len(pods.Versions)-1-slices.Index(pods.Versions, version)]
		for _, options := range pods.Layouts[:2] {
			t.Run(version+" "+options, func(t *testing.T) {
				t.Parallel()
				arguments := pods.LayoutArguments(version, options)
				source := pods.StartCache(t, version, arguments...)
				targetArguments := append(pods.LayoutArguments(other, options), "-m", "120")
				target := pods.StartCache(t, other, targetArguments...)
				automove := setting(t, target, "slab_automove")
				w := pods.NewWorkload(t, source)
				w.Run(1500)

				ctx, quiet := context.WithCancel(t.Context())
				var clients sync.WaitGroup
				for seed := range 3 {
					client := pods.NewWorkload(t, source)
					client.Rand = rand.New(rand.NewPCG(uint64(seed), 1))
					clients.Go(func() {
						for ctx.Err() == nil {
							client.Step()
						}
					})
				}
				o := &fileOrigin{File: source.MemoryFile(arguments), Address: source.Address(), Dir: source.Dir}
				o.OnStop = func() {
					// Clients whose requests are lost at the stop are not what this tests.
					quiet()
					clients.Wait()
					w.Run(300)
					source.Stop(syscall.SIGUSR1)
				}
				result, err := receiveFrom(t, serveHandover(t, o, 300, slog.New(slog.NewTextHandler(source.Log, nil))), target, targetArguments)
				quiet()
				if err != nil {
					t.Fatal(err)
				}
				if result.Rejected != 0 || result.Passes < 1 {
					t.Errorf("%+v", result)
				}
				pods.NextSecond(time.Now().Unix() + 2) // items of 2 s expire
				// Not the answers of a new memcached, whose page mover would evict some.
				want, got := pods.Collect(t, source.MemoryFile(arguments).Scan, pods.ClockOfMeta(t, source)), w.Answers(target)
				withoutCAS(want)
				withoutCAS(got)
				withoutExpiring(want, got)
				pods.WantEqual(t, "after the handover", got, want)
				if now := setting(t, target, "slab_automove"); now != automove {
					t.Errorf("the target's slab_automove is %s, want %s", now, automove)
				}
				t.Logf("%d items, %+v", len(want), result)
			})
		}
	}
}

func withoutCAS(items map[string]pods.Content) {
	for key, c := range items {
		c.CAS = 0
		items[key] = c
	}
}

// withoutExpiring removes the items that expire while the test reads them.
func withoutExpiring(one, other map[string]pods.Content) {
	for _, items := range []map[string]pods.Content{one, other} {
		for key, c := range items {
			if 0 < c.TTL && c.TTL <= 3 {
				delete(one, key)
				delete(other, key)
			}
		}
	}
}

func setting(t *testing.T, r *pods.Cache, name string) string {
	t.Helper()
	for line := range strings.Lines(r.Talk("stats settings\r\n")) {
		if value, ok := strings.CutPrefix(line, "STAT "+name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("there is no setting %s", name)
	return ""
}

// A target with less memory keeps the items that were used last.
func TestSmallerTargetKeepsTheHottestItems(t *testing.T) {
	t.Parallel()
	arguments := []string{"-m", "128"}
	source, target := pods.StartCache(t, pods.Newest, arguments...), pods.StartCache(t, pods.Newest, "-m", "80")
	const n, hot = 75_000, 7000
	value := strings.Repeat("x", 1000)
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "ms key-%d 1000 q\r\n%s\r\n", i, value)
	}
	source.Talk(text.String())
	o := &fileOrigin{File: source.MemoryFile(arguments), Address: source.Address(), Dir: source.Dir, OnStop: func() { source.Stop(syscall.SIGUSR1) }}
	pods.NextSecond(time.Now().Unix() + 1)
	text.Reset()
	for i := range hot {
		fmt.Fprintf(&text, "ms key-%d 1000 q\r\n%s\r\n", i*10, value)
	}
	source.Talk(text.String())
	result, err := receiveFrom(t, serveHandover(t, o, n, slog.New(slog.DiscardHandler)), target, []string{"-m", "80"})
	if err != nil {
		t.Fatal(err)
	}
	if result.ItemsBefore != n || result.Items < hot || result.Items > n*2/3 {
		t.Errorf("%+v", result)
	}
	text.Reset()
	for i := range hot {
		fmt.Fprintf(&text, "mg key-%d q s\r\n", i*10)
	}
	if kept := strings.Count(target.Talk(text.String()), "HD s1000\r\n"); kept < hot*99/100 {
		t.Errorf("%d of %d hot items are there", kept, hot)
	}
}

// What a target's memcached doesn't accept is counted, and no earlier content remains.
func TestItemsThatTheTargetRejectsAreCounted(t *testing.T) {
	t.Parallel()
	arguments := []string{"-I", "4m"}
	source, target := pods.StartCache(t, pods.Newest, arguments...), pods.StartCache(t, pods.Newest)
	source.Talk("ms small 2\r\nab\r\n")
	source.Talk("ms grows 2\r\nab\r\n")
	large := fmt.Sprintf("ms %%s %d\r\n%s\r\n", 2<<20, strings.Repeat("x", 2<<20))
	source.Talk(fmt.Sprintf(large, "large"))
	o := &fileOrigin{File: source.MemoryFile(arguments), Address: source.Address(), Dir: source.Dir}
	o.OnStop = func() {
		source.Talk(fmt.Sprintf(large, "grows"))
		source.Stop(syscall.SIGUSR1)
	}
	result, err := receiveFrom(t, serveHandover(t, o, 3, slog.New(slog.DiscardHandler)), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.Items != 1 || result.ItemsBefore != 3 || result.Rejected != 2 {
		t.Errorf("%+v", result)
	}
	if answer := target.Talk("mg small v\r\nmg grows v\r\nmg large v\r\n"); answer != "VA 2\r\nab\r\nEN\r\nEN\r\n" {
		t.Errorf("%q", answer)
	}
}

func TestTargetWithItemsReceivesNone(t *testing.T) {
	t.Parallel()
	source, target := pods.StartCache(t, pods.Newest), pods.StartCache(t, pods.Newest)
	target.Talk("ms own 1\r\nx\r\n")
	o := &fileOrigin{File: source.MemoryFile(nil), Address: source.Address(), Dir: source.Dir, OnStop: func() { t.Error("the source stops") }}
	_, err := receiveFrom(t, serveHandover(t, o, 0, slog.New(slog.DiscardHandler)), target, nil)
	if err == nil || errors.Is(err, handover.ErrImpossible) || target.Items() != 1 {
		t.Errorf("%v, %d items", err, target.Items())
	}
}

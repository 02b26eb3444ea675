package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// cutter passes connections on, and cuts each of the first few after so many bytes
// from the server, or from the client.
type cutter struct {
	address  string
	cuts     atomic.Int32
	answered int64 // bytes from the server; 0 is no bound
	sent     int64
	// before is called with the number of each connection before it is passed on.
	before func(n int)
}

// startCutter cuts so many connections.
func startCutter(t *testing.T, to *pods.Cache, cuts int32, answered, sent int64) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{address: listener.Addr().String(), answered: answered, sent: sent}
	c.cuts.Store(cuts)
	c.serve(t, listener, to)
	return c
}

func (c *cutter) serve(t *testing.T, listener net.Listener, to *pods.Cache) {
	t.Helper()
	var group sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	group.Go(func() {
		for n := 1; ; n++ {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			if c.before != nil {
				c.before(n)
			}
			group.Go(func() { c.pass(client, to.Address()) })
		}
	})
}

func (c *cutter) pass(client net.Conn, to string) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	var once sync.Once
	cut := func(counts bool) {
		once.Do(func() {
			if counts {
				c.cuts.Add(-1)
			}
			_ = client.Close()
			_ = server.Close()
		})
	}
	bound := func(limit int64) int64 {
		if limit == 0 || c.cuts.Load() <= 0 {
			return 1 << 60
		}
		return limit
	}
	var both sync.WaitGroup
	pass := func(to, from net.Conn, limit int64) {
		n, _ := io.CopyN(to, from, bound(limit))
		cut(limit > 0 && n == limit)
	}
	both.Go(func() { pass(client, server, c.answered) })
	both.Go(func() { pass(server, client, c.sent) })
	both.Wait()
}

// A connection that ends anywhere, amid a line or a value, costs no item and makes
// no half one.
func TestSnapshotOverDroppedConnections(t *testing.T) {
	t.Parallel()
	for _, cut := range []int64{100_000, 1_000_003, 3_333_333} {
		t.Run(fmt.Sprintf("every %d bytes", cut), func(t *testing.T) {
			t.Parallel()
			args := []string{"-m", "256", "-I", "16m"}
			source, target := pods.StartCache(t, pods.Newest, args...), pods.StartCache(t, pods.Newest, args...)
			items := someItems(1, 10_000)
			// Some are in several chunks, and none fits between two cuts of the shorter kind.
			items["large"] = entry{strings.Repeat("0123456789abcdef", 600_000), 9, -1}
			items["larger"] = entry{strings.Repeat("0123456789abcdef", 900_000), 9, 5000}
			putItems(source, items)

			const cuts = 8
			in, out := startCutter(t, source, cuts, cut, 0), startCutter(t, target, cuts, 0, cut)
			bucket := memblob.OpenBucket(nil)
			task := pods.SaveTask(source)
			task.Servers[0] = in.address
			outcome := save(t, bucket, task)
			if outcome.Items != int64(len(items)) {
				t.Errorf("saved %+v of %d items", outcome, len(items))
			}
			if left := in.cuts.Load(); left > cuts-2 {
				t.Errorf("only %d connections were cut", cuts-left)
			}
			task = pods.LoadTask(target)
			task.Servers[0] = out.address
			outcome = load(t, bucket, task)
			if outcome.Restored != int64(len(items)) {
				t.Errorf("restored %+v of %d items", outcome, len(items))
			}
			if left := out.cuts.Load(); left > cuts-2 {
				t.Errorf("only %d connections were cut", cuts-left)
			}
			wantSameItems(t, target, source, names(items), 0)
			if n := target.Items(); n != int64(len(items)) {
				t.Errorf("%d items, not %d", n, len(items))
			}
		})
	}
}

// midway runs a save or a load and does something once a share of it is done.
func midway(t *testing.T, run func(context.Context, copy.Options) (snapshotwire.Outcome, error), then func()) (snapshotwire.Outcome, error) {
	t.Helper()
	options := testOptions(t)
	type end struct {
		outcome snapshotwire.Outcome
		err     error
	}
	stopped := make(chan end, 1)
	go func() {
		outcome, err := run(t.Context(), options)
		stopped <- end{outcome, err}
	}()
	progressed := false
	pods.Eventually(func() bool {
		p := options.Progress.Report("")
		progressed = p.Items > p.TotalItems/4 && p.TotalItems > 0
		return progressed || len(stopped) > 0
	})
	if !progressed {
		t.Fatalf("no progress: %+v", options.Progress.Report(""))
	}
	then()
	e := <-stopped
	return e.outcome, e.err
}

// A shard that is restarted in place, as an upgrade does, is waited for.
func TestSnapshotOfShardThatRestartsWarm(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			source, target := pods.StartWarmCache(t, version), pods.StartWarmCache(t, version)
			restart := func(c *pods.Cache) { c.StopWarm(); c.Start() }
			items := someItems(2, 20_000)
			putItems(source, items)
			bucket := memblob.OpenBucket(nil)
			task := pods.SaveTask(source)
			task.ItemsPerSecond = 10_000
			outcome, err := midway(t, func(ctx context.Context, options copy.Options) (snapshotwire.Outcome, error) {
				return copy.Save(ctx, bucket, task, options)
			}, func() { restart(source) })
			if err != nil || outcome.Items != int64(len(items)) {
				t.Fatalf("saved %+v of %d items, %v", outcome, len(items), err)
			}
			task = pods.LoadTask(target)
			task.ItemsPerSecond = 10_000
			outcome, err = midway(t, func(ctx context.Context, options copy.Options) (snapshotwire.Outcome, error) {
				return copy.Load(ctx, bucket, task, options)
			}, func() { restart(target) })
			if err != nil || outcome.Restored != int64(len(items)) {
				t.Fatalf("restored %+v of %d items, %v", outcome, len(items), err)
			}
			wantSameItems(t, target, source, names(items), startStall)
		})
	}
}

// A snapshot of what little is left after a shard lost its items would be the newest. flush_all leaves the connections
// open, so only the answers show the loss.
func TestSnapshotOfShardThatLosesItsItems(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*pods.Cache){
		"restart":   func(c *pods.Cache) { c.Kill(); c.Start() },
		"flush_all": func(c *pods.Cache) { c.Talk("flush_all\r\n") },
	} {
		for _, version := range pods.Tested {
			t.Run(name+"/"+version, func(t *testing.T) {
				t.Parallel()
				source := pods.StartCache(t, version)
				putItems(source, someItems(3, 20_000))
				bucket := memblob.OpenBucket(nil)
				task := pods.SaveTask(source)
				task.ItemsPerSecond = 10_000
				_, err := midway(t, func(ctx context.Context, options copy.Options) (snapshotwire.Outcome, error) {
					return copy.Save(ctx, bucket, task, options)
				}, func() { lose(source) })
				wantFailure(t, err, snapshotwire.ReasonShardLostItems, true)
				if manifest, err := bucket.Exists(t.Context(), task.Path+"/manifest.json"); err != nil || manifest {
					t.Errorf("there is a manifest: %t, %v", manifest, err)
				}
			})
		}
	}
}

// Between the list of keys and the first value no connection reports a restart.
func TestSnapshotOfShardThatRestartsEmptyAfterKeysWereListed(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest)
	putItems(source, someItems(3, 1000))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var restarted atomic.Int32
	c := &cutter{address: listener.Addr().String(), before: func(n int) {
		if n == 2 {
			source.Kill()
			source.Start()
			restarted.Add(1)
		}
	}}
	c.serve(t, listener, source)
	task := pods.SaveTask(source)
	task.Servers[0] = c.address
	_, err = copy.Save(t.Context(), memblob.OpenBucket(nil), task, testOptions(t))
	if restarted.Load() == 0 {
		t.Fatal("it was not restarted")
	}
	wantFailure(t, err, snapshotwire.ReasonShardLostItems, true)
}

// A snapshot omits items that were deleted, or that expired, before they were read. When
// that is most of the items that should have lived, there is none.
func TestSnapshotOfShardWhoseItemsAreRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deleted func(i int) bool
		ttl     int
		reason  string
	}{
		"a third is deleted":      {func(i int) bool { return i%3 == 0 }, 0, ""},
		"five sixths are deleted": {func(i int) bool { return i%6 != 0 }, 0, snapshotwire.ReasonShardLostItems},
		"five sixths expire":      {func(int) bool { return false }, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := pods.StartCache(t, pods.Newest)
			const n = 20_000
			var put, remove strings.Builder
			for i := range n {
				ttl := 0
				if c.ttl > 0 && i%6 != 0 {
					ttl = c.ttl
				}
				fmt.Fprintf(&put, "ms key%d 1 T%d\r\nv\r\n", i, ttl)
				if c.deleted(i) {
					fmt.Fprintf(&remove, "md key%d\r\n", i)
				}
			}
			source.Talk(put.String())
			task := pods.SaveTask(source)
			task.ItemsPerSecond = 4_000
			outcome, err := midway(t, func(ctx context.Context, options copy.Options) (snapshotwire.Outcome, error) {
				return copy.Save(ctx, memblob.OpenBucket(nil), task, options)
			}, func() { source.Talk(remove.String()) })
			if c.reason != "" {
				wantFailure(t, err, c.reason, true)
				pods.WantContains(t, "the error", err.Error(), "rateLimit")
				return
			}
			if err != nil || outcome.Items >= n {
				t.Errorf("%+v, %v", outcome, err)
			}
		})
	}
}

// A memcached without memory for answers says SERVER_ERROR to every get.
func TestSnapshotOfShardThatCannotAnswer(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest)
	items := someItems(3, 1000)
	putItems(source, items)
	var refuse atomic.Int32
	address := startRefuser(t, source, " v f t u", "SERVER_ERROR out of memory writing get response\r\n", &refuse)
	task := pods.SaveTask(source)
	task.Servers[0] = address
	refuse.Store(3) // passes after a few requests
	if outcome, err := copy.Save(t.Context(), memblob.OpenBucket(nil), task, testOptions(t)); err != nil || outcome.Items != int64(len(items)) {
		t.Errorf("saved %+v of %d items, %v", outcome, len(items), err)
	}
	refuse.Store(1 << 30)
	options := testOptions(t)
	options.ShardTimeout = time.Second
	_, err := copy.Save(t.Context(), memblob.OpenBucket(nil), task, options)
	wantFailure(t, err, snapshotwire.ReasonShardUnreachable, false)
	pods.WantContains(t, "the error", err.Error(), "out of memory")
}

// startRefuser passes connections on to a cache, and itself answers a number of requests that contain some text.
func startRefuser(t *testing.T, to *pods.Cache, request, answer string, refuse *atomic.Int32) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer client.Close()
				server, err := net.Dial("tcp", to.Address())
				if err != nil {
					return
				}
				defer server.Close()
				go func() { _, _ = io.Copy(client, server) }()
				lines := bufio.NewReader(client)
				for {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					if strings.Contains(line, request) && refuse.Add(-1) >= 0 {
						_, err = io.WriteString(client, answer)
					} else {
						_, err = io.WriteString(server, line)
					}
					if err != nil {
						return
					}
				}
			})
		}
	})
	return listener.Addr().String()
}

// A shard that is replaced while others are still restored has lost its items at the end.
func TestRestoreIntoShardThatIsReplacedAfterItWasLoaded(t *testing.T) {
	t.Parallel()
	sources := []*pods.Cache{pods.StartCache(t, pods.Newest), pods.StartCache(t, pods.Newest)}
	first := someItems(5, 1000)
	putItems(sources[0], first)
	putItems(sources[1], someItems(6, 20_000))
	bucket := memblob.OpenBucket(nil)
	save(t, bucket, pods.SaveTask(sources...))
	targets := []*pods.Cache{pods.StartCache(t, pods.Newest), pods.StartCache(t, pods.Newest)}
	task := pods.LoadTask(targets...)
	task.ItemsPerSecond = 5_000
	_, err := midway(t, func(ctx context.Context, options copy.Options) (snapshotwire.Outcome, error) {
		return copy.Load(ctx, bucket, task, options)
	}, func() { targets[0].Kill(); targets[0].Start() })
	wantFailure(t, err, snapshotwire.ReasonShardLostItems, false)
	outcome, err := copy.Load(t.Context(), bucket, pods.LoadTask(targets...), testOptions(t)) // as the Job's next pod does
	if err != nil || targets[0].Items() != int64(len(first)) {
		t.Errorf("%+v, %v: %d items", outcome, err, targets[0].Items())
	}
}

// A shard that loses what it was given gets all of it again.
func TestRestoreIntoShardThatRestartsEmpty(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"ordinal", "ring"} {
		t.Run("by "+by, func(t *testing.T) {
			t.Parallel()
			source, targets := pods.StartCache(t, pods.Newest), []*pods.Cache{pods.StartCache(t, pods.Newest)}
			items := someItems(4, 20_000)
			putItems(source, items)
			bucket := memblob.OpenBucket(nil)
			save(t, bucket, pods.SaveTask(source))
			if by == "ring" {
				targets = append(targets, pods.StartCache(t, pods.Newest))
			}
			task := pods.LoadTask(targets...)
			task.Load.Ring, task.Load.RingServers = ring.Modulo, task.Servers
			task.ItemsPerSecond = 5_000
			outcome, err := midway(t, func(ctx context.Context, options copy.Options) (snapshotwire.Outcome, error) {
				return copy.Load(ctx, bucket, task, options)
			}, func() { targets[0].Kill(); targets[0].Start() })
			if err != nil || outcome.Restored != int64(len(items)) || outcome.Items != int64(len(items)) {
				t.Fatalf("restored %+v of %d items, %v", outcome, len(items), err)
			}
			var n int64
			for _, target := range targets {
				n += target.Items()
			}
			if n != int64(len(items)) {
				t.Errorf("%d items, not %d", n, len(items))
			}
		})
	}
}

func TestUnreachableShard(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest)
	putItems(source, someItems(5, 10))
	bucket := memblob.OpenBucket(nil)
	save(t, bucket, pods.SaveTask(source))
	source.Kill()
	options := testOptions(t)
	options.ShardTimeout = 500 * time.Millisecond
	task := pods.SaveTask(source)
	task.Path = "another"
	_, err := copy.Save(t.Context(), bucket, task, options)
	wantFailure(t, err, snapshotwire.ReasonShardUnreachable, false)
	_, err = copy.Load(t.Context(), bucket, pods.LoadTask(source), options)
	wantFailure(t, err, snapshotwire.ReasonShardUnreachable, false)
}

func TestShardThatRequiresPassword(t *testing.T) {
	t.Parallel()
	file := pods.SharedDir(t) + "/users"
	pods.WriteFile(t, file, "user:password\n")
	source := pods.StartCache(t, pods.Newest, "-Y", file)
	options := testOptions(t)
	options.ShardTimeout = time.Second // it can be about to be changed
	_, err := copy.Save(t.Context(), memblob.OpenBucket(nil), pods.SaveTask(source), options)
	pods.WantContains(t, "the error", wantFailure(t, err, snapshotwire.ReasonShardUnreachable, false), "unauthenticated")
}

func TestShardWithoutKeyDump(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		for _, args := range [][]string{{"-X"}, {"-o", "no_lru_crawler"}} {
			t.Run(version+" with "+strings.Join(args, " "), func(t *testing.T) {
				t.Parallel()
				source := pods.StartCache(t, version, args...)
				_, err := copy.Save(t.Context(), memblob.OpenBucket(nil), pods.SaveTask(source), testOptions(t))
				wantFailure(t, err, snapshotwire.ReasonKeyDumpDisabled, true)
			})
		}
	}
}

// Another dump is waited for: test/facts has the answer of a memcached with one.
func TestShardBusyWithAnotherKeyDump(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest)
	items := someItems(1, 1000)
	putItems(source, items)
	var busy atomic.Int32
	busy.Store(5)
	task := pods.SaveTask(source)
	task.Servers[0] = startRefuser(t, source, "lru_crawler metadump", "BUSY currently processing crawler request\r\n", &busy)
	if outcome, err := copy.Save(t.Context(), memblob.OpenBucket(nil), task, testOptions(t)); err != nil || outcome.Items != int64(len(items)) || busy.Load() >= 0 {
		t.Errorf("%+v, %v, and %d dumps were refused", outcome, err, 5-busy.Load())
	}
}

// An invalidated item is not saved, and its next reader is requested to renew it as if
// no client had read it.
func TestStaleItems(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			source := pods.StartCache(t, version)
			items := someItems(6, 1000)
			putItems(source, items)
			source.Talk("ms stale 3 T300\r\nold\r\nmd stale I T100\r\nms b2xk 4 b T300\r\nolds\r\nmd b2xk I b\r\n" +
				"ms renewing 1\r\nx\r\nmd renewing I\r\nmg renewing v\r\n")
			outcome := save(t, memblob.OpenBucket(nil), pods.SaveTask(source))
			if outcome.Items != int64(len(items)) {
				t.Errorf("%+v with %d items that are not stale", outcome, len(items))
			}
			pods.WantContains(t, "the message", outcome.Message, "3 are stale")
			for _, request := range []string{"mg stale v\r\n", "mg b2xk b v\r\n"} {
				if answer := source.Talk(request); !strings.Contains(answer, " X") || !strings.Contains(answer, " W") {
					t.Errorf("after the save, the answer to %q is %q", request, answer)
				}
			}
			// Another client renews this one already.
			if answer := source.Talk("mg renewing v\r\n"); !strings.Contains(answer, " Z") {
				t.Errorf("the answer about an item that is renewed is %q", answer)
			}
		})
	}
}

// The order of the LRU, by which memcached evicts, is not that of a save.
func TestSaveDoesNotCountAsAccess(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest)
	putItems(source, map[string]entry{"a": {"1", 0, -1}})
	save(t, memblob.OpenBucket(nil), pods.SaveTask(source))
	if answer := source.Talk("mg a h u\r\n"); answer != "HD h0\r\n" {
		t.Errorf("after a save, %q", answer)
	}
}

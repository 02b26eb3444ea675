package process

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// cache is a memcached that can be restarted under its address.
type cache struct {
	t       testing.TB
	version string
	port    int
	args    []string
	command *exec.Cmd
	exited  chan struct{}
}

// startCache starts a memcached of its own port and waits until it answers.
func startCache(t testing.TB, version string, args ...string) *cache {
	t.Helper()
	c := &cache{t: t, version: version, port: freePort(t), args: args}
	c.start()
	t.Cleanup(c.kill)
	return c
}

// startWarmCache is startCache of one that keeps its items over stopWarm.
func startWarmCache(t *testing.T, version string, args ...string) *cache {
	t.Helper()
	return startCache(t, version, append(args, "-e", filepath.Join(sharedDir(t), "memory"))...)
}

func (c *cache) address() string { return fmt.Sprintf("127.0.0.1:%d", c.port) }

func (c *cache) start() {
	c.t.Helper()
	c.command = exec.Command(memcachedPath(c.version), append([]string{"-u", "root", "-p", strconv.Itoa(c.port), "-U", "0"}, c.args...)...)
	if err := c.command.Start(); err != nil {
		c.t.Fatal(err)
	}
	exited := make(chan struct{})
	command := c.command
	go func() {
		_ = command.Wait()
		close(exited)
	}()
	c.exited = exited
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if conn, err := net.Dial("tcp", c.address()); err == nil {
			_ = conn.Close()
			return
		}
	}
	c.t.Fatal("memcached does not answer")
}

// kill stops memcached without saving anything.
func (c *cache) kill() {
	_ = c.command.Process.Kill()
	<-c.exited
}

// stopWarm stops memcached so that the next start has its items.
func (c *cache) stopWarm() {
	c.t.Helper()
	if err := c.command.Process.Signal(syscall.SIGUSR1); err != nil {
		c.t.Fatal(err)
	}
	stopped := time.Now()
	for deadline := stopped.Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if conn, err := net.Dial("tcp", c.address()); err == nil {
			_ = conn.Close() // it looks at signals once a second, or when a client comes
		}
		select {
		case <-c.exited:
			nextSecond(time.Now().Unix())
			return
		default:
		}
	}
	c.t.Fatal("memcached does not stop")
}

// talk sends text and returns the answers.
func (c *cache) talk(text string) string {
	c.t.Helper()
	return talk(c.t, c.address(), text)
}

// talk sends text to a server and returns the answers up to that of a final mn.
func talk(t testing.TB, address, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, text+"mn\r\n") }()
	var out strings.Builder
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", out.String(), err)
		}
		if line == "MN\r\n" {
			return out.String()
		}
		out.WriteString(line)
	}
}

// entry is an item as a client sees it.
type entry struct {
	value string
	flags uint64
	// ttl in seconds; -1 is forever.
	ttl int64
}

// put writes items.
func (c *cache) put(items map[string]entry) {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.address())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	names := slices.Sorted(maps.Keys(items))
	go func() {
		w := bufio.NewWriterSize(conn, 1<<20)
		for _, key := range names {
			item := items[key]
			exptime := max(item.ttl, 0)
			if exptime > 30*24*60*60 {
				exptime += time.Now().Unix()
			}
			text, ok := protocol.AppendMetaSet(nil, []byte(key), len(item.value), item.flags, exptime, false)
			if !ok {
				panic("a key that cannot be written: " + key)
			}
			_, _ = w.Write(text)
			_, _ = w.WriteString(item.value + "\r\n")
		}
		_ = w.Flush()
	}()
	r := bufio.NewReader(conn)
	for _, key := range names {
		if head, err := protocol.ReadHead(r); err != nil || head.Code != protocol.MetaHit {
			c.t.Fatalf("writing %q: %s, %v", key, head.Code, err)
		}
	}
}

// get reads items, those that are there.
func (c *cache) get(names []string) map[string]entry {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.address())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		w := bufio.NewWriterSize(conn, 1<<20)
		for _, key := range names {
			text, _ := protocol.AppendMetaGet(nil, []byte(key), " v f t u")
			_, _ = w.Write(text)
		}
		_ = w.Flush()
	}()
	found := map[string]entry{}
	r := bufio.NewReader(conn)
	for _, key := range names {
		head, err := protocol.ReadHead(r)
		if err != nil {
			c.t.Fatalf("reading %q: %v", key, err)
		}
		if head.Code != protocol.MetaValue {
			continue
		}
		value, err := protocol.ReadValue(r, nil, head.Size)
		if err != nil {
			c.t.Fatalf("reading %q: %v", key, err)
		}
		found[key] = entry{value: string(value), flags: head.Flags, ttl: head.TTL}
	}
	return found
}

// wantItems compares each item, and what it has left to live to two seconds.
func wantItems(t *testing.T, got, want map[string]entry) {
	t.Helper()
	wantItemsWithin(t, 2*time.Second, got, want)
}

// wantSameItems compares the items of two caches. Each second that passes between the two reads
// is one that the items of the second cache have less to live, and each warm restart rounds its
// clock to a second.
func wantSameItems(t *testing.T, got, want *cache, names []string, restarts int) {
	t.Helper()
	began := time.Now()
	have := got.get(names)
	expected := want.get(names)
	wantItemsWithin(t, 2*time.Second+time.Since(began)+time.Duration(restarts)*time.Second, have, expected)
}

func wantItemsWithin(t *testing.T, tolerance time.Duration, got, want map[string]entry) {
	t.Helper()
	seconds := int64(tolerance / time.Second)
	wrong := 0
	for key, item := range want {
		have, ok := got[key]
		switch {
		case !ok:
			t.Errorf("%.40q is not there", key)
		case have.value != item.value:
			t.Errorf("%.40q has a value of %d bytes, %.40q…, instead of %d bytes, %.40q…", key, len(have.value), have.value, len(item.value), item.value)
		case have.flags != item.flags:
			t.Errorf("%.40q has the flags %d, not %d", key, have.flags, item.flags)
		case (item.ttl < 0) != (have.ttl < 0) || have.ttl < item.ttl-seconds || have.ttl > item.ttl+seconds:
			t.Errorf("%.40q has %d s to live, not %d", key, have.ttl, item.ttl)
		default:
			continue
		}
		if wrong++; wrong == 10 {
			t.Fatal("and so on")
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("%.40q is there", key)
		}
	}
}

// someItems are items of every kind.
func someItems(seed uint64, n int) map[string]entry {
	random := rand.New(rand.NewPCG(seed, 1))
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return string(b)
	}
	ttls := []int64{-1, 1000, 86400, 29 * 86400, 31 * 86400, 300 * 86400}
	items := map[string]entry{
		"empty":                     {"", 0, -1},
		"line-ends":                 {"\r\nEND\r\nVA 1\r\n", 5, 500},
		strings.Repeat("k", 250):    {"a long key", 0, 900},
		"with spaces \t in it":      {"binary", 7, -1},
		"\x00\x01\r\n\xff":          {"binary", 1<<32 - 1, 700},
		"\x01control":               {"no space in it", 2, -1},
		strings.Repeat("\x00", 186): {"the longest binary key", 0, 600},
		"schlüssel":                 {"ü", 0, -1},
		"100%25":                    {"a per cent sign", 0, -1},
		"half-a-megabyte":           {noise(500 << 10), 3, 2000},
		"compressible":              {strings.Repeat("abc", 300<<10), 3, -1},
	}
	for i := range n {
		items[fmt.Sprintf("key-%d-%d", seed, i)] = entry{noise(random.IntN(1000)), uint64(random.Uint32N(3)), ttls[random.IntN(len(ttls))]}
	}
	return items
}

// names of all items, of several caches too.
func names(items ...map[string]entry) []string {
	var all []string
	for _, m := range items {
		all = append(all, slices.Collect(maps.Keys(m))...)
	}
	return all
}

func addresses(caches ...*cache) []string {
	var list []string
	for _, c := range caches {
		list = append(list, c.address())
	}
	return list
}

func saveTask(caches ...*cache) snapshotwire.Task {
	return snapshotwire.Task{ID: "backup-1", Path: "ns/cache/nightly-1", Servers: addresses(caches...),
		Memcached: snapshotwire.Memcached{Namespace: "ns", Name: "cache", UID: "7", Version: caches[0].version}}
}

func loadTask(caches ...*cache) snapshotwire.Task {
	task := saveTask(caches...)
	task.ID, task.Load = "restore-1", &snapshotwire.Load{}
	return task
}

func testOptions(t *testing.T) copy.Options {
	t.Helper()
	return copy.Options{SpoolDir: t.TempDir(), Progress: &copy.Progress{}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), ShardTimeout: 20 * time.Second}
}

func save(t *testing.T, bucket *blob.Bucket, task snapshotwire.Task) snapshotwire.Outcome {
	t.Helper()
	outcome, err := copy.Save(t.Context(), bucket, task, testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func load(t *testing.T, bucket *blob.Bucket, task snapshotwire.Task) snapshotwire.Outcome {
	t.Helper()
	outcome, err := copy.Load(t.Context(), bucket, task, testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// wantFailure checks the reason of a failure and returns its text.
func wantFailure(t *testing.T, err error, reason string, final bool) string {
	t.Helper()
	f := snapshotwire.AsFailure(err)
	if f == nil || f.Reason != reason || f.Final != final {
		t.Fatalf("got %+v, %v; want the reason %s, final %t", f, err, reason, final)
	}
	return f.Error()
}

// Every item comes back as it was, from each version into each.
func TestSnapshotRestoresEveryItem(t *testing.T) {
	t.Parallel()
	for _, from := range versions {
		t.Run("from "+from, func(t *testing.T) {
			t.Parallel()
			bucket := memblob.OpenBucket(nil)
			sources := []*cache{startCache(t, from), startCache(t, from), startCache(t, from)}
			var items []map[string]entry
			total := 0
			for i, source := range sources {
				items = append(items, someItems(uint64(i), 20_000))
				source.put(items[i])
				total += len(items[i])
			}
			outcome := save(t, bucket, saveTask(sources...))
			if outcome.Reason != snapshotwire.ReasonSucceeded || outcome.Items != int64(total) || outcome.TotalItems != int64(total) ||
				outcome.Snapshot == nil || outcome.Snapshot.Items != int64(total) || outcome.Snapshot.Shards != 3 {
				t.Errorf("outcome %+v of %d items", outcome, total)
			}
			for _, into := range versions {
				targets := []*cache{startCache(t, into), startCache(t, into), startCache(t, into)}
				outcome := load(t, bucket, loadTask(targets...))
				if outcome.Reason != snapshotwire.ReasonSucceeded || outcome.Restored != int64(total) || outcome.Items != int64(total) {
					t.Errorf("into %s: outcome %+v of %d items", into, outcome, total)
				}
				for i, target := range targets {
					// What the source has now is what the target should have.
					wantSameItems(t, target, sources[i], names(items[i]), 0)
					if n := sources[i].items(); n != int64(len(items[i])) {
						t.Errorf("the source has %d items of %d", n, len(items[i]))
					}
					if n := target.items(); n != int64(len(items[i])) {
						t.Errorf("%d items in shard %d, not %d", n, i, len(items[i]))
					}
					target.kill()
				}
			}
		})
	}
}

// items returns the number of all items.
func (c *cache) items() int64 { return itemsOf(c.t, c.address()) }

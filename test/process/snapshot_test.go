package process

import (
	"bufio"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// entry is an item as a client sees it.
type entry struct {
	value string
	flags uint64
	// expires in so many seconds as it is written, and at a Unix time of this machine as it is read; -1 is never.
	expires int64
}

// putItems writes items.
func putItems(c *pods.Cache, items map[string]entry) {
	c.T.Helper()
	conn, err := net.Dial("tcp", c.Address())
	if err != nil {
		c.T.Fatal(err)
	}
	defer conn.Close()
	names := slices.Sorted(maps.Keys(items))
	go func() {
		w := bufio.NewWriterSize(conn, 1<<20)
		for _, key := range names {
			item := items[key]
			exptime := max(item.expires, 0)
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
			c.T.Fatalf("writing %q: %s, %v", key, head.Code, err)
		}
	}
}

// getItems reads items, those that are there, and by memcached's clock when they expire. A time to live would depend on when it
// was read.
func getItems(c *pods.Cache, names []string) map[string]entry {
	c.T.Helper()
	server, expiries := protocol.At(c.Address()), map[string]int64{}
	var clock protocol.Clock
	for range 5 { // any of them can only be late
		general, err := server.QueryStats(c.T.Context(), "stats")
		if err != nil {
			c.T.Fatal(err)
		}
		reading, err := protocol.ClockOf(general[0], time.Now())
		if err != nil {
			c.T.Fatal(err)
		}
		clock = reading.Best(clock)
	}
	err := server.Dump(c.T.Context(), pods.Patience, func(item protocol.Listed) error {
		expiries[string(item.Key)] = -1
		if item.Expires != 0 {
			expiries[string(item.Key)] = clock.AtUnix(item.Expires).Unix()
		}
		return nil
	})
	if err != nil {
		c.T.Fatal(err)
	}
	conn, err := net.Dial("tcp", c.Address())
	if err != nil {
		c.T.Fatal(err)
	}
	defer conn.Close()
	go func() {
		w := bufio.NewWriterSize(conn, 1<<20)
		for _, key := range names {
			text, _ := protocol.AppendMetaGet(nil, []byte(key), " v f u")
			_, _ = w.Write(text)
		}
		_ = w.Flush()
	}()
	found := map[string]entry{}
	r := bufio.NewReader(conn)
	for _, key := range names {
		head, err := protocol.ReadHead(r)
		if err != nil {
			c.T.Fatalf("reading %q: %v", key, err)
		}
		if head.Code != protocol.MetaValue {
			continue
		}
		value, err := protocol.ReadValue(r, nil, head.Size)
		if err != nil {
			c.T.Fatalf("reading %q: %v", key, err)
		}
		found[key] = entry{value: string(value), flags: head.Flags, expires: expiries[key]}
	}
	return found
}

// wholeSeconds in seconds is by how much a copy may expire at another time: memcached counts whole seconds, and each reading of
// its clock, of both servers and in this test, can be late. It is ten times what is usual. Tests with a fake clock have the exact times.
const wholeSeconds = 10

// wantSameItems compares the items of two caches.
func wantSameItems(t *testing.T, got, want *pods.Cache, names []string) {
	t.Helper()
	wantItems(t, getItems(got, names), getItems(want, names))
}

// wantItems compares items, and when they expire.
func wantItems(t *testing.T, got, want map[string]entry) {
	t.Helper()
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
		case (item.expires < 0) != (have.expires < 0) || have.expires < item.expires-wholeSeconds || have.expires > item.expires+wholeSeconds:
			t.Errorf("%.40q expires at %d, not at %d", key, have.expires, item.expires)
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
	for _, from := range pods.Tested {
		t.Run("from "+from, func(t *testing.T) {
			t.Parallel()
			bucket := memblob.OpenBucket(nil)
			sources := []*pods.Cache{pods.StartCache(t, from), pods.StartCache(t, from), pods.StartCache(t, from)}
			var items []map[string]entry
			total := 0
			for i, source := range sources {
				items = append(items, someItems(uint64(i), 20_000))
				putItems(source, items[i])
				total += len(items[i])
			}
			outcome := save(t, bucket, pods.SaveTask(sources...))
			if outcome.Reason != snapshotwire.ReasonSucceeded || outcome.Items != int64(total) || outcome.TotalItems != int64(total) ||
				outcome.Snapshot == nil || outcome.Snapshot.Items != int64(total) || outcome.Snapshot.Shards != 3 {
				t.Errorf("outcome %+v of %d items", outcome, total)
			}
			for _, into := range pods.Tested {
				targets := []*pods.Cache{pods.StartCache(t, into), pods.StartCache(t, into), pods.StartCache(t, into)}
				outcome := load(t, bucket, pods.LoadTask(targets...))
				if outcome.Reason != snapshotwire.ReasonSucceeded || outcome.Restored != int64(total) || outcome.Items != int64(total) {
					t.Errorf("into %s: outcome %+v of %d items", into, outcome, total)
				}
				for i, target := range targets {
					// What the source has now is what the target should have.
					wantSameItems(t, target, sources[i], names(items[i]))
					if n := sources[i].Items(); n != int64(len(items[i])) {
						t.Errorf("the source has %d items of %d", n, len(items[i]))
					}
					if n := target.Items(); n != int64(len(items[i])) {
						t.Errorf("%d items in shard %d, not %d", n, i, len(items[i]))
					}
					target.Kill()
				}
			}
		})
	}
}

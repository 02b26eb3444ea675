package process

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// itemsOf returns the items that a client finds in a memcached. Each one numbers the changes of its own items.
func itemsOf(w *pods.Workload, c *pods.Cache) map[string]pods.Content {
	all := w.Answers(c)
	for key, content := range all {
		content.CAS = 0
		all[key] = content
	}
	return all
}

// fillWithAll writes items of every kind, and waits until those have expired that soon do.
func fillWithAll(t *testing.T, seed uint64, caches ...*pods.Cache) (clients []*pods.Workload) {
	t.Helper()
	for i, c := range caches {
		w := pods.NewWorkload(t, c)
		w.Rand = rand.New(rand.NewPCG(seed, uint64(i)))
		w.Run(1500)
		w.Do("ms key-0 0\r\n")
		clients = append(clients, w)
	}
	pods.NextSecond(time.Now().Unix() + 3)
	return clients
}

func testOptions(t *testing.T) copy.Options {
	t.Helper()
	return copy.Options{SpoolDir: t.TempDir(), Progress: &copy.Progress{}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), ShardTimeout: pods.Patience}
}

func save(t *testing.T, bucket *blob.Bucket, task snapshotwire.Task) snapshotwire.Outcome {
	t.Helper()
	outcome, err := copy.Save(t.Context(), bucket, task, testOptions(t))
	pods.Must(t, err)
	return outcome
}

func load(t *testing.T, bucket *blob.Bucket, task snapshotwire.Task) snapshotwire.Outcome {
	t.Helper()
	outcome, err := copy.Load(t.Context(), bucket, task, testOptions(t))
	pods.Must(t, err)
	return outcome
}

// Every item comes back as it was, from each version into each.
func TestSnapshotRestoresEveryItem(t *testing.T) {
	t.Parallel()
	for _, from := range pods.Tested {
		t.Run("from "+from, func(t *testing.T) {
			t.Parallel()
			const others = 20_000
			bucket := memblob.OpenBucket(nil)
			sources := []*pods.Cache{pods.StartCache(t, from), pods.StartCache(t, from), pods.StartCache(t, from)}
			clients := fillWithAll(t, 1, sources...)
			total := 0
			for i, source := range sources {
				pods.Fill(t, source.Address(), others)
				total += len(itemsOf(clients[i], source)) + others
			}
			outcome := save(t, bucket, pods.SaveTask(sources...))
			if outcome.Reason != snapshotwire.ReasonSucceeded || outcome.Items != int64(total) ||
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
					want := itemsOf(clients[i], sources[i])
					pods.WantEqual(t, "after the restore", itemsOf(clients[i], target), want)
					if n := pods.Count(t, sources[i].Address(), others); n != others {
						t.Errorf("the source has %d items of %d", n, others)
					}
					if n := pods.Count(t, target.Address(), others); n != others || target.Items() != int64(len(want)+others) {
						t.Errorf("%d of %d items in shard %d, and %d in all", n, others, i, target.Items())
					}
					target.Kill()
				}
			}
		})
	}
}

// A restore skips no item that memcached accepts, at the limit of what it accepts.
func TestRestoreOfTheLargestItem(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		for _, args := range [][]string{{"-I", "512k", "-m", "256"}, {"-I", "512k", "-m", "256", "-C"}} {
			t.Run(version+strings.Join(args, ""), func(t *testing.T) {
				t.Parallel()
				source, target := pods.StartCache(t, version, args...), pods.StartCache(t, version, args...)
				n := 0
				for size := 512<<10 - 100; size < 512<<10; size++ {
					for flags := range 2 {
						key := fmt.Sprintf("%d-%d", size, flags)
						source.Talk(fmt.Sprintf("ms %s %d F%d\r\n%s\r\n", key, size, flags, strings.Repeat("x", size)))
						if strings.HasPrefix(source.Talk("mg "+key+"\r\n"), "HD") {
							n++
						}
					}
				}
				bucket := memblob.OpenBucket(nil)
				save(t, bucket, pods.SaveTask(source))
				if outcome := load(t, bucket, pods.LoadTask(target)); outcome.Restored != int64(n) || n == 0 || n == 200 {
					t.Errorf("%+v of %d items", outcome, n)
				}
			})
		}
	}
}

// An invalidated item is not saved, and its next reader is requested to renew it as if no client had read it.
func TestStaleItems(t *testing.T) {
	pods.WithEach(t, pods.Tested, func(t *testing.T, version string) {
		source := pods.StartCache(t, version)
		const items = 1000
		pods.Fill(t, source.Address(), items)
		source.Talk("ms stale 3 T300\r\nold\r\nmd stale I T100\r\nms b2xk 4 b T300\r\nolds\r\nmd b2xk I b\r\n" +
			"ms renewing 1\r\nx\r\nmd renewing I\r\nmg renewing v\r\n")
		outcome := save(t, memblob.OpenBucket(nil), pods.SaveTask(source))
		if outcome.Items != items {
			t.Errorf("%+v with %d items that are not stale", outcome, items)
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

// The order of the LRU, by which memcached evicts, is not that of a save.
func TestSaveDoesNotCountAsAccess(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest)
	source.Talk("ms a 1\r\n1\r\n")
	save(t, memblob.OpenBucket(nil), pods.SaveTask(source))
	if answer := source.Talk("mg a h u\r\n"); answer != "HD h0\r\n" {
		t.Errorf("after a save, %q", answer)
	}
}

// In another cache the addresses would be wrong.
func TestBackupOmitsTheListOfTheShards(t *testing.T) {
	t.Parallel()
	cache := pods.StartCache(t, pods.Newest)
	pods.Talk(t, cache.Address(), "set AmazonElastiCache:cluster 0 60 2\r\n1\n\r\nset greeting 0 0 5\r\nhello\r\n")
	if outcome := save(t, memblob.OpenBucket(nil), pods.SaveTask(cache)); outcome.Snapshot.Items != 1 {
		t.Errorf("the snapshot has %d items, want 1", outcome.Snapshot.Items)
	}
}

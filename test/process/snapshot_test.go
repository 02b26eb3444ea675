package process

import (
	"log/slog"
	"math/rand/v2"
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

package process

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// A newer value on the target wins, unless the restore replaces items.
func TestRestoreKeepsOrReplaces(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest)
	items := someItems(1, 5000)
	putItems(source, items)
	bucket := memblob.OpenBucket(nil)
	save(t, bucket, pods.SaveTask(source))

	newer := map[string]entry{}
	for i := range 1000 {
		newer[fmt.Sprintf("key-1-%d", i)] = entry{"newer", 77, 123}
	}
	for _, replace := range []bool{false, true} {
		target := pods.StartCache(t, pods.Newest)
		putItems(target, newer)
		kept := getItems(target, names(newer))
		want := getItems(source, names(items))
		task := pods.LoadTask(target)
		task.Load.Replace = replace
		outcome := load(t, bucket, task)
		if replace {
			if outcome.Restored != int64(len(items)) || outcome.Kept != 0 {
				t.Errorf("replacing: %+v", outcome)
			}
		} else {
			maps.Copy(want, kept)
			if outcome.Restored != int64(len(items)-len(newer)) || outcome.Kept != int64(len(newer)) {
				t.Errorf("keeping: %+v", outcome)
			}
		}
		have := getItems(target, names(items))
		wantItems(t, 0, have, want)
	}
}

// later is the clock of a Job that starts so much later.
func later(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

func TestRestoreRejectsSnapshotThatIsTooOld(t *testing.T) {
	t.Parallel()
	cache := pods.StartCache(t, pods.Newest)
	putItems(cache, someItems(2, 10))
	bucket := memblob.OpenBucket(nil)
	save(t, bucket, pods.SaveTask(cache))
	options := testOptions(t)
	options.Now = later(time.Hour)
	task := pods.LoadTask(cache)
	task.Load.MaxAge = 50 * time.Minute
	_, err := copy.Load(t.Context(), bucket, task, options)
	wantFailure(t, err, snapshotwire.ReasonSnapshotTooOld, true)
	task.Load.MaxAge = 70 * time.Minute
	if _, err := copy.Load(t.Context(), bucket, task, options); err != nil {
		t.Error(err)
	}
}

// Into another number of shards each key goes where the clients look for it, or nothing goes.
func TestRestoreIntoAnotherNumberOfShards(t *testing.T) {
	t.Parallel()
	sources := []*pods.Cache{pods.StartCache(t, pods.Newest), pods.StartCache(t, pods.Newest), pods.StartCache(t, pods.Newest)}
	all := map[string]entry{}
	for i, source := range sources {
		items := someItems(uint64(i), 3000)
		for key, item := range items {
			if _, ok := all[key]; ok {
				delete(items, key) // each key is in one shard
			} else {
				all[key] = item
			}
		}
		if i == 0 {
			items["large"] = entry{strings.Repeat("0123456789abcdef", 300_000), 0, -1}
			all["large"] = items["large"]
			source.Kill()
			source.Args = []string{"-I", "8m"}
			source.Start()
		}
		putItems(source, items)
	}
	bucket := memblob.OpenBucket(nil)
	save(t, bucket, pods.SaveTask(sources...))

	for _, n := range []int{2, 5} {
		var targets []*pods.Cache
		for range n {
			targets = append(targets, pods.StartCache(t, pods.Newest, "-I", "8m"))
		}
		task := pods.LoadTask(targets...)
		_, err := copy.Load(t.Context(), bucket, task, testOptions(t))
		pods.WantContains(t, "the error", wantFailure(t, err, snapshotwire.ReasonSizeDiffers, true), "spec.hashing")
		for _, target := range targets {
			if n := target.Items(); n != 0 {
				t.Errorf("%d items were loaded by a restore that was rejected", n)
			}
		}

		task.Load.Ring, task.Load.RingServers = ring.Jump, task.Servers
		outcome := load(t, bucket, task)
		if outcome.Restored != int64(len(all)) {
			t.Errorf("%+v of %d items", outcome, len(all))
		}
		r, err := ring.New(task.Load.Ring, task.Load.RingServers)
		if err != nil {
			t.Fatal(err)
		}
		parts := make([]map[string]entry, n)
		for i := range parts {
			parts[i] = map[string]entry{}
		}
		for key, item := range all {
			parts[r.Shard([]byte(key))][key] = item
		}
		for i, target := range targets {
			if len(parts[i]) == 0 {
				t.Fatalf("the ring has nothing for shard %d: the test shows nothing", i)
			}
			got := getItems(target, names(all))
			if len(got) != len(parts[i]) {
				t.Errorf("shard %d of %d has %d items, and %d belong there", i, n, len(got), len(parts[i]))
			}
			for key, item := range parts[i] {
				if got[key].value != item.value || got[key].flags != item.flags {
					t.Fatalf("%.40q is not as it was", key)
				}
			}
		}

		// Of some shards only.
		targets[1].Talk("flush_all\r\n")
		task.Load.Shards = []int{1}
		if outcome := load(t, bucket, task); outcome.Restored != int64(len(parts[1])) || outcome.Items != outcome.Restored {
			t.Errorf("of shard 1 alone: %+v of %d items", outcome, len(parts[1]))
		}
	}
}

func TestRestoreOfSomeShards(t *testing.T) {
	t.Parallel()
	caches := []*pods.Cache{pods.StartCache(t, pods.Newest), pods.StartCache(t, pods.Newest), pods.StartCache(t, pods.Newest)}
	for i, c := range caches {
		putItems(c, someItems(uint64(i), 100))
	}
	bucket := memblob.OpenBucket(nil)
	save(t, bucket, pods.SaveTask(caches...))
	for _, c := range caches {
		c.Kill()
		c.Start()
	}
	task := pods.LoadTask(caches...)
	task.Load.Shards = []int{0, 2}
	load(t, bucket, task)
	if caches[0].Items() == 0 || caches[1].Items() != 0 || caches[2].Items() == 0 {
		t.Errorf("%d, %d and %d items", caches[0].Items(), caches[1].Items(), caches[2].Items())
	}
	task.Load.Shards = []int{3}
	_, err := copy.Load(t.Context(), bucket, task, testOptions(t))
	wantFailure(t, err, snapshotwire.ReasonSizeDiffers, true)
}

// What memcached does not take is counted. It would delete what it has under the key
// of an item that is too large for it: the restore must not send it.
func TestRestoreCountsItemsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			source := pods.StartCache(t, pods.Newest, "-I", "8m", "-m", "128")
			putItems(source, map[string]entry{
				"whole": {strings.Repeat("x", 900<<10), 0, -1}, "divided": {strings.Repeat("x", 5<<20), 0, -1}, "small": {"x", 0, -1},
				"new": {strings.Repeat("x", 900<<10), 0, -1},
			})
			bucket := memblob.OpenBucket(nil)
			save(t, bucket, pods.SaveTask(source))
			target := pods.StartCache(t, version, "-I", "512k")
			own := map[string]entry{"whole": {"newer", 1, -1}, "divided": {"newer", 2, -1}}
			putItems(target, own)
			outcome := load(t, bucket, pods.LoadTask(target))
			if outcome.Rejected != 3 || outcome.Restored != 1 || outcome.Items != 4 {
				t.Errorf("%+v", outcome)
			}
			own["small"] = entry{"x", 0, -1}
			wantItems(t, 0, getItems(target, []string{"whole", "divided", "small", "new"}), own)
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

// A memcached without room rejects items, and the restore continues. It would delete what it
// has under the key of an item that it rejects: the restore must not send it.
func TestRestoreIntoAFullShard(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			source := pods.StartCache(t, pods.Newest, "-m", "64")
			pods.FillCaches(t, 40_000, 500, source)
			own := map[string]entry{}
			for i := range 200 {
				// The last ones: there is no room for them.
				own[fmt.Sprintf("key:0:%d", 39_999-i)] = entry{"newer", 5, -1}
			}
			own["with spaces in it"] = entry{"newer", 6, -1}
			putItems(source, map[string]entry{"with spaces in it": {strings.Repeat("older", 100), 0, -1}})
			bucket := memblob.OpenBucket(nil)
			save(t, bucket, pods.SaveTask(source))
			target := pods.StartCache(t, version, "-m", "8", "-M")
			putItems(target, own)
			outcome := load(t, bucket, pods.LoadTask(target))
			if outcome.Rejected == 0 || outcome.Restored == 0 || outcome.Kept != int64(len(own)) || outcome.Items != 40_001 ||
				outcome.Restored+outcome.Kept != target.Items() {
				t.Errorf("%+v, and the target has %d items", outcome, target.Items())
			}
			wantItems(t, 0, getItems(target, names(own)), own)
		})
	}
}

func TestSaveRunsOnce(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest)
	putItems(source, someItems(1, 100))
	bucket := memblob.OpenBucket(nil)
	first := save(t, bucket, pods.SaveTask(source))
	before := objects(t, bucket)
	putItems(source, someItems(2, 100))
	second := save(t, bucket, pods.SaveTask(source))
	if second.Items != first.Items || second.Reason != snapshotwire.ReasonSucceeded || !second.Snapshot.TakenAt.Equal(first.Snapshot.TakenAt) {
		t.Errorf("the second %+v, the first %+v", second, first)
	}
	task := pods.SaveTask(source)
	task.ID = "another"
	_, err := copy.Save(t.Context(), bucket, task, testOptions(t))
	wantFailure(t, err, snapshotwire.ReasonSnapshotOwnedByOther, true)
	if after := objects(t, bucket); !slices.Equal(before, after) {
		t.Errorf("%v became %v", before, after)
	}
	if err := format.Delete(t.Context(), bucket, task.Path); err != nil {
		t.Fatal(err)
	}
	if err := format.Delete(t.Context(), bucket, task.Path); err != nil {
		t.Fatal(err)
	}
	if left := objects(t, bucket); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// objects are the names of all.
func objects(t *testing.T, bucket *blob.Bucket) []string {
	t.Helper()
	var all []string
	list := bucket.List(nil)
	for {
		object, err := list.Next(t.Context())
		if err != nil {
			return all
		}
		all = append(all, object.Key)
	}
}

// A save that is stopped takes away what it wrote. One that is killed cannot, and the
// next one does.
func TestSaveThatIsStopped(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest, "-m", "256")
	pods.FillCaches(t, 100_000, 500, source)
	bucket := memblob.OpenBucket(nil)
	task := pods.SaveTask(source)
	task.ItemsPerSecond = 50_000
	ctx, cancel := context.WithCancel(t.Context())
	_, err := midway(t, func(_ context.Context, options copy.Options) (snapshotwire.Outcome, error) {
		return copy.Save(ctx, bucket, task, options)
	}, cancel)
	wantFailure(t, err, snapshotwire.ReasonJobFailed, false)
	if left := objects(t, bucket); len(left) != 0 {
		t.Fatalf("it left %v", left)
	}
	killed := task.Path + "/0123456789abcdef/0-0"
	if err := bucket.WriteAll(t.Context(), killed, []byte("a chunk"), nil); err != nil {
		t.Fatal(err)
	}
	_, err = copy.Load(t.Context(), bucket, pods.LoadTask(source), testOptions(t))
	wantFailure(t, err, snapshotwire.ReasonSnapshotIncomplete, true)

	task.ItemsPerSecond = 0
	if outcome := save(t, bucket, task); outcome.Items != 100_000 {
		t.Errorf("%+v", outcome)
	}
	if slices.Contains(objects(t, bucket), killed) {
		t.Errorf("%s of the attempt before is left", killed)
	}
}

func TestRateLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]snapshotwire.Task{
		"items": {ItemsPerSecond: 5000}, "bytes": {BytesPerSecond: 5 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, target := pods.StartCache(t, pods.Newest), pods.StartCache(t, pods.Newest)
			pods.FillCaches(t, 10_000, 1000, source)
			bucket := memblob.OpenBucket(nil)
			limited := func(task snapshotwire.Task) snapshotwire.Task {
				task.ItemsPerSecond, task.BytesPerSecond = c.ItemsPerSecond, c.BytesPerSecond
				return task
			}
			began := time.Now()
			save(t, bucket, limited(pods.SaveTask(source)))
			if took := time.Since(began); took < 1800*time.Millisecond {
				t.Errorf("a save of 10 MB and 10000 items took %s, at half of it a second", took)
			}
			began = time.Now()
			load(t, bucket, limited(pods.LoadTask(target)))
			if took := time.Since(began); took < 1800*time.Millisecond {
				t.Errorf("a load of 10 MB and 10000 items took %s, at half of it a second", took)
			}
		})
	}
}

// damage changes an object of a bucket.
func damage(t *testing.T, bucket *blob.Bucket, name string, change func([]byte) []byte) {
	t.Helper()
	content, err := bucket.ReadAll(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if content = change(content); content == nil {
		err = bucket.Delete(t.Context(), name)
	} else {
		err = bucket.WriteAll(t.Context(), name, content, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Of a snapshot that is damaged nothing is loaded that lacks its checksum, and
// nothing at all where that can be known before.
func TestDamagedSnapshot(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest, "-m", "128", "-I", "32m")
	items := someItems(1, 30_000)
	items["large"] = entry{strings.Repeat("0123456789abcdef", 1_000_000), 0, -1}
	putItems(source, items)
	whole := memblob.OpenBucket(nil)
	task := pods.SaveTask(source)
	save(t, whole, task)
	manifest := task.Path + "/manifest.json"
	var chunks []string
	for _, name := range objects(t, whole) {
		if name != manifest {
			chunks = append(chunks, name)
		}
	}
	if len(chunks) < 6 {
		t.Fatalf("chunks: %v", chunks)
	}
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[(at+len(b))%len(b)] ^= 1; return b }
	}
	replace := func(old, by string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(by), 1) }
	}
	cases := map[string]struct {
		object string
		change func([]byte) []byte
		reason string
		some   bool // items may have been loaded before it was found
	}{
		"no manifest":                 {manifest, func([]byte) []byte { return nil }, snapshotwire.ReasonSnapshotIncomplete, false},
		"an empty manifest":           {manifest, func([]byte) []byte { return []byte{} }, snapshotwire.ReasonSnapshotOwnedByOther, false},
		"half a manifest":             {manifest, func(b []byte) []byte { return b[:len(b)/2] }, snapshotwire.ReasonSnapshotCorrupt, false},
		"a bit of the manifest":       {manifest, flip(-100), snapshotwire.ReasonSnapshotCorrupt, false},
		"another count":               {manifest, replace(`"items":`, `"items":1`), snapshotwire.ReasonSnapshotCorrupt, false},
		"a newer format":              {manifest, replace(`"version":1`, `"version":2`), snapshotwire.ReasonSnapshotTooNew, false},
		"another format":              {manifest, replace(`memcached-operator/snapshot`, `example/other`), snapshotwire.ReasonSnapshotOwnedByOther, false},
		"another kind of JSON":        {manifest, func([]byte) []byte { return []byte(`["a"]`) }, snapshotwire.ReasonSnapshotOwnedByOther, false},
		"no JSON":                     {manifest, func([]byte) []byte { return []byte("hello") }, snapshotwire.ReasonSnapshotOwnedByOther, false},
		"the last chunk gone":         {chunks[len(chunks)-1], func([]byte) []byte { return nil }, snapshotwire.ReasonSnapshotCorrupt, false},
		"the first chunk gone":        {chunks[0], func([]byte) []byte { return nil }, snapshotwire.ReasonSnapshotCorrupt, false},
		"a chunk truncated":           {chunks[2], func(b []byte) []byte { return b[:len(b)-1] }, snapshotwire.ReasonSnapshotCorrupt, false},
		"a chunk longer":              {chunks[2], func(b []byte) []byte { return append(b, 0) }, snapshotwire.ReasonSnapshotCorrupt, false},
		"a bit of the first chunk":    {chunks[0], flip(1000), snapshotwire.ReasonSnapshotCorrupt, true},
		"the last bit of the last":    {chunks[len(chunks)-1], flip(-1), snapshotwire.ReasonSnapshotCorrupt, true},
		"a bit of a chunk in between": {chunks[3], flip(50), snapshotwire.ReasonSnapshotCorrupt, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bucket := memblob.OpenBucket(nil)
			for _, object := range objects(t, whole) {
				content, err := whole.ReadAll(t.Context(), object)
				if err == nil {
					err = bucket.WriteAll(t.Context(), object, content, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			damage(t, bucket, c.object, c.change)
			target := pods.StartCache(t, pods.Newest, "-m", "128", "-I", "32m")
			outcome, err := copy.Load(t.Context(), bucket, pods.LoadTask(target), testOptions(t))
			text := wantFailure(t, err, c.reason, true)
			n := target.Items()
			if !c.some && n != 0 {
				t.Errorf("%d items were loaded: %v", n, err)
			}
			if c.some {
				pods.WantContains(t, "the error", text, fmt.Sprintf("%d items were restored", outcome.Restored))
			}
			// Requests in progress may have no answer.
			if outcome.Restored > n || n >= int64(len(items)) {
				t.Errorf("%d items of %d, and %+v", n, len(items), outcome)
			}
			for key, item := range getItems(target, names(items)) {
				if item.value != items[key].value {
					t.Errorf("%.40q is not as it was", key)
				}
			}
			if err := format.Inspect(t.Context(), bucket, task.Path, &bytes.Buffer{}, format.InspectOptions{Verify: true}); c.reason != snapshotwire.AsFailure(err).Reason {
				t.Errorf("it is inspected as %v", err)
			}
			target.Kill()
		})
	}
}

func TestMissingSnapshot(t *testing.T) {
	t.Parallel()
	target := pods.StartCache(t, pods.Newest)
	_, err := copy.Load(t.Context(), memblob.OpenBucket(nil), pods.LoadTask(target), testOptions(t))
	wantFailure(t, err, snapshotwire.ReasonSnapshotNotFound, true)
}

func TestInspect(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest, "-I", "32m")
	items := map[string]entry{"one": {"1", 1, -1}, "two words": {"22", 2, 600}, "large": {strings.Repeat("x", 10<<20), 3, -1}}
	putItems(source, items)
	bucket := memblob.OpenBucket(nil)
	save(t, bucket, pods.SaveTask(source))
	var out strings.Builder
	if err := format.Inspect(t.Context(), bucket, pods.SaveTask(source).Path, &out, format.InspectOptions{Keys: true, Chunks: true, Verify: true}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"ns/cache", "backup-1", "3 items of 1 shards", `"two words"  2 bytes, flags 2, expires 2`, `"one"  1 bytes, flags 1, expires never`, `"large"  10485760 bytes`, "All checksums match."} {
		pods.WantContains(t, "what is printed", out.String(), part)
	}
	var manifest struct {
		Format  string
		Version int
	}
	content, err := bucket.ReadAll(t.Context(), pods.SaveTask(source).Path+"/manifest.json")
	if err == nil {
		err = json.Unmarshal(content, &manifest)
	}
	if err != nil || manifest.Format != format.Name || manifest.Version != 1 {
		t.Errorf("%+v, %v", manifest, err)
	}
}

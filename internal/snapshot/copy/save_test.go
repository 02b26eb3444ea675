package copy

import (
	"path"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestSnapshotWithoutAllChunksIsNotCompleted(t *testing.T) {
	manifest := func() *format.Manifest {
		return &format.Manifest{TaskID: "7", Folder: "a1b2", Shards: []format.Shard{{Items: 5, Chunks: []format.Chunk{
			{Items: 3, Bytes: 90, Stored: 4}, {Items: 2, Bytes: 50, Stored: 3},
		}}}}
	}
	task := wire.Task{ID: "7", Path: "s"}
	for name, c := range map[string]struct {
		objects  map[string]string
		complete bool
	}{
		"all exist":                   {map[string]string{"s/a1b2/000000/000000000.zst": "zero", "s/a1b2/000000/000000001.zst": "one"}, true},
		"one is missing":              {map[string]string{"s/a1b2/000000/000000000.zst": "zero"}, false},
		"one is truncated":            {map[string]string{"s/a1b2/000000/000000000.zst": "zero", "s/a1b2/000000/000000001.zst": "o"}, false},
		"another pod deleted them":    {nil, false},
		"they are of another attempt": {map[string]string{"s/ffff/000000/000000000.zst": "zero", "s/ffff/000000/000000001.zst": "one"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := memblob.OpenBucket(nil)
			for object, content := range c.objects {
				if err := bucket.WriteAll(t.Context(), object, []byte(content), nil); err != nil {
					t.Fatal(err)
				}
			}
			_, err := complete(t.Context(), bucket, task, manifest())
			f := wire.AsFailure(err)
			if c.complete != (err == nil) || err != nil && (f == nil || f.Reason != wire.ReasonStoreFailed || f.Final) {
				t.Errorf("%v", err)
			}
			there, err := bucket.Exists(t.Context(), path.Join("s", format.ManifestName))
			if err != nil || there != c.complete {
				t.Errorf("a manifest exists: %v, %v", there, err)
			}
		})
	}
}

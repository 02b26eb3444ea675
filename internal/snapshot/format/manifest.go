package format

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// Name identifies the format in a manifest.
	Name = "memcached-operator/snapshot"
	// Version is the version that is written, and the newest that is read.
	Version = 1
	// ManifestName is the object of a snapshot that is written last.
	ManifestName = "manifest.json"
	// maxManifest in bytes is enough for about two terabytes of items.
	maxManifest = 64 << 20
	// maxField in bytes is more than any field but a list has.
	maxField = 64 << 10
)

// Manifest lists the content of a snapshot.
type Manifest struct {
	// TaskID is the ID of the task that wrote it.
	TaskID string `json:"taskID"`
	// TakenAt is when the first key was read, CreatedAt when the last value was stored.
	TakenAt   time.Time      `json:"takenAt"`
	CreatedAt time.Time      `json:"createdAt"`
	Memcached wire.Memcached `json:"memcached"`
	// Folder of the chunks, below the snapshot's path.
	Folder string `json:"folder"`
	// Shards by ordinal. They are the last field: see encode.
	Shards []Shard `json:"shards"`
}

// Shard lists what a snapshot contains of one shard.
type Shard struct {
	Ordinal int `json:"ordinal"`
	// Items, and the bytes of their keys and values.
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"`
	// Items that were listed and are not in the snapshot: Gone expired, or were deleted or
	// evicted, before they were read, Stale were invalidated, and Unnamed have keys that the
	// text protocol can't express.
	Gone    int64 `json:"gone,omitempty"`
	Stale   int64 `json:"stale,omitempty"`
	Unnamed int64 `json:"unnamed,omitempty"`
	// Chunks in the order of the items: the most recently used first. They are the last field,
	// and most of a manifest.
	Chunks []Chunk `json:"chunks"`
}

// Chunk is one object of the store.
type Chunk struct {
	// Items whose records begin in it.
	Items int `json:"items"`
	// Bytes of its content, and as stored.
	Bytes  int `json:"bytes"`
	Stored int `json:"stored"`
	// Checksum of the stored bytes.
	Checksum Checksum `json:"checksum"`
}

// Checksum is the XXH64 of some bytes, and in text xxh64: followed by its 16 hexadecimal digits.
type Checksum uint64

func (c Checksum) String() string { return fmt.Sprintf("xxh64:%016x", uint64(c)) }

// MarshalText implements encoding.TextMarshaler.
func (c Checksum) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Checksum) UnmarshalText(text []byte) error {
	digits, ok := bytes.CutPrefix(text, []byte("xxh64:"))
	n, err := strconv.ParseUint(string(digits), 16, 64)
	if *c = Checksum(n); !ok || err != nil || c.String() != string(text) {
		return fmt.Errorf("the checksum %.40q is not xxh64: and 16 hexadecimal digits", text)
	}
	return nil
}

// chunkName returns the name of an object below the snapshot's path. Names sort as
// chunks do.
func chunkName(folder string, shard, chunk int) string {
	return fmt.Sprintf("%s/%06d/%09d.zst", folder, shard, chunk)
}

func checksum(data []byte) Checksum { return Checksum(xxhash.Sum64(data)) }

// Describe returns the totals of a snapshot.
func (m *Manifest) Describe() *wire.Snapshot {
	s := &wire.Snapshot{TakenAt: m.TakenAt, Shards: len(m.Shards), FormatVersion: Version}
	for _, shard := range m.Shards {
		s.Items += shard.Items
		s.Bytes += shard.Bytes
		for _, chunk := range shard.Chunks {
			s.StoredBytes += int64(chunk.Stored)
		}
	}
	return s
}

// Summary returns the number of items, and of those that were skipped, for the user.
func (m *Manifest) Summary() string {
	var gone, stale, unnamed int64
	for _, shard := range m.Shards {
		gone, stale, unnamed = gone+shard.Gone, stale+shard.Stale, unnamed+shard.Unnamed
	}
	text := fmt.Sprintf("%d items of %d shards", m.Describe().Items, len(m.Shards))
	for _, part := range []struct {
		n    int64
		what string
	}{
		{gone, "expired, or were deleted or evicted, before they were read"},
		{stale, "are stale and were skipped"},
		{unnamed, "have keys that the text protocol can't express"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf("; %d %s", part.n, part.what)
		}
	}
	return text
}

// maxShards is more than a Memcached can have.
const maxShards = 1000

// check returns why a chunk with its place can't be one.
func (c *Chunk) check(number, shard int) error {
	if c.Items < 0 || c.Bytes <= 0 || c.Bytes > maxChunk || c.Stored <= 0 || c.Stored > maxStored {
		return fmt.Errorf("chunk %d of shard %d exceeds the bounds of the format", number, shard)
	}
	return nil
}

// check rejects what no save writes and no load could handle.
func (m *Manifest) check() error {
	if len(m.Shards) == 0 {
		return errors.New("it has no shards")
	}
	if m.Folder == "" || m.Folder == "." || m.Folder == ".." || strings.ContainsAny(m.Folder, `/\`) {
		return fmt.Errorf("its folder is %.80q", m.Folder)
	}
	for i, shard := range m.Shards {
		if shard.Ordinal != i {
			return fmt.Errorf("shard %d is listed in place of shard %d", shard.Ordinal, i)
		}
		var items int64
		for j, chunk := range shard.Chunks {
			if err := chunk.check(j, i); err != nil {
				return err
			}
			items += int64(chunk.Items)
		}
		if items != shard.Items {
			return fmt.Errorf("the chunks of shard %d contain %d items, but the shard has %d", i, items, shard.Items)
		}
	}
	return nil
}

// Find returns the manifest of the snapshot at a path, nil if there is none.
func Find(ctx context.Context, bucket *blob.Bucket, at string) (*Manifest, error) {
	const action = "reading the snapshot's manifest"
	reader, err := bucket.NewReader(ctx, path.Join(at, ManifestName), nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, store.Failure(err, action)
	}
	defer reader.Close()
	manifest, err := decodeManifest(reader)
	return manifest, store.Failure(err, action)
}

// Open returns the manifest of the snapshot at a path. If there is none, the error's
// reason is SnapshotNotFound or SnapshotIncomplete.
func Open(ctx context.Context, bucket *blob.Bucket, at string) (*Manifest, error) {
	manifest, err := Find(ctx, bucket, at)
	if manifest != nil || err != nil {
		return manifest, err
	}
	some, err := containsObjects(ctx, bucket, at)
	if err != nil {
		return nil, err
	}
	if some {
		return nil, wire.FailFinally(wire.ReasonSnapshotIncomplete, "the snapshot at %s has no manifest: its backup didn't finish, or it is being deleted; use another snapshot", at)
	}
	return nil, wire.FailFinally(wire.ReasonSnapshotNotFound, "there is no snapshot at %s; check the store and the path", at)
}

// Write writes the manifest, which completes the snapshot.
func (m *Manifest) Write(ctx context.Context, bucket *blob.Bucket, at string) error {
	return store.Failure(store.PutFrom(ctx, bucket, path.Join(at, ManifestName), m.encode), "writing the snapshot's manifest")
}

// VerifyChunks checks that the store lists the chunks of the selected shards with
// their sizes; a nil selection means all shards. Errors have the reason
// SnapshotCorrupt, or that of the store.
func (m *Manifest) VerifyChunks(ctx context.Context, bucket *blob.Bucket, at string, selected func(shard int) bool) error {
	for i, shard := range m.Shards {
		if len(shard.Chunks) == 0 || selected != nil && !selected(i) {
			continue
		}
		// Both lists have the same order, so one pass over each is enough.
		prefix := path.Join(at, path.Dir(chunkName(m.Folder, i, 0))) + "/"
		objects, listed := bucket.List(&blob.ListOptions{Prefix: prefix}).All(ctx)
		next := 0
		for object := range objects {
			if next == len(shard.Chunks) || object.Key != path.Join(at, chunkName(m.Folder, i, next)) {
				continue
			}
			if object.Size != int64(shard.Chunks[next].Stored) {
				return wire.FailFinally(wire.ReasonSnapshotCorrupt, "chunk %d of shard %d has %d bytes instead of %d; use another snapshot", next, i, object.Size, shard.Chunks[next].Stored)
			}
			next++
		}
		if err := listed(); err != nil {
			return store.Failure(err, "listing the snapshot's chunks")
		}
		if next < len(shard.Chunks) {
			return wire.FailFinally(wire.ReasonSnapshotCorrupt, "chunk %d of %d of shard %d is missing; use another snapshot", next, len(shard.Chunks), i)
		}
	}
	return nil
}

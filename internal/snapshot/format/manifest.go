package format

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
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
)

// envelope is the content of manifest.json. Every version has these fields.
type envelope struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Checksum of the bytes of Snapshot.
	Checksum string          `json:"checksum"`
	Snapshot json.RawMessage `json:"snapshot"`
}

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
	// Shards by ordinal.
	Shards []Shard `json:"shards"`
}

// Shard lists what a snapshot contains of one shard.
type Shard struct {
	Ordinal int `json:"ordinal"`
	// Items, and the bytes of their keys and values.
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"`
	// Items that were listed and are not in the snapshot: Gone were deleted or evicted
	// before they were read, Stale were invalidated, and Unnamed have keys that the
	// text protocol can't express.
	Gone    int64 `json:"gone,omitempty"`
	Stale   int64 `json:"stale,omitempty"`
	Unnamed int64 `json:"unnamed,omitempty"`
	// Chunks in the order of the items: the most recently used first.
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
	Checksum string `json:"checksum"`
}

// chunkName returns the name of an object below the snapshot's path. Names sort as
// chunks do.
func chunkName(folder string, shard, chunk int) string {
	return fmt.Sprintf("%s/%06d/%09d.zst", folder, shard, chunk)
}

func checksum(data []byte) string { return fmt.Sprintf("xxh64:%016x", xxhash.Sum64(data)) }

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
		{gone, "were deleted or evicted before they were read"},
		{stale, "are stale and were skipped"},
		{unnamed, "have keys that the text protocol can't express"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf("; %d %s", part.n, part.what)
		}
	}
	return text
}

func (m *Manifest) encode() ([]byte, error) {
	inner, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	// Marshal leaves a compact RawMessage as it is.
	text, err := json.Marshal(envelope{Format: Name, Version: Version, Checksum: checksum(inner), Snapshot: inner})
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return append(text, '\n'), nil
}

// decodeManifest parses and checks a manifest. Errors have the reasons
// SnapshotOwnedByOther, SnapshotTooNew and SnapshotCorrupt.
func decodeManifest(text []byte) (*Manifest, error) {
	corrupt := func(format string, args ...any) error {
		return wire.FailFinally(wire.ReasonSnapshotCorrupt, "the snapshot's manifest is damaged: %w; use another snapshot", fmt.Errorf(format, args...))
	}
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		if !bytes.Contains(text, []byte(Name)) {
			return nil, wire.FailFinally(wire.ReasonSnapshotOwnedByOther, "%s is not a manifest of this operator: %w; check the path", ManifestName, err)
		}
		return nil, corrupt("%w", err)
	}
	switch {
	case e.Format != Name:
		return nil, wire.FailFinally(wire.ReasonSnapshotOwnedByOther, "%s has the format %.80q, not %q of this operator; check the path", ManifestName, e.Format, Name)
	case e.Version > Version:
		return nil, wire.FailFinally(wire.ReasonSnapshotTooNew, "the snapshot has format version %d, but this operator reads up to %d; upgrade the operator", e.Version, Version)
	case e.Version < 1:
		return nil, corrupt("format version %d doesn't exist", e.Version)
	}
	if sum := checksum(e.Snapshot); sum != e.Checksum {
		return nil, corrupt("its checksum is %s, but it says %s", sum, e.Checksum)
	}
	var m Manifest
	if err := json.Unmarshal(e.Snapshot, &m); err != nil {
		return nil, corrupt("%w", err)
	}
	if err := m.check(); err != nil {
		return nil, corrupt("%w", err)
	}
	return &m, nil
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
			if chunk.Items < 0 || chunk.Bytes <= 0 || chunk.Bytes > maxChunk || chunk.Stored <= 0 || chunk.Stored > maxStored {
				return fmt.Errorf("chunk %d of shard %d exceeds the bounds of the format", j, i)
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
	text, err := io.ReadAll(io.LimitReader(reader, maxManifest+1))
	if err != nil {
		return nil, store.Failure(err, action)
	}
	if len(text) > maxManifest {
		return nil, wire.FailFinally(wire.ReasonSnapshotCorrupt, "the snapshot's manifest is larger than %d MiB; use another snapshot", maxManifest>>20)
	}
	return decodeManifest(text)
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
	text, err := m.encode()
	if err != nil {
		return err
	}
	if len(text) > maxManifest {
		return wire.FailFinally(wire.ReasonStoreFailed, "the snapshot has more chunks than a manifest can list; back up fewer items")
	}
	return store.Failure(store.Put(ctx, bucket, path.Join(at, ManifestName), text), "writing the snapshot's manifest")
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

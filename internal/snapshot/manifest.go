package snapshot

import (
	"bytes"
	"context"
	"encoding/hex"
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

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/store"
)

const (
	// Format names what this package writes.
	Format = "memcached-operator/snapshot"
	// FormatVersion is written, and the newest that is read.
	FormatVersion = 1
	// ManifestName is the object of a snapshot that is written last.
	ManifestName = "manifest.json"
	// maxManifest in bytes is what some two terabytes of items need.
	maxManifest = 64 << 20
)

// envelope is the content of manifest.json. Its own fields are of every version.
type envelope struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Checksum is of the bytes of Snapshot.
	Checksum string          `json:"checksum"`
	Snapshot json.RawMessage `json:"snapshot"`
}

// Manifest says what is in a snapshot.
type Manifest struct {
	// TaskID is the ID of the task that wrote it.
	TaskID string `json:"taskID"`
	// TakenAt is when the first key was read, CreatedAt when the last value was there.
	TakenAt   time.Time             `json:"takenAt"`
	CreatedAt time.Time             `json:"createdAt"`
	Memcached snapshotapi.Memcached `json:"memcached"`
	// Folder of the chunks, below the snapshot's path.
	Folder string `json:"folder"`
	// Shards by ordinal.
	Shards []Shard `json:"shards"`
}

// Shard is what a snapshot has of one shard.
type Shard struct {
	Ordinal int `json:"ordinal"`
	// Items and the bytes of their keys and values.
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"`
	// Gone were listed and not there any more when they were to be read, Stale were
	// invalidated, and Unnamed have keys that no request can name. None is in the snapshot.
	Gone    int64 `json:"gone,omitempty"`
	Stale   int64 `json:"stale,omitempty"`
	Unnamed int64 `json:"unnamed,omitempty"`
	// Chunks in the order in which they are read: the items that were asked for last first.
	Chunks []Chunk `json:"chunks"`
}

// Chunk is one object of the store.
type Chunk struct {
	// Items whose records begin in it.
	Items int `json:"items"`
	// Bytes of its content, and as it is stored.
	Bytes  int `json:"bytes"`
	Stored int `json:"stored"`
	// Checksum of what is stored.
	Checksum string `json:"checksum"`
}

// chunkName is an object's, below the snapshot's path. Names sort as chunks do.
func chunkName(folder string, shard, chunk int) string {
	return fmt.Sprintf("%s/%06d/%09d.zst", folder, shard, chunk)
}

// checksum of what is stored.
func checksum(data []byte) string {
	var sum [8]byte
	return "xxh64:" + hex.EncodeToString(xxhashSum(data, sum[:0]))
}

func xxhashSum(data, into []byte) []byte {
	d := xxhash.Sum64(data)
	for shift := 56; shift >= 0; shift -= 8 {
		into = append(into, byte(d>>shift))
	}
	return into
}

// totals are the sums over all shards.
func (m *Manifest) totals() (items, bytes, stored int64) {
	for _, shard := range m.Shards {
		items += shard.Items
		bytes += shard.Bytes
		for _, chunk := range shard.Chunks {
			stored += int64(chunk.Stored)
		}
	}
	return items, bytes, stored
}

// describe is what status tells of a snapshot.
func (m *Manifest) describe() *snapshotapi.Snapshot {
	s := &snapshotapi.Snapshot{TakenAt: m.TakenAt, Shards: len(m.Shards), FormatVersion: FormatVersion}
	s.Items, s.Bytes, s.StoredBytes = m.totals()
	return s
}

// encode returns the content of manifest.json.
func (m *Manifest) encode() ([]byte, error) {
	inner, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	// Marshal leaves a RawMessage that is compact as it is.
	text, err := json.Marshal(envelope{Format: Format, Version: FormatVersion, Checksum: checksum(inner), Snapshot: inner})
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return append(text, '\n'), nil
}

// decodeManifest returns the manifest that a text is. Errors are of the reasons
// SnapshotNotOurs, SnapshotTooNew and SnapshotCorrupt.
func decodeManifest(text []byte) (*Manifest, error) {
	corrupt := func(format string, args ...any) error {
		return snapshotapi.FailFinally(v1alpha1.ReasonSnapshotCorrupt, "the snapshot's manifest is damaged: %w; use another snapshot", fmt.Errorf(format, args...))
	}
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		if !bytes.Contains(text, []byte(Format)) {
			return nil, snapshotapi.FailFinally(v1alpha1.ReasonSnapshotNotOurs, "%s is no manifest of a snapshot of this operator: %w", ManifestName, err)
		}
		return nil, corrupt("%w", err)
	}
	switch {
	case e.Format != Format:
		return nil, snapshotapi.FailFinally(v1alpha1.ReasonSnapshotNotOurs, "%s is of the format %.80q, not %q: it is no snapshot of this operator", ManifestName, e.Format, Format)
	case e.Version > FormatVersion:
		return nil, snapshotapi.FailFinally(v1alpha1.ReasonSnapshotTooNew, "the snapshot has format version %d, and this operator reads up to %d: upgrade the operator", e.Version, FormatVersion)
	case e.Version < 1:
		return nil, corrupt("there is no format version %d", e.Version)
	}
	if sum := checksum(e.Snapshot); sum != e.Checksum {
		return nil, corrupt("its checksum is %s, it should be %s", sum, e.Checksum)
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

// check refuses what no save writes and a load would trip over.
func (m *Manifest) check() error {
	if len(m.Shards) == 0 {
		return errors.New("it has no shards")
	}
	if m.Folder == "" || m.Folder == "." || m.Folder == ".." || strings.ContainsAny(m.Folder, `/\`) {
		return fmt.Errorf("its folder is %.80q", m.Folder)
	}
	for i, shard := range m.Shards {
		if shard.Ordinal != i {
			return fmt.Errorf("shard %d stands where %d should", shard.Ordinal, i)
		}
		var items int64
		for j, chunk := range shard.Chunks {
			if chunk.Items < 0 || chunk.Bytes <= 0 || chunk.Bytes > MaxChunk || chunk.Stored <= 0 || chunk.Stored > maxStored {
				return fmt.Errorf("chunk %d of shard %d is beyond the format's bounds", j, i)
			}
			items += int64(chunk.Items)
		}
		if items != shard.Items {
			return fmt.Errorf("shard %d has %d items in its chunks and %d in all", i, items, shard.Items)
		}
	}
	return nil
}

// readManifest returns the manifest of the snapshot at a path; nil when there is none.
func readManifest(ctx context.Context, bucket *blob.Bucket, at string) (*Manifest, error) {
	const doing = "reading the snapshot's manifest"
	reader, err := bucket.NewReader(ctx, path.Join(at, ManifestName), nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, store.Failure(err, doing)
	}
	defer reader.Close()
	text, err := io.ReadAll(io.LimitReader(reader, maxManifest+1))
	if err != nil {
		return nil, store.Failure(err, doing)
	}
	if len(text) > maxManifest {
		return nil, snapshotapi.FailFinally(v1alpha1.ReasonSnapshotCorrupt, "the snapshot's manifest is larger than %d MiB; use another snapshot", maxManifest>>20)
	}
	return decodeManifest(text)
}

// writeObject writes an object, which is there in whole or not at all.
func writeObject(ctx context.Context, bucket *blob.Bucket, name string, content []byte) error {
	w, err := store.Create(ctx, bucket, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Close()
}

// verifyChunks compares what the store lists with what a manifest needs of the
// chosen shards, nil for all. Errors are of the reason SnapshotCorrupt, or the store's.
func verifyChunks(ctx context.Context, bucket *blob.Bucket, at string, m *Manifest, chosen func(shard int) bool) error {
	for i, shard := range m.Shards {
		if len(shard.Chunks) == 0 || chosen != nil && !chosen(i) {
			continue
		}
		// Names sort as chunks do, so two fingers go over two lists.
		prefix := path.Join(at, path.Dir(chunkName(m.Folder, i, 0))) + "/"
		list := bucket.List(&blob.ListOptions{Prefix: prefix})
		next := 0
		for next < len(shard.Chunks) {
			object, err := list.Next(ctx)
			name := path.Join(at, chunkName(m.Folder, i, next))
			if err != nil && !errors.Is(err, io.EOF) {
				return store.Failure(err, "listing the snapshot's chunks")
			}
			if err != nil || object.Key > name {
				return snapshotapi.FailFinally(v1alpha1.ReasonSnapshotCorrupt, "the snapshot lacks chunk %d of %d of shard %d; use another snapshot", next, len(shard.Chunks), i)
			}
			if object.Key < name {
				continue
			}
			if object.Size != int64(shard.Chunks[next].Stored) {
				return snapshotapi.FailFinally(v1alpha1.ReasonSnapshotCorrupt, "chunk %d of shard %d has %d bytes and should have %d; use another snapshot", next, i, object.Size, shard.Chunks[next].Stored)
			}
			next++
		}
	}
	return nil
}

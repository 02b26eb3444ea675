package format

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// InspectOptions select what Inspect prints and reads.
type InspectOptions struct {
	// Chunks lists the chunks.
	Chunks bool
	// Keys lists the items with size, flags and expiry, but without values.
	Keys bool
	// Verify reads all chunks and compares their checksums.
	Verify bool
}

// List prints the paths of the complete snapshots in a store.
func List(ctx context.Context, bucket *blob.Bucket, w io.Writer) error {
	objects := bucket.List(nil)
	for {
		object, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return store.Failure(err, "listing the snapshots")
		}
		if path.Base(object.Key) == ManifestName {
			fmt.Fprintln(w, path.Dir(object.Key))
		}
	}
}

// Inspect prints the content of the snapshot at a path. A damaged snapshot is the same
// error as in a load.
func Inspect(ctx context.Context, bucket *blob.Bucket, at string, w io.Writer, o InspectOptions) error {
	m, err := Open(ctx, bucket, at)
	if err != nil {
		return err
	}
	if err := m.VerifyChunks(ctx, bucket, at, nil); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	totals := m.Describe()
	fmt.Fprintf(out, "Snapshot:   %s\n", at)
	fmt.Fprintf(out, "Format:     %s, version %d\n", Name, Version)
	fmt.Fprintf(out, "Memcached:  %s/%s, UID %s, version %s\n", m.Memcached.Namespace, m.Memcached.Name, m.Memcached.UID, m.Memcached.Version)
	fmt.Fprintf(out, "Backup:     UID %s\n", m.TaskID)
	fmt.Fprintf(out, "Taken at:   %s (complete at %s)\n", m.TakenAt.Format(time.RFC3339), m.CreatedAt.Format(time.RFC3339))
	fmt.Fprintf(out, "Items:      %s\n", m.Summary())
	fmt.Fprintf(out, "Bytes:      %d of keys and values of %d items, stored as %d\n", totals.Bytes, totals.Items, totals.StoredBytes)
	for i, shard := range m.Shards {
		fmt.Fprintf(out, "Shard %-4d  %d items, %d bytes, %d chunks\n", i, shard.Items, shard.Bytes, len(shard.Chunks))
		if !o.Chunks && !o.Keys && !o.Verify {
			continue
		}
		if err := inspectShard(ctx, bucket, at, m, i, out, o); err != nil {
			_ = out.Flush() // the error matters more
			return err
		}
	}
	if o.Verify {
		fmt.Fprintln(out, "All checksums match.")
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// inspectShard prints the chunks of a shard, and reads them if necessary.
func inspectShard(ctx context.Context, bucket *blob.Bucket, at string, m *Manifest, shard int, out io.Writer, o InspectOptions) error {
	reader := &chunkReader{bucket: bucket, path: at, manifest: m, shard: shard}
	decoder, err := newDecoder()
	if err != nil {
		return fmt.Errorf("creating a decompressor: %w", err)
	}
	defer decoder.Close()
	var stored, raw []byte
	left := 0 // bytes of a value that continues in the next chunk
	for i, chunk := range reader.chunks() {
		if o.Chunks {
			fmt.Fprintf(out, "  %s  %d items, %d bytes, stored as %d, %s\n", path.Join(at, chunkName(m.Folder, shard, i)), chunk.Items, chunk.Bytes, chunk.Stored, chunk.Checksum)
		}
		if !o.Keys && !o.Verify {
			continue
		}
		if stored, err = reader.fetch(ctx, i, stored); err != nil {
			return err
		}
		if raw, left, err = inspectChunk(decoder, stored, raw, chunk, left, out, o.Keys); err != nil {
			return reader.corrupt(i, err)
		}
	}
	if left != 0 {
		return wire.FailFinally(wire.ReasonSnapshotCorrupt, "the last value of shard %d is incomplete; use another snapshot", shard)
	}
	return nil
}

// inspectChunk checks a chunk and prints its items. left is the number of bytes that
// the last value of the chunk before still lacks.
func inspectChunk(decoder *zstd.Decoder, stored, raw []byte, chunk Chunk, left int, out io.Writer, print bool) ([]byte, int, error) {
	raw, err := decode(decoder, stored, raw, chunk)
	if err != nil {
		return nil, 0, err
	}
	n := min(left, len(raw))
	rest := raw[n:]
	left -= n
	items := 0
	for len(rest) > 0 {
		var item Record
		if item, rest, err = parseRecord(rest); err != nil {
			return nil, 0, err
		}
		items++
		if print {
			expires := "never"
			if item.Expires != 0 {
				expires = time.Unix(item.Expires, 0).UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(out, "  %q  %d bytes, flags %d, expires %s\n", item.Key, item.Size, item.Flags, expires)
		}
		n := min(item.Size, len(rest))
		left, rest = item.Size-n, rest[n:]
	}
	if items != chunk.Items {
		return nil, 0, errRecord
	}
	return raw, left, nil
}

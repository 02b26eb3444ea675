package snapshot

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// Inspect prints what is in the snapshot at a path. It changes nothing, and an error
// says as that of a load what is wrong with the snapshot.
func Inspect(ctx context.Context, bucket *blob.Bucket, at string, w io.Writer, o InspectOptions) error {
	l := &loader{bucket: bucket, task: snapshotapi.Task{Path: at}, env: Env{}.withDefaults()}
	if err := l.open(ctx); err != nil {
		return err
	}
	m := l.manifest
	if err := verifyChunks(ctx, bucket, at, m, nil); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	items, bytes, stored := m.totals()
	fmt.Fprintf(out, "Snapshot:   %s\n", at)
	fmt.Fprintf(out, "Format:     %s, version %d\n", Format, FormatVersion)
	fmt.Fprintf(out, "Memcached:  %s/%s, UID %s, version %s\n", m.Memcached.Namespace, m.Memcached.Name, m.Memcached.UID, m.Memcached.Version)
	fmt.Fprintf(out, "Backup:     UID %s\n", m.TaskID)
	fmt.Fprintf(out, "Taken at:   %s (complete at %s)\n", m.TakenAt.Format(time.RFC3339), m.CreatedAt.Format(time.RFC3339))
	fmt.Fprintf(out, "Items:      %s\n", m.summary())
	fmt.Fprintf(out, "Bytes:      %d of keys and values of %d items, stored as %d\n", bytes, items, stored)
	for i, shard := range m.Shards {
		fmt.Fprintf(out, "Shard %-4d  %d items, %d bytes, %d chunks\n", i, shard.Items, shard.Bytes, len(shard.Chunks))
		if !o.Chunks && !o.Keys && !o.Verify {
			continue
		}
		if err := inspectShard(ctx, bucket, at, m, i, out, o); err != nil {
			_ = out.Flush() // the error is what there is to tell
			return err
		}
	}
	if o.Verify {
		fmt.Fprintln(out, "All chunks have their checksums.")
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// inspectShard prints the chunks of a shard, and reads them if that is asked for.
func inspectShard(ctx context.Context, bucket *blob.Bucket, at string, m *Manifest, shard int, out io.Writer, o InspectOptions) error {
	reader := &chunkReader{bucket: bucket, path: at, manifest: m, shard: shard}
	decoder, err := newDecoder()
	if err != nil {
		return fmt.Errorf("making a decompressor: %w", err)
	}
	defer decoder.Close()
	var stored, raw []byte
	left := 0 // bytes of a value that goes on
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
		return snapshotapi.FailFinally(v1alpha1.ReasonSnapshotCorrupt, "the last value of shard %d does not end; use another snapshot", shard)
	}
	return nil
}

// inspectChunk checks a chunk and prints its items. left is how many bytes of the
// last value before it are in it and further ones.
func inspectChunk(decoder *zstd.Decoder, stored, raw []byte, chunk Chunk, left int, out io.Writer, print bool) ([]byte, int, error) {
	raw, err := decode(decoder, stored, raw, chunk)
	if err != nil {
		return nil, 0, err
	}
	here := min(left, len(raw))
	rest := raw[here:]
	left -= here
	items := 0
	for len(rest) > 0 {
		var item record
		if item, rest, err = parseRecord(rest); err != nil {
			return nil, 0, err
		}
		items++
		if print {
			expires := "never"
			if item.expires != 0 {
				expires = time.Unix(item.expires, 0).UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(out, "  %q  %d bytes, flags %d, expires %s\n", item.key, item.size, item.flags, expires)
		}
		n := min(item.size, len(rest))
		left, rest = item.size-n, rest[n:]
	}
	if items != chunk.Items {
		return nil, 0, errRecord
	}
	return raw, left, nil
}

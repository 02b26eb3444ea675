package format

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"time"

	"gocloud.dev/blob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
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
	objects, listed := bucket.List(nil).All(ctx)
	for object := range objects {
		if path.Base(object.Key) == ManifestName {
			fmt.Fprintln(w, printable(path.Dir(object.Key)))
		}
	}
	return store.Failure(listed(), "listing the snapshots")
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
	fmt.Fprintf(out, "Snapshot:   %s\n", printable(at))
	fmt.Fprintf(out, "Format:     %s, version %d\n", Name, Version)
	fmt.Fprintf(out, "Memcached:  %s/%s, UID %s, version %s\n", printable(m.Memcached.Namespace), printable(m.Memcached.Name), printable(m.Memcached.UID), printable(m.Memcached.Version))
	fmt.Fprintf(out, "Backup:     UID %s\n", printable(m.TaskID))
	fmt.Fprintf(out, "Taken at:   %s (complete at %s)\n", m.TakenAt.Format(time.RFC3339), m.CreatedAt.Format(time.RFC3339))
	fmt.Fprintf(out, "Items:      %s\n", m.Summary())
	fmt.Fprintf(out, "Bytes:      %d of keys and values of %d items, stored as %d\n", totals.Bytes, totals.Items, totals.StoredBytes)
	for i, shard := range m.Shards {
		fmt.Fprintf(out, "Shard %-4d  %d items, %d bytes, %d chunks\n", i, shard.Items, shard.Bytes, len(shard.Chunks))
		if o.Chunks {
			for j, chunk := range shard.Chunks {
				fmt.Fprintf(out, "  %s  %d items, %d bytes, stored as %d, %s\n", printable(path.Join(at, chunkName(m.Folder, i, j))), chunk.Items, chunk.Bytes, chunk.Stored, chunk.Checksum)
			}
		}
		if !o.Keys && !o.Verify {
			continue
		}
		if err := m.ReadShard(ctx, bucket, at, i, printer{out, o.Keys}); err != nil {
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

// printable returns a text from the store, quoted if it contains control characters, which a
// terminal would execute.
func printable(text string) string {
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` {
		return quoted
	}
	return text
}

// printer is a Sink that prints the items, or only reads them.
type printer struct {
	out   io.Writer
	print bool
}

func (p printer) Put(_ context.Context, item Record, _ []byte) error {
	if p.print {
		expires := "never"
		if item.Expires != 0 {
			expires = time.Unix(item.Expires, 0).UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(p.out, "  %q  %d bytes, flags %d, expires %s\n", item.Key, item.Size, item.Flags, expires)
	}
	return nil
}

func (p printer) PutLarge(ctx context.Context, item Record, value *LargeValue) error {
	_ = p.Put(ctx, item, nil) // it returns no error
	return value.WriteTo(ctx, io.Discard, nil)
}

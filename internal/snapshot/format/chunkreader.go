package format

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// fetchAttempts is how often a chunk is requested from the store.
const fetchAttempts = 3

// Sink receives the items of a shard in the order of the snapshot.
type Sink interface {
	// Put receives an item; its key and value are valid until Put returns.
	Put(ctx context.Context, item Record, value []byte) error
	// PutLarge receives an item whose value spans several chunks.
	PutLarge(ctx context.Context, item Record, value *LargeValue) error
}

// ReadShard passes the items of one shard of the snapshot at a path to a sink. It
// fetches a chunk while the sink receives the one before. Errors are those of the
// sink, or a Failure.
func (m *Manifest) ReadShard(ctx context.Context, bucket *blob.Bucket, at string, shard int, sink Sink) error {
	decoder, err := newDecoder()
	if err != nil {
		return fmt.Errorf("creating a decompressor: %w", err)
	}
	defer decoder.Close()
	ctx, cancel := context.WithCancel(ctx)
	reader := &chunkReader{bucket: bucket, path: at, manifest: m, shard: shard}
	chunks := reader.chunks()
	take := reader.prefetch(ctx, 0, nil)
	defer func() { _, _ = take() }()
	defer cancel()
	var raw []byte
	for i := 0; i < len(chunks); {
		stored, err := take()
		if err != nil {
			return err
		}
		if raw, err = decode(decoder, stored, raw, chunks[i]); err != nil {
			return reader.corrupt(i, err)
		}
		item, rest, err := parseRecord(raw)
		if err != nil {
			return reader.corrupt(i, err)
		}
		if item.Size <= maxUndivided {
			take = reader.prefetch(ctx, i+1, stored)
			if err := reader.putChunk(ctx, i, raw, sink); err != nil {
				return err
			}
			i++
			continue
		}
		n, err := reader.span(i, item, len(rest))
		if err != nil || chunks[i].Items != 1 {
			return reader.corrupt(i, errRecord)
		}
		take = reader.prefetch(ctx, i+n, stored)
		if err := sink.PutLarge(ctx, item, &LargeValue{reader: reader, first: i, chunks: n}); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// LargeValue is a value that spans several chunks.
type LargeValue struct {
	reader        *chunkReader
	first, chunks int
}

// WriteTo writes the value after a prefix. It verifies each chunk before it writes its
// part, so that an error leaves an incomplete value.
func (v *LargeValue) WriteTo(ctx context.Context, w io.Writer, prefix []byte) error {
	decoder, err := newDecoder()
	if err != nil {
		return wire.Fail(wire.ReasonJobFailed, "creating a decompressor: %w", err)
	}
	defer decoder.Close()
	var stored, raw []byte
	for i := v.first; i < v.first+v.chunks; i++ {
		if stored, err = v.reader.fetch(ctx, i, stored); err != nil {
			return err
		}
		if raw, err = decode(decoder, stored, raw, v.reader.chunks()[i]); err != nil {
			return v.reader.corrupt(i, err)
		}
		part := raw
		if i == v.first {
			if _, part, err = parseRecord(raw); err != nil {
				return v.reader.corrupt(i, err)
			}
			if _, err := w.Write(prefix); err != nil {
				return err
			}
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

type chunkReader struct {
	bucket   *blob.Bucket
	path     string
	manifest *Manifest
	shard    int
}

func (c *chunkReader) chunks() []Chunk { return c.manifest.Shards[c.shard].Chunks }

func (c *chunkReader) corrupt(chunk int, err error) error {
	return wire.FailFinally(wire.ReasonSnapshotCorrupt, "chunk %d of %d of shard %d is damaged: %w; use another snapshot", chunk, len(c.chunks()), c.shard, err)
}

func (c *chunkReader) putChunk(ctx context.Context, chunk int, raw []byte, sink Sink) error {
	items := c.chunks()[chunk].Items
	for ; len(raw) > 0; items-- {
		item, rest, err := parseRecord(raw)
		if err == nil && item.Size > maxUndivided {
			err = errRecord
		}
		if err != nil {
			return c.corrupt(chunk, err)
		}
		raw = rest[item.Size:]
		if err := sink.Put(ctx, item, rest[:item.Size]); err != nil {
			return err
		}
	}
	if items != 0 {
		return c.corrupt(chunk, errRecord)
	}
	return nil
}

// fetch returns a chunk as stored, in buffer's memory if it is large enough.
func (c *chunkReader) fetch(ctx context.Context, chunk int, buffer []byte) ([]byte, error) {
	for attempt := 1; ; attempt++ {
		stored, err := c.read(ctx, chunk, buffer)
		if err == nil {
			return stored, nil
		}
		if gcerrors.Code(err) == gcerrors.NotFound {
			return nil, c.corrupt(chunk, errors.New("it was deleted"))
		}
		err = store.Failure(err, "reading a chunk of the snapshot")
		if f := wire.AsFailure(err); attempt == fetchAttempts || f != nil && f.Final {
			return nil, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (c *chunkReader) read(ctx context.Context, chunk int, buffer []byte) ([]byte, error) {
	r, err := c.bucket.NewReader(ctx, path.Join(c.path, chunkName(c.manifest.Folder, c.shard, chunk)), nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	size := c.chunks()[chunk].Stored
	if r.Size() != int64(size) {
		return nil, c.corrupt(chunk, fmt.Errorf("it has %d bytes instead of %d", r.Size(), size))
	}
	if cap(buffer) < size {
		buffer = make([]byte, size)
	}
	_, err = io.ReadFull(r, buffer[:size])
	return buffer[:size], err
}

// span returns how many chunks a record takes that begins a chunk and has the first
// bytes of its value there.
func (c *chunkReader) span(chunk int, item Record, first int) (int, error) {
	left := item.Size - first
	n := 1
	for ; left > 0 && chunk+n < len(c.chunks()); n++ {
		next := c.chunks()[chunk+n]
		if next.Items != 0 {
			return 0, errRecord
		}
		left -= next.Bytes
	}
	if left != 0 {
		return 0, errRecord
	}
	return n, nil
}

// prefetch fetches a chunk, if it exists, in the background, and returns a function that waits for the chunk.
func (c *chunkReader) prefetch(ctx context.Context, chunk int, buffer []byte) (take func() ([]byte, error)) {
	take = sync.OnceValues(func() ([]byte, error) {
		if chunk >= len(c.chunks()) {
			return nil, nil
		}
		return c.fetch(ctx, chunk, buffer)
	})
	go func() { _, _ = take() }()
	return take
}

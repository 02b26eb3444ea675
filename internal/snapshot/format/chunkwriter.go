package format

import (
	"bufio"
	"context"
	"fmt"
	"path"
	"sync"

	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
)

// ChunkWriter writes the chunks of one shard. It stores a chunk while it fills the
// next one, and never more than one at a time.
type ChunkWriter struct {
	// Shard lists what was written. The caller counts Gone, Stale and Unnamed.
	Shard Shard

	ctx    context.Context
	bucket *blob.Bucket
	path   string // of the snapshot
	folder string

	encoder *zstd.Encoder
	raw     []byte // content of the chunk that is being filled
	items   int    // whose records begin in it
	stored  []byte // the chunk that is being stored
	spare   []byte
	// wait waits until the last chunk is stored.
	wait    func() error
	highest int // number of chunks ever stored: a value that was interrupted leaves some
}

// NewChunkWriter returns a writer of the chunks in a folder of the snapshot at a path.
// Close must be called.
func NewChunkWriter(ctx context.Context, bucket *blob.Bucket, at, folder string, ordinal int) (*ChunkWriter, error) {
	encoder, err := newEncoder()
	if err != nil {
		return nil, fmt.Errorf("creating a compressor: %w", err)
	}
	return &ChunkWriter{
		Shard: Shard{Ordinal: ordinal, Chunks: []Chunk{}},
		ctx:   ctx, bucket: bucket, path: at, folder: folder, encoder: encoder,
		raw: make([]byte, 0, chunkTarget), wait: func() error { return nil },
	}, nil
}

// Add reads the value of an item, and the line end after it, from a memcached. After
// an error nothing of the item is in the snapshot. Errors of the store are a Failure.
func (w *ChunkWriter) Add(item Record, r *bufio.Reader) error {
	if item.Size > maxUndivided {
		return w.addLarge(item, r)
	}
	if len(w.raw)+maxRecordHead+item.Size > chunkTarget {
		if err := w.flush(); err != nil {
			return err
		}
	}
	raw, err := protocol.ReadValue(r, item.append(w.raw), item.Size)
	if err != nil {
		return err // w.raw ends where it did before
	}
	w.raw = raw
	w.items++
	w.count(item)
	return nil
}

func (w *ChunkWriter) count(item Record) {
	w.Shard.Items++
	w.Shard.Bytes += int64(len(item.Key) + item.Size)
}

func (w *ChunkWriter) addLarge(item Record, r *bufio.Reader) error {
	if err := w.flush(); err != nil {
		return err
	}
	before := len(w.Shard.Chunks)
	undo := func(err error) error {
		w.raw, w.items = w.raw[:0], 0
		w.Shard.Chunks = w.Shard.Chunks[:before]
		return err
	}
	w.raw = item.append(w.raw)
	w.items = 1
	for left := item.Size; left > 0; {
		n := min(left, chunkTarget-len(w.raw))
		var err error
		if w.raw, err = protocol.ReadPart(r, w.raw, n); err != nil {
			return undo(err)
		}
		left -= n
		if left == 0 {
			// Before the last chunk is stored: a value counts only once it is complete.
			if err := protocol.EndValue(r); err != nil {
				return undo(err)
			}
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.count(item)
	return nil
}

// flush starts to store the chunk that is being filled.
func (w *ChunkWriter) flush() error {
	if len(w.raw) == 0 {
		return nil
	}
	w.spare = w.encoder.EncodeAll(w.raw, w.spare[:0])
	if err := w.wait(); err != nil {
		return err
	}
	w.stored, w.spare = w.spare, w.stored
	name := path.Join(w.path, chunkName(w.folder, w.Shard.Ordinal, len(w.Shard.Chunks)))
	w.Shard.Chunks = append(w.Shard.Chunks, Chunk{Items: w.items, Bytes: len(w.raw), Stored: len(w.stored), Checksum: checksum(w.stored)})
	w.highest = max(w.highest, len(w.Shard.Chunks))
	w.raw, w.items = w.raw[:0], 0
	stored := w.stored
	wait := sync.OnceValue(func() error {
		return store.Failure(store.Put(w.ctx, w.bucket, name, stored), "writing a chunk of the snapshot")
	})
	w.wait = wait
	go func() { _ = wait() }() // not w.wait, which can be that of the next chunk before this goroutine runs
	return nil
}

// Finish stores what is left and returns the shard's entry of the manifest.
func (w *ChunkWriter) Finish() (Shard, error) {
	if err := w.flush(); err != nil {
		return Shard{}, err
	}
	if err := w.wait(); err != nil {
		return Shard{}, err
	}
	// Chunks of a large value that was interrupted and was then deleted in memcached.
	for extra := len(w.Shard.Chunks); extra < w.highest; extra++ {
		if err := deleteObject(w.ctx, w.bucket, path.Join(w.path, chunkName(w.folder, w.Shard.Ordinal, extra))); err != nil {
			return Shard{}, err
		}
	}
	return w.Shard, nil
}

// Close waits for the chunk that is being stored and releases memory.
func (w *ChunkWriter) Close() {
	_ = w.wait()          // the save failed already, with its own error
	_ = w.encoder.Close() // it buffers nothing
}

package snapshot

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path"
	"time"

	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
	"github.com/memcached-operator/memcached-operator/internal/store"
)

// chunkWriter makes the chunks of one shard. A chunk is stored while the next one is
// filled; there is never more than one on its way.
type chunkWriter struct {
	ctx    context.Context
	bucket *blob.Bucket
	path   string // of the snapshot
	folder string
	shard  Shard

	encoder *zstd.Encoder
	raw     []byte // the chunk that is filled
	items   int    // whose records begin in it
	stored  []byte // the chunk that is on its way, or is not any more
	spare   []byte
	storing chan error // of the chunk that is on its way; nil when there is none
	most    int        // chunks that were ever there: a value that is given up leaves some
}

func newChunkWriter(ctx context.Context, bucket *blob.Bucket, at, folder string, ordinal int) (*chunkWriter, error) {
	encoder, err := newEncoder()
	if err != nil {
		return nil, fmt.Errorf("making a compressor: %w", err)
	}
	return &chunkWriter{
		ctx: ctx, bucket: bucket, path: at, folder: folder, shard: Shard{Ordinal: ordinal, Chunks: []Chunk{}},
		encoder: encoder,
		raw:     make([]byte, 0, filled),
	}, nil
}

// item takes an item's value from a connection. When that fails nothing of the item
// is left. Errors of the store are a Failure.
func (w *chunkWriter) item(item record, conn net.Conn, r *bufio.Reader) error {
	if item.size > MaxWhole {
		return w.large(item, conn, r)
	}
	if len(w.raw)+maxHead+item.size > filled {
		if err := w.flush(); err != nil {
			return err
		}
	}
	before := len(w.raw)
	w.raw = item.append(w.raw)
	raw, err := memcache.ReadValue(r, w.raw, item.size)
	if err != nil {
		w.raw = w.raw[:before]
		return err
	}
	w.raw = raw
	w.count(item)
	return nil
}

func (w *chunkWriter) count(item record) {
	w.items++
	w.shard.Items++
	w.shard.Bytes += int64(len(item.key) + item.size)
}

// large takes a value through as many chunks as it needs, which have nothing else.
func (w *chunkWriter) large(item record, conn net.Conn, r *bufio.Reader) (err error) {
	if err := w.flush(); err != nil {
		return err
	}
	before := len(w.shard.Chunks)
	undo := func() {
		w.raw, w.items = w.raw[:0], 0
		w.shard.Chunks = w.shard.Chunks[:before]
	}
	w.raw = item.append(w.raw)
	w.items = 1
	for left := item.size; left > 0; {
		n := min(left, filled-len(w.raw))
		if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			undo()
			return err
		}
		if w.raw, err = memcache.ReadPart(r, w.raw, n); err != nil {
			undo()
			return err
		}
		left -= n
		if left == 0 {
			// Before the last chunk goes: nothing is counted that did not end.
			if err := memcache.EndValue(r); err != nil {
				undo()
				return err
			}
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.shard.Items++
	w.shard.Bytes += int64(len(item.key) + item.size)
	return conn.SetReadDeadline(time.Now().Add(silence))
}

// flush has what is there stored as a chunk.
func (w *chunkWriter) flush() error {
	if len(w.raw) == 0 {
		return nil
	}
	w.spare = w.encoder.EncodeAll(w.raw, w.spare[:0])
	if err := w.wait(); err != nil {
		return err
	}
	w.stored, w.spare = w.spare, w.stored
	name := path.Join(w.path, chunkName(w.folder, w.shard.Ordinal, len(w.shard.Chunks)))
	w.shard.Chunks = append(w.shard.Chunks, Chunk{Items: w.items, Bytes: len(w.raw), Stored: len(w.stored), Checksum: checksum(w.stored)})
	w.most = max(w.most, len(w.shard.Chunks))
	w.raw, w.items = w.raw[:0], 0
	done := make(chan error, 1)
	w.storing = done
	go func(stored []byte) { done <- writeObject(w.ctx, w.bucket, name, stored) }(w.stored)
	return nil
}

// wait waits for the chunk that is on its way.
func (w *chunkWriter) wait() error {
	if w.storing == nil {
		return nil
	}
	err := <-w.storing
	w.storing = nil
	return store.Failure(err, "writing a chunk of the snapshot")
}

// finish stores what is left and returns what there is.
func (w *chunkWriter) finish() (Shard, error) {
	if err := w.flush(); err != nil {
		return Shard{}, err
	}
	if err := w.wait(); err != nil {
		return Shard{}, err
	}
	// What a value left that was given up and did not come again.
	for extra := len(w.shard.Chunks); extra < w.most; extra++ {
		if err := deleteObject(w.ctx, w.bucket, path.Join(w.path, chunkName(w.folder, w.shard.Ordinal, extra))); err != nil {
			return Shard{}, err
		}
	}
	return w.shard, nil
}

// close waits for what is on its way, whatever becomes of it.
func (w *chunkWriter) close() {
	_ = w.wait()          // the run has ended with an error of its own
	_ = w.encoder.Close() // it holds nothing
}

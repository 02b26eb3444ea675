package snapshot

import (
	"context"
	"fmt"
	"io"
	"path"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/store"
)

// fetchTries is how often a chunk is asked for.
const fetchTries = 3

// chunkReader reads the chunks of one shard.
type chunkReader struct {
	bucket   *blob.Bucket
	path     string
	manifest *Manifest
	shard    int
}

func (c *chunkReader) chunks() []Chunk { return c.manifest.Shards[c.shard].Chunks }

// corrupt is the Failure of a chunk.
func (c *chunkReader) corrupt(chunk int, err error) error {
	return snapshotapi.FailFinally(v1alpha1.ReasonSnapshotCorrupt, "chunk %d of %d of shard %d is damaged: %w; use another snapshot", chunk, len(c.chunks()), c.shard, err)
}

// fetch returns what is stored of a chunk, in into's memory if it is enough.
func (c *chunkReader) fetch(ctx context.Context, chunk int, into []byte) ([]byte, error) {
	for try := 1; ; try++ {
		stored, err := c.read(ctx, chunk, into)
		if err == nil {
			return stored, nil
		}
		if gcerrors.Code(err) == gcerrors.NotFound {
			return nil, c.corrupt(chunk, fmt.Errorf("it is not there any more"))
		}
		err = store.Failure(err, "reading a chunk of the snapshot")
		if f := snapshotapi.AsFailure(err); try == fetchTries || f != nil && f.Final {
			return nil, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (c *chunkReader) read(ctx context.Context, chunk int, into []byte) ([]byte, error) {
	r, err := c.bucket.NewReader(ctx, path.Join(c.path, chunkName(c.manifest.Folder, c.shard, chunk)), nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	size := c.chunks()[chunk].Stored
	if r.Size() != int64(size) {
		return nil, c.corrupt(chunk, fmt.Errorf("it has %d bytes and should have %d", r.Size(), size))
	}
	if cap(into) < size {
		into = make([]byte, size)
	}
	_, err = io.ReadFull(r, into[:size])
	return into[:size], err
}

// span returns how many chunks a record takes whose head is at the begin of a chunk,
// with so many bytes of its value behind it, or an error if that is not as the format
// says.
func (c *chunkReader) span(chunk int, item record, here int) (int, error) {
	left := item.size - here
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

// prefetch fetches one chunk ahead of the one that is read.
type prefetch struct {
	reader *chunkReader
	spare  []byte
	chunk  int
	result chan fetched
}

type fetched struct {
	stored []byte
	err    error
}

// start has a chunk be fetched, if there is such a one.
func (p *prefetch) start(ctx context.Context, chunk int) {
	if chunk >= len(p.reader.chunks()) {
		return
	}
	into := p.spare
	p.spare = nil
	result := make(chan fetched, 1)
	p.chunk, p.result = chunk, result
	go func() {
		stored, err := p.reader.fetch(ctx, chunk, into)
		result <- fetched{stored, err}
	}()
}

// take waits for the chunk that was started last.
func (p *prefetch) take() ([]byte, error) {
	got := <-p.result
	p.result = nil
	return got.stored, got.err
}

// done gives the memory of a chunk back.
func (p *prefetch) done(stored []byte) { p.spare = stored }

// stop waits for what was started.
func (p *prefetch) stop() {
	if p.result != nil {
		<-p.result
	}
}

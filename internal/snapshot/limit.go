package snapshot

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// limit bounds what is asked of one shard.
type limit struct {
	items, bytes *rate.Limiter // nil is no limit
	// batchItems and batchBytes are the most of a batch: a server that is asked for
	// much at once keeps its clients waiting, whatever the rate over a second.
	batchItems int
	batchBytes int64
}

const (
	maxBatchItems = 256
	maxBatchBytes = 256 << 10
	// batchesPerSecond is how many batches a limit is spread over.
	batchesPerSecond = 200
)

func newLimit(task snapshotapi.Task) limit {
	l := limit{batchItems: maxBatchItems, batchBytes: maxBatchBytes}
	if n := task.ItemsPerSecond; n > 0 {
		l.batchItems = min(max(n/batchesPerSecond, 1), maxBatchItems)
		l.items = rate.NewLimiter(rate.Limit(n), l.batchItems)
	}
	if n := task.BytesPerSecond; n > 0 {
		l.batchBytes = min(max(n/batchesPerSecond, 1), maxBatchBytes)
		l.bytes = rate.NewLimiter(rate.Limit(n), int(l.batchBytes))
	}
	return l
}

// wait returns when so much may be asked for.
func (l limit) wait(ctx context.Context, items int, bytes int64) error {
	if l.items != nil {
		if err := l.items.WaitN(ctx, min(items, l.batchItems)); err != nil {
			return cause(ctx, err)
		}
	}
	if l.bytes == nil {
		return nil
	}
	// One item may be more than a batch.
	for bytes > 0 {
		n := min(bytes, l.batchBytes)
		if err := l.bytes.WaitN(ctx, int(n)); err != nil {
			return cause(ctx, err)
		}
		bytes -= n
	}
	return nil
}

// cause is why the context ended, or the error if it has not: a limiter gives up
// before a deadline that it cannot meet.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

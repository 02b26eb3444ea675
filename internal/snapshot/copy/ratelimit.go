package copy

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

type rateLimit struct {
	items, bytes *rate.Limiter // nil means no limit
	// batchItems and batchBytes limit one batch: many requests at once delay other
	// clients, whatever the rate over a second.
	batchItems int
	batchBytes int64
}

const (
	maxBatchItems = 256
	maxBatchBytes = 256 << 10
	// batchesPerSecond is how many batches a limit is spread over.
	batchesPerSecond = 200
)

func newRateLimit(task wire.Task) rateLimit {
	l := rateLimit{batchItems: maxBatchItems, batchBytes: maxBatchBytes}
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

func (l rateLimit) wait(ctx context.Context, items int, bytes int64) error {
	if l.items != nil {
		if err := l.items.WaitN(ctx, min(items, l.batchItems)); err != nil {
			return err
		}
	}
	// One item may be larger than a batch.
	for ; l.bytes != nil && bytes > 0; bytes -= l.batchBytes {
		if err := l.bytes.WaitN(ctx, int(min(bytes, l.batchBytes))); err != nil {
			return err
		}
	}
	return nil
}

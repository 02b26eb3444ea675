package copy

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestLowRateLimitMakesSmallBatches(t *testing.T) {
	for _, c := range []struct {
		items      int
		bytes      int64
		batchItems int
		batchBytes int64
	}{
		{0, 0, 256, 256 << 10}, {20_000, 32 << 20, 100, 32 << 20 / 200}, {1, 1, 1, 1}, {1 << 30, 1 << 40, 256, 256 << 10},
	} {
		l := newRateLimit(wire.Task{ItemsPerSecond: c.items, BytesPerSecond: c.bytes})
		if l.batchItems != c.batchItems || l.batchBytes != c.batchBytes {
			t.Errorf("%d items and %d bytes a second: batches of %d and %d, want %d and %d", c.items, c.bytes, l.batchItems, l.batchBytes, c.batchItems, c.batchBytes)
		}
	}
}

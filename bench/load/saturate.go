package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Saturate does operations for a time, each as soon as the one before it is answered, with as many connections to each shard as
// a load has. It returns the operations per second and the p99 of their latencies. Each key must be stored, and none lost.
func (l *Load) Saturate(ctx context.Context, d time.Duration) (perSecond float64, p99 time.Duration, err error) {
	var group errgroup.Group
	var lock sync.Mutex
	var all []time.Duration
	began := time.Now()
	for n := range workers {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(l.Seed, uint64(n)+1)) //nolint:gosec // a small number
			shards := make([]worker, len(l.Addresses))
			for ordinal, address := range l.Addresses {
				shards[ordinal] = worker{Config: l.Config, address: address}
				defer shards[ordinal].close()
			}
			var latencies []time.Duration
			for time.Since(began) < d && ctx.Err() == nil {
				key := l.keys.pick(random)
				o := operation{kind: set, key: l.keys.names[key], due: time.Now()}
				if random.Float64() < getShare {
					o.kind = get
				}
				if result := shards[l.keys.shard[key]].do(o); result != hit && result != stored {
					return fmt.Errorf("%s was not stored or not found while nothing changes", o.key)
				}
				latencies = append(latencies, time.Since(o.due))
			}
			lock.Lock()
			defer lock.Unlock()
			all = append(all, latencies...)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, 0, err
	}
	if len(all) == 0 {
		return 0, 0, context.Cause(ctx)
	}
	slices.Sort(all)
	return float64(len(all)) / time.Since(began).Seconds(), all[len(all)*99/100], nil
}

package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
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
			shards := l.connect()
			defer shards.close()
			var latencies []time.Duration
			for time.Since(began) < d && ctx.Err() == nil {
				key := l.keys.pick(random)
				o := operation{kind: set, key: key, due: time.Now()}
				if random.Float64() < getShare {
					o.kind = get
				}
				if result := shards[l.Shard(l.keys.names[key])].do(&o); result != hit && result != stored {
					return fmt.Errorf("%s was not stored or not found while nothing changes", l.keys.names[key])
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

const (
	// readers of Stale are few, as the load continues beside them.
	readers = 4
	// staleTries bounds the reads of a key by Stale: on a busy machine, one can fail.
	staleTries = 50
)

// Stale reads all keys, also while the load runs, and returns how many have an older value than the last write before.
func (l *Load) Stale(ctx context.Context) (count int64, err error) {
	var group errgroup.Group
	var found atomic.Int64
	for n := range readers {
		group.Go(func() error {
			shards := l.connect()
			defer shards.close()
			for key := n; key < len(l.keys.names) && ctx.Err() == nil; key += readers {
				name, result := l.keys.names[key], failed
				for try := 0; result == failed && try < staleTries && ctx.Err() == nil; try++ {
					result = shards[l.Shard(name)].do(&operation{key: key, due: time.Now()})
				}
				switch result {
				case failed, wrong:
					return fmt.Errorf("reading %s failed", name)
				case stale:
					found.Add(1)
				default:
				}
			}
			return context.Cause(ctx)
		})
	}
	err = group.Wait()
	return found.Load(), err
}

// connections are one to each shard.
type connections []worker

func (l *Load) connect() connections {
	var all connections
	for _, address := range l.Addresses {
		all = append(all, l.worker(address))
	}
	return all
}

func (c connections) close() {
	for i := range c {
		c[i].close()
	}
}

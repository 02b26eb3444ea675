package scaling

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/test/bench/internal/workload"
	"github.com/memcached-operator/memcached-operator/test/bench/load"
	"github.com/memcached-operator/memcached-operator/test/bench/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	// warmUp is how long the load runs until it counts: it opens its connections in this time.
	warmUp = 2 * time.Second
	// sampleInterval is between two readings of the agents' memory.
	sampleInterval = 250 * time.Millisecond
	// sayInterval is between two lines of progress.
	sayInterval = 3 * time.Second
)

// bench measures a variant.
type bench struct {
	options
	variant
	space
	say     func(format string, args ...any)
	load    *load.Load
	clients lists
}

// result is what the bench measured of a variant.
type result struct {
	variant variant
	report  load.Report
	changes []change
}

// change is a change of the number of shards. The times are in this order: the load runs, the change begins, clients get the new list, all
// have it, the change is over, and the load has continued for a while.
type change struct {
	from, to                                            int
	runs, begins, published, switched, closed, measured time.Time
	// lasting are the keys with an older value than the last write at the end.
	lasting int64
	memory  memory
}

// memory of all agents in bytes, above what they used before the change: most, and at the end. moved is the number of moved items.
type memory struct{ most, end, moved int64 }

func (b *bench) measure(ctx context.Context) (result, error) {
	r := result{variant: b.variant}
	if err := b.Pull(ctx, b.version); err != nil {
		return r, err
	}
	if err := b.create(ctx, b.space, b.version); err != nil {
		return r, err
	}
	if err := b.await(ctx, b.space); err != nil {
		return r, err
	}
	addresses, err := b.AnsweringAddresses(ctx, keyOf(b.space), few)
	if err != nil {
		return r, err
	}
	b.clients.change(few, few, time.Now(), 0)
	if b.load, err = load.New(load.Config{Addresses: addresses, Keys: few * b.keys, Rate: b.rate, Seed: 1, Shard: b.clients.shard}); err != nil {
		return r, err
	}
	if err := b.load.Fill(ctx); err != nil {
		return r, err
	}
	b.load.Start()
	defer b.load.Stop()
	if err := cluster.Sleep(ctx, warmUp); err != nil {
		return r, err
	}
	for _, to := range []int{many, few} {
		c, err := b.change(ctx, to)
		if err != nil {
			return r, err
		}
		r.changes = append(r.changes, c)
	}
	r.report = b.load.Stop()
	if n := r.report.Sum(load.Span{From: r.report.Began, Until: time.Now()}).Wrong; n > 0 {
		return r, fmt.Errorf("%d gets returned the value of another key", n)
	}
	return r, nil
}

// await waits until there are as many shards as the space has.
func (b *bench) await(ctx context.Context, in space) error {
	return b.eventually(ctx, fmt.Sprintf("%d shards", in.Shards), func(ctx context.Context) error { return b.scaled(ctx, in, b.version) })
}

// eventually waits until check returns no error, and prints the error when it takes long.
func (b *bench) eventually(ctx context.Context, what string, check func(context.Context) error) error {
	said := time.Now()
	return cluster.Eventually(ctx, what, func(ctx context.Context) error {
		err := check(ctx)
		if err != nil && time.Since(said) > sayInterval {
			said = time.Now()
			b.say("  %s", strings.TrimSpace(err.Error()))
		}
		return err
	})
}

// change changes the number of shards under load.
func (b *bench) change(ctx context.Context, to int) (change, error) {
	c := change{from: b.Shards, to: to, runs: time.Now()}
	if err := cluster.Sleep(ctx, b.before); err != nil {
		return c, err
	}
	agents, err := b.watch(ctx)
	if err != nil {
		return c, err
	}
	defer agents.stop()
	c.begins = time.Now()
	b.Shards = to
	isFirst := b.variant.published != nil || to > c.from // the number of shards changes before the list
	if isFirst {
		if err := b.scale(ctx, b.space, b.version); err != nil {
			return c, err
		}
		if b.variant.published == nil {
			err = b.await(ctx, b.space)
		} else {
			err = b.eventually(ctx, "the new list", func(ctx context.Context) error { return b.variant.published(ctx, b.space) })
		}
		if err != nil {
			return c, err
		}
		if c.memory.moved, err = b.moved(ctx); err != nil {
			return c, err
		}
	}
	if to > c.from {
		address, err := b.Address(ctx, b.Namespace, cluster.ShardName(workload.Name, c.from))
		if err != nil {
			return c, err
		}
		b.load.Add(address)
	}
	mixed := b.mixed
	if b.atOnce {
		mixed = atOnce
	}
	c.published = time.Now()
	b.clients.change(c.from, to, c.published, mixed)
	b.note(c.begins, fmt.Sprintf("%d → %d: clients get the new list", c.from, to))
	if err := cluster.Sleep(ctx, mixed); err != nil {
		return c, err
	}
	c.switched = time.Now()
	if !isFirst {
		err = b.scale(ctx, b.space, b.version)
	} else if b.confirm != nil {
		err = b.confirm(ctx, b.space)
	}
	if err != nil {
		return c, err
	}
	if err := b.await(ctx, b.space); err != nil {
		return c, err
	}
	c.closed = time.Now()
	b.note(c.switched, "all clients have it, and the change is over")
	if err := cluster.Sleep(ctx, b.after); err != nil {
		return c, err
	}
	c.measured = time.Now()
	c.memory.most, c.memory.end = agents.stop()
	if c.lasting, err = b.load.Stale(ctx); err != nil {
		return c, err
	}
	b.note(c.closed, fmt.Sprintf("%d keys have an older value than the last write", c.lasting))
	return c, nil
}

// note prints what has happened since a time.
func (b *bench) note(since time.Time, what string) {
	is := b.load.Report().Sum(load.Span{From: since, Until: time.Now()})
	b.say("  %s; in %.1f s: hit ratio %.1f%%, %d stale reads, the oldest %.1f s, %d errors", what, time.Since(since).Seconds(), 100*is.Ratio(), is.Stale, is.Oldest.Seconds(), is.Errors)
}

// moved returns how many items have moved.
func (b *bench) moved(ctx context.Context) (int64, error) {
	if b.variant.published == nil {
		return 0, nil
	}
	m, err := b.Memcached(ctx, keyOf(b.space))
	if err != nil || m.Status.Scaling == nil {
		return 0, err
	}
	return m.Status.Scaling.Moved, nil
}

// watch reads the memory of all agents until it is stopped, if they run on this machine.
func (b *bench) watch(ctx context.Context) (*watched, error) {
	w := &watched{over: make(chan struct{}), before: map[int]int64{}}
	if b.variant.published != nil {
		m, err := b.Memcached(ctx, keyOf(b.space))
		if err != nil {
			return nil, err
		}
		w.owner = string(m.UID)
	}
	if _, err := w.read(); err != nil {
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go func() {
		defer close(w.over)
		for cluster.Sleep(ctx, sampleInterval) == nil {
			if now, err := w.read(); err == nil { // else an agent has just exited
				w.end, w.most = now, max(w.most, now)
			}
		}
	}()
	return w, nil
}

// watched are the agents of an owner. before is the memory of each one before the change.
type watched struct {
	owner     string
	before    map[int]int64
	mean      int64
	most, end int64
	cancel    context.CancelFunc
	over      chan struct{}
}

// read returns the memory of all agents above that before. The first call reads the latter; that of an agent which starts later is the mean
// of the others.
func (w *watched) read() (above int64, err error) {
	pids, err := usage.Of(w.owner)
	if err != nil || w.owner == "" {
		return 0, err
	}
	isFirst := len(w.before) == 0
	for _, pid := range pids {
		own, err := usage.Own(pid)
		if err != nil {
			return 0, err
		}
		if isFirst {
			w.before[pid] = own
			w.mean += own / int64(len(pids))
		}
		before, known := w.before[pid]
		if !known {
			before = w.mean
		}
		above += max(own-before, 0)
	}
	return above, nil
}

// stop returns the most memory above that before, and the last.
func (w *watched) stop() (most, end int64) {
	w.cancel()
	<-w.over
	return w.most, w.end
}

// lists are those of the clients.
type lists struct{ now atomic.Pointer[switching] }

// switching is a change of the list: each client gets the new one at a time of its own.
type switching struct {
	former, next ring.Ring
	at           []time.Time
}

// change lets the clients get another list from a time on, within a duration: each at a time of its own, which is the same in each run.
func (l *lists) change(from, to int, begins time.Time, within time.Duration) {
	s := &switching{former: ringOf(from), next: ringOf(to)}
	random := rand.New(rand.NewPCG(1, uint64(to))) //nolint:gosec // a small number
	for range clients {
		s.at = append(s.at, begins.Add(time.Duration(random.Float64()*float64(within))))
	}
	l.now.Store(s)
}

func ringOf(shards int) ring.Ring {
	r, err := ring.New(ring.Ketama, servers(shards))
	if err != nil {
		panic(err) // the names differ
	}
	return r
}

// shard returns the shard of a key for any of the clients.
func (l *lists) shard(key string) int {
	s := l.now.Load()
	if time.Now().Before(s.at[rand.IntN(clients)]) { //nolint:gosec // not a secret
		return s.former.Shard([]byte(key))
	}
	return s.next.Shard([]byte(key))
}

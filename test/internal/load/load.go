package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

const (
	// Every is how long a bucket is.
	Every = 500 * time.Millisecond
	// Timeout of one try of an operation, dialling included.
	Timeout = 250 * time.Millisecond
	// Patience is how long an operation is waited for in all.
	Patience = 500 * time.Millisecond
	// DatabaseTime is how long the read takes that follows a miss.
	DatabaseTime = 5 * time.Millisecond
	// ValueSize of every item, in bytes.
	ValueSize = 500
	// getShare of the operations are gets, the others sets.
	getShare = 0.8
	// workers of each shard, and so its connections.
	workers = 8
	// fillTimeout of one set while the key space is filled.
	fillTimeout = 10 * time.Second
)

// Config is which load there is.
type Config struct {
	// Addresses of the shards, as host:port, by ordinal.
	Addresses []string
	// Keys of the whole key space.
	Keys int
	// Rate is how many operations are due a second, on all shards together.
	Rate int
	// Seed of the choice of keys and operations: the same seed gives the same load.
	Seed uint64
}

// Load is a load, which may be filled, started and stopped once.
type Load struct {
	Config
	keys   keys
	shards []*shard
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// New returns a load that was not started.
func New(c Config) (*Load, error) {
	if len(c.Addresses) == 0 || c.Keys < 1 || c.Rate < 1 {
		return nil, fmt.Errorf("a load of %d operations a second over %d keys on %d shards is none", c.Rate, c.Keys, len(c.Addresses))
	}
	return &Load{Config: c, keys: newKeys(c.Keys, len(c.Addresses))}, nil
}

// Fill stores every key, so that each get is a hit as long as nothing is lost.
func (l *Load) Fill(ctx context.Context) error {
	var group errgroup.Group
	for ordinal, address := range l.Addresses {
		for worker := range workers {
			group.Go(func() error {
				if err := l.fill(ctx, ordinal, worker); err != nil {
					return fmt.Errorf("filling shard %d at %s: %w", ordinal, address, err)
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// fill stores the share of one worker in the keys of a shard.
func (l *Load) fill(ctx context.Context, ordinal, worker int) error {
	conn, err := memcache.Dial(ctx, "tcp", l.Addresses[ordinal])
	if err != nil {
		return err
	}
	defer conn.Close()
	for i, name := range l.keys.names {
		if l.keys.shard[i] != ordinal || i%workers != worker {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, fillTimeout)
		err := conn.Set(ctx, name, value(name), 0, 0)
		cancel()
		if err != nil {
			return fmt.Errorf("storing %s: %w", name, err)
		}
	}
	return nil
}

// Start begins the load.
func (l *Load) Start() {
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	began := time.Now()
	for _, address := range l.Addresses {
		l.shards = append(l.shards, newShard(address, newRecorder(began, Every), l.Rate))
	}
	for _, s := range l.shards {
		for range workers {
			l.ended.Go(s.work)
		}
	}
	l.ended.Go(func() { l.offer(ctx, began) })
}

// Stop ends the load, after what is under way, and returns what came of it all.
// It may be called again.
func (l *Load) Stop() Report {
	l.stop()
	l.ended.Wait()
	return l.Report()
}

// Report returns what came of the load so far. What was due less than Patience
// ago may still be under way.
func (l *Load) Report() Report {
	r := Report{Every: Every}
	now := time.Now()
	for _, s := range l.shards {
		r.Began = s.record.began
		r.Shards = append(r.Shards, s.record.counted(now))
	}
	return r
}

// offer hands every operation to its shard when it is due, until ctx ends.
func (l *Load) offer(ctx context.Context, began time.Time) {
	defer func() {
		for _, s := range l.shards {
			s.close()
		}
	}()
	random := rand.New(rand.NewPCG(l.Seed, 0))
	for i := 0; ctx.Err() == nil; i++ {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(l.Rate))
		time.Sleep(time.Until(due))
		o := operation{kind: set, due: due}
		if random.Float64() < getShare {
			o.kind = get
		}
		key := l.keys.pick(random)
		o.key = l.keys.names[key]
		l.shards[l.keys.shard[key]].offer(o)
	}
}

type kind int

const (
	get kind = iota
	set
	fill
)

// operation is one that is due.
type operation struct {
	kind kind
	key  string
	due  time.Time
}

// shard is the client's side of one shard.
type shard struct {
	address string
	record  *recorder

	lock   sync.Mutex
	closed bool
	queue  chan operation
}

func newShard(address string, record *recorder, rate int) *shard {
	// room for all that may wait: what finds none would not be answered in time
	return &shard{address: address, record: record, queue: make(chan operation, int(2*float64(rate)*Patience.Seconds())+1)}
}

// offer queues an operation, unless the load has ended.
func (s *shard) offer(o operation) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed {
		return
	}
	select {
	case s.queue <- o:
	default:
		s.record.record(o, failed, time.Now())
	}
}

func (s *shard) close() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.closed = true
	close(s.queue)
}

// work does what is queued, over one connection.
func (s *shard) work() {
	w := worker{address: s.address}
	defer w.close()
	for o := range s.queue {
		came := w.do(o)
		s.record.record(o, came, time.Now())
		if came == miss {
			time.AfterFunc(DatabaseTime, func() { s.offer(operation{kind: fill, key: o.key, due: time.Now()}) })
		}
	}
}

// worker does one operation at a time over a connection that it keeps.
type worker struct {
	address string
	conn    *memcache.Conn
}

func (w *worker) close() {
	if w.conn != nil {
		_ = w.conn.Close() // nothing is under way that could be lost
	}
}

// do does an operation, and tries it once more when it got no answer.
func (w *worker) do(o operation) outcome {
	for range 2 {
		left := time.Until(o.due.Add(Patience))
		if left <= 0 {
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), min(left, Timeout))
		came, err := w.try(ctx, o)
		cancel()
		if err == nil {
			return came
		}
		w.conn = nil // an error has closed it
		if memcache.IsAnswer(err) {
			break
		}
	}
	return failed
}

func (w *worker) try(ctx context.Context, o operation) (outcome, error) {
	if w.conn == nil {
		var err error
		if w.conn, err = memcache.Dial(ctx, "tcp", w.address); err != nil {
			return failed, err
		}
	}
	if o.kind != get {
		return stored, w.conn.Set(ctx, o.key, value(o.key), 0, 0)
	}
	item, err := w.conn.Get(ctx, o.key)
	switch {
	case err != nil:
		return failed, err
	case item == nil:
		return miss, nil
	case string(item.Value) != string(value(o.key)):
		return wrong, nil
	}
	return hit, nil
}

// value returns what belongs to a key, ValueSize bytes, and no other key's.
func value(key string) []byte {
	v := make([]byte, ValueSize)
	for i := range v {
		v[i] = '.'
	}
	copy(v, key)
	return v
}

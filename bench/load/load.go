// Package load puts a fixed load on the shards of a cache, as a client of an application does, and counts the results of all
// operations per shard and time bucket.
//
// A key belongs to the shard at crc32(key) modulo the number of addresses, as in gomemcache. Each shard has some workers, each
// with a connection that it reopens after an error. An operation without an answer is retried once. An answer of memcached is not
// retried, whatever it says.
//
// Operations are due at fixed times whether or not earlier ones were answered, so that a stall costs what it costs an application:
// the load is open-loop, and latencies count from when an operation was due. An operation without an answer after Patience, with
// its retry and its wait for a free worker, is an error.
//
// 80 of 100 operations read a key and 20 write one, by Zipf's law with the exponent of the YCSB benchmark. After a miss or an error
// of a get, the client reads the database, which takes DatabaseTime. After a miss it then stores the value (cache-aside), in
// addition to the 20 sets.
package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/memcacheclient"
)

const (
	// Every is the length of a bucket.
	Every = 500 * time.Millisecond
	// Timeout of one try of an operation, including dialing.
	Timeout = 250 * time.Millisecond
	// Patience is the timeout of an operation with its retry.
	Patience = 500 * time.Millisecond
	// DatabaseTime is the duration of the read after a miss.
	DatabaseTime = 5 * time.Millisecond
	// ValueSize of every item in bytes.
	ValueSize = 500
	getShare  = 0.8
	// workers, and connections, per shard.
	workers     = 8
	fillTimeout = 10 * time.Second
)

// Config describes a load.
type Config struct {
	// Addresses of the shards as host:port, by ordinal.
	Addresses []string
	Keys      int
	// Rate of operations per second on all shards.
	Rate int
	// Seed of the choice of keys and operations: the same seed gives the same load.
	Seed uint64
	// dial connects to an address; nil means TCP.
	dial func(ctx context.Context, address string) (conn, error)
}

// conn is a connection to a shard. A Get without an item is a miss.
type conn interface {
	Get(ctx context.Context, key, flags string) (*memcacheclient.Item, error)
	Set(ctx context.Context, key string, value []byte, flags uint64, exptime int64) error
	Close() error
}

// Load can be filled, started and stopped once.
type Load struct {
	Config
	keys    keys
	shards  []*shard
	stop    context.CancelFunc
	running sync.WaitGroup
}

// New returns a load that does not run yet. It does not connect.
func New(c Config) (*Load, error) {
	if len(c.Addresses) == 0 || c.Keys < 1 || c.Rate < 1 {
		return nil, fmt.Errorf("a load requires addresses, keys and a rate, not %d operations per second over %d keys on %d shards", c.Rate, c.Keys, len(c.Addresses))
	}
	if c.dial == nil {
		c.dial = func(ctx context.Context, address string) (conn, error) { return memcacheclient.Dial(ctx, address) }
	}
	return &Load{Config: c, keys: newKeys(c.Keys, len(c.Addresses))}, nil
}

// Fill stores every key, so that each get is a hit unless an item is lost.
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

// fill stores one worker's share of the keys of a shard.
func (l *Load) fill(ctx context.Context, ordinal, worker int) error {
	conn, err := l.dial(ctx, l.Addresses[ordinal])
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

// Start starts the operations.
func (l *Load) Start() {
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	began := time.Now()
	for _, address := range l.Addresses {
		l.shards = append(l.shards, newShard(&worker{Config: l.Config, address: address}, newRecorder(began), l.Rate))
	}
	for _, s := range l.shards {
		for range workers {
			l.running.Go(s.work)
		}
	}
	l.running.Go(func() { l.offer(ctx, began) })
}

// Stop stops the load after the current operations and returns the report. You can call it again.
func (l *Load) Stop() Report {
	l.stop()
	l.running.Wait()
	return l.Report()
}

// Report returns the report so far. Operations that were due less than Patience ago may be missing.
func (l *Load) Report() Report {
	r := Report{Every: Every}
	now := time.Now()
	for _, s := range l.shards {
		r.Began = s.record.began
		r.Shards = append(r.Shards, s.record.counted(now))
	}
	return r
}

// offer passes every operation to its shard when it is due.
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

type operation struct {
	kind kind
	key  string
	due  time.Time
}

// shard is the client of one shard.
type shard struct {
	template *worker
	record   *recorder

	lock   sync.Mutex
	closed bool
	queue  chan operation
}

func newShard(template *worker, record *recorder, rate int) *shard {
	// with room for all that may wait: others would not be answered in time
	return &shard{template: template, record: record, queue: make(chan operation, int(2*float64(rate)*Patience.Seconds())+1)}
}

// offer queues an operation unless the load has stopped.
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

func (s *shard) work() {
	w := *s.template
	defer w.close()
	for o := range s.queue {
		result := w.do(o)
		s.record.record(o, result, time.Now())
		if result == miss {
			time.AfterFunc(DatabaseTime, func() { s.offer(operation{kind: fill, key: o.key, due: time.Now()}) })
		}
	}
}

// worker does one operation at a time over one connection.
type worker struct {
	Config
	address string
	conn    conn
}

func (w *worker) close() {
	if w.conn != nil {
		_ = w.conn.Close() // without a pending request
	}
}

// do does an operation, and retries it once if it has no answer.
func (w *worker) do(o operation) outcome {
	for range 2 {
		left := time.Until(o.due.Add(Patience))
		if left <= 0 {
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), min(left, Timeout))
		result, err := w.try(ctx, o)
		cancel()
		if err == nil {
			return result
		}
		w.conn = nil // closed by the error
		if protocol.IsAnswer(err) {
			break
		}
	}
	return failed
}

func (w *worker) try(ctx context.Context, o operation) (outcome, error) {
	if w.conn == nil {
		var err error
		if w.conn, err = w.dial(ctx, w.address); err != nil {
			w.conn = nil // not a nil pointer
			return failed, err
		}
	}
	if o.kind != get {
		return stored, w.conn.Set(ctx, o.key, value(o.key), 0, 0)
	}
	item, err := w.conn.Get(ctx, o.key, "")
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

// value returns the value of a key, which no other key has.
func value(key string) []byte {
	v := make([]byte, ValueSize)
	for i := range v {
		v[i] = '.'
	}
	copy(v, key)
	return v
}

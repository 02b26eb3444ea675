// Package load puts a fixed load on the shards of a cache, as a client of an application does, and counts the results of all
// operations per shard and time bucket.
//
// A key belongs to the shard at crc32(key) modulo the number of addresses, as in gomemcache, or to that which Config.Shard returns. Each shard has some workers, each
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
	// Old is for how long a value was replaced that a client should no longer read.
	Old = 2 * time.Second
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
	// Shard returns the ordinal of a key's shard at this time, also while other calls do; nil means as gomemcache.
	Shard func(key string) int
	// dial connects to an address; nil means TCP.
	dial func(ctx context.Context, address string) (conn, error)
}

// conn is a connection to a shard, such as a protocol.Conn.
type conn interface {
	Get(ctx context.Context, key, flags string) (protocol.Head, []byte, error)
	Set(ctx context.Context, key string, value []byte, exptime int64) error
	Close() error
}

// Load can be filled, started and stopped once.
type Load struct {
	Config
	keys    keys
	began   time.Time
	stop    context.CancelFunc
	running sync.WaitGroup

	lock   sync.Mutex
	shards []*shard
}

// New returns a load that does not run yet. It does not connect.
func New(c Config) (*Load, error) {
	if len(c.Addresses) == 0 || c.Keys < 1 || c.Rate < 1 {
		return nil, fmt.Errorf("a load requires addresses, keys and a rate, not %d operations per second over %d keys on %d shards", c.Rate, c.Keys, len(c.Addresses))
	}
	if c.dial == nil {
		c.dial = func(ctx context.Context, address string) (conn, error) { return protocol.At(address).Dial(ctx) }
	}
	if c.Shard == nil {
		shards := len(c.Addresses)
		c.Shard = func(key string) int { return modulo(key, shards) }
	}
	return &Load{Config: c, keys: newKeys(c.Keys)}, nil
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
		if i%workers != worker || l.Shard(name) != ordinal {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, fillTimeout)
		err := conn.Set(ctx, name, []byte(value(name, 0)), 0)
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
	l.stop, l.began = stop, time.Now()
	for _, address := range l.Addresses {
		l.start(address)
	}
	l.running.Go(func() { l.offer(ctx) })
}

// Add adds a shard while the load runs. Config.Shard may return its ordinal from then on.
func (l *Load) Add(address string) {
	l.Addresses = append(l.Addresses, address)
	l.start(address)
}

func (l *Load) start(address string) {
	s := newShard(l.worker(address), newRecorder(l.began), l.Rate)
	l.lock.Lock()
	defer l.lock.Unlock()
	l.shards = append(l.shards, s)
	for range workers {
		l.running.Go(s.work)
	}
}

func (l *Load) worker(address string) worker {
	return worker{Config: l.Config, keys: l.keys, address: address}
}

// started returns the shards so far.
func (l *Load) started() []*shard {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.shards
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
	for _, s := range l.started() {
		r.Began = s.record.began
		r.Shards = append(r.Shards, s.record.counted(now))
	}
	return r
}

// offer passes every operation to its shard when it is due.
func (l *Load) offer(ctx context.Context) {
	defer func() {
		for _, s := range l.started() {
			s.close()
		}
	}()
	random := rand.New(rand.NewPCG(l.Seed, 0))
	for i := 0; ctx.Err() == nil; i++ {
		due := l.began.Add(time.Duration(i) * time.Second / time.Duration(l.Rate))
		time.Sleep(time.Until(due))
		o := operation{kind: set, due: due}
		if random.Float64() < getShare {
			o.kind = get
		}
		o.key = l.keys.pick(random)
		l.started()[l.Shard(l.keys.names[o.key])].offer(o)
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
	// key is its rank.
	key int
	due time.Time
	// replaced is for how long the value of a stale read had been replaced.
	replaced time.Duration
}

// shard is the client of one shard.
type shard struct {
	template worker
	record   *recorder

	lock   sync.Mutex
	closed bool
	queue  chan operation
}

func newShard(template worker, record *recorder, rate int) *shard {
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
	w := s.template
	defer w.close()
	for o := range s.queue {
		result := w.do(&o)
		s.record.record(o, result, time.Now())
		if result == miss {
			time.AfterFunc(DatabaseTime, func() { s.offer(operation{kind: fill, key: o.key, due: time.Now()}) })
		}
	}
}

// worker does one operation at a time over one connection.
type worker struct {
	Config
	keys    keys
	address string
	conn    conn
}

func (w *worker) close() {
	if w.conn != nil {
		_ = w.conn.Close() // without a pending request
	}
}

// do does an operation, and retries it once if it has no answer.
func (w *worker) do(o *operation) (result outcome) {
	var version uint64
	if of := &w.keys.versions[o.key]; o.kind != get {
		var lowest uint64
		version, lowest = of.begin(o.kind)
		defer func() { of.end(version, lowest, result == stored, time.Now()) }()
	}
	for range 2 {
		left := time.Until(o.due.Add(Patience))
		if left <= 0 {
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), min(left, Timeout))
		result, err := w.try(ctx, o, version)
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

// try does an operation once. A write has a version.
func (w *worker) try(ctx context.Context, o *operation, version uint64) (outcome, error) {
	if w.conn == nil {
		var err error
		if w.conn, err = w.dial(ctx, w.address); err != nil {
			w.conn = nil // not a nil pointer
			return failed, err
		}
	}
	name := w.keys.names[o.key]
	if o.kind != get {
		return stored, w.conn.Set(ctx, name, []byte(value(name, version)), 0)
	}
	began := time.Now()
	head, item, err := w.conn.Get(ctx, name, " v")
	switch {
	case err != nil:
		return failed, err
	case head.Code == protocol.MetaMiss:
		return miss, nil
	}
	version, ok := versionOf(name, string(item))
	if !ok {
		return wrong, nil
	}
	if o.replaced = w.keys.versions[o.key].replaced(version, began); o.replaced > 0 {
		return stale, nil
	}
	return hit, nil
}

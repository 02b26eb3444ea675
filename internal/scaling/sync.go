package scaling

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

const (
	// fewChanges is the fraction of the items that may change in a sweep when all are copied. After maxSweeps, more may.
	fewChanges, maxSweeps = 0.005, 5
	// sweepInterval is between two sweeps.
	sweepInterval    = 50 * time.Millisecond
	retryInterval    = time.Second
	progressInterval = 250 * time.Millisecond
	// purges is how often items are listed and deleted at most.
	purges = 3
	// maxSources is with how many sources a target works at a time: the list of each takes an eighth of a megabyte of its container.
	maxSources = 32
)

// Run moves the keys of the target from their old owners. It returns nil when the change is closed. ErrUnproven, ErrNoMemory and
// ErrImpossible are final. The context is done when there is no longer a change. After an error, what was copied is deleted, unless clients may
// use it.
func Run(ctx context.Context, t Target) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &receiver{Target: t, seed: rand.Uint64(), content: maphash.MakeSeed(), sources: map[int]*source{}}
	defer r.close()
	defer func() {
		if err != nil {
			r.forget(context.WithoutCancel(ctx))
		}
	}()
	if err := r.prepare(); err != nil {
		return err
	}
	complete := time.Now() // is when the last complete sweep has begun
	for {
		began, step := time.Now(), t.Step()
		err = nil
		if !r.Concluded {
			err = r.sweep(ctx, step)
		}
		if err == nil && step == Close {
			err = r.conclude(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrUnproven), errors.Is(err, ErrNoMemory), errors.Is(err, ErrImpossible):
			return err
		}
		pause := sweepInterval
		if err == nil {
			complete = began
		} else {
			pause = retryInterval
			t.Log.Info("Keys of other shards are incomplete, and the agent tries again", "reason", err)
		}
		r.update(func(p *Progress) {
			p.Error, p.Stale = err, 2*(time.Since(complete)+pause)
			switch {
			case step != Copy && err == nil:
				p.Step = step
			case step != Copy && p.Step != Close:
				p.Step = Published
			default:
				p.Step = Copy
				for _, s := range r.sources {
					if !s.copied {
						p.Step = ""
					}
				}
			}
		}, true)
		if step == Close && err == nil {
			return nil
		}
		if err := peerlink.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// forget deletes what was copied, which nothing keeps equal any more: it would be old values as soon as clients use the target. Without
// tables, only a former mover can have copied, and nothing has verified the ring yet. It tries again until memcached has exited.
func (r *receiver) forget(ctx context.Context) {
	if r.Step() != Copy || r.release == nil && verify(ctx, r.Memcached, r.Change, func(*memfile.Item) {}) != nil {
		return
	}
	for r.Run() != "" {
		err := Forget(ctx, r.Memcached, r.Change)
		if err == nil {
			return
		}
		r.Log.Warn("Cannot delete yet what was copied from other shards", "reason", err)
		_ = peerlink.Sleep(ctx, retryInterval)
	}
}

// receiver is a target that runs.
type receiver struct {
	Target
	identity *tls.Config
	seed     uint64
	// content is the seed of hashes of contents.
	content maphash.Seed
	// moves has both rings. sources are the shards from which keys come, by ordinal, until they are closed.
	moves   moves
	sources map[int]*source
	release func()

	mu       sync.Mutex
	progress Progress
	reported time.Time
}

// source is a shard from which keys come.
type source struct {
	*receiver
	ordinal int
	// pipes are to the memcacheds of both sides; nil without a connection.
	pipes [2]*pipe
	// moved is how many items the source had to move when the target connected.
	moved int64
	pairs *pairs
	// runs are the processes of the pairs, flushes their flush_alls at the last sweep.
	runs, flushes [2]string

	// Of a sweep.
	step    Step
	err     error
	flushed [2]string
	changes int64
	todo    []task

	sweeps int
	copied bool
	n      int64 // pairs
}

// task is an action about a key.
type task struct {
	action action
	hash   uint64
	// item is what the scan of the side at has shown, or that of the source in a comparison. sum is the hash of its value.
	item item
	at   side
	sum  uint64
}

func (r *receiver) prepare() (err error) {
	if r.identity, err = peerlink.Identity(r.Key, purpose); err != nil {
		return fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	r.identity.ServerName = ServiceName
	if r.moves, err = newMoves(r.Change, 0, r.Ordinal); err != nil {
		return err
	}
	for _, ordinal := range ring.Sources(r.Change.Ring, len(r.Change.From), len(r.Change.To), r.Ordinal) {
		r.sources[ordinal] = &source{receiver: r, ordinal: ordinal}
	}
	return nil
}

func (r *receiver) close() {
	for _, s := range r.sources {
		s.close()
	}
	if r.release != nil {
		r.release()
	}
}

// update changes the progress, and reports it now, or if that is due.
func (r *receiver) update(change func(*Progress), now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.progress)
	if r.Progress == nil || !now && time.Since(r.reported) < progressInterval {
		return
	}
	r.reported = time.Now()
	r.Progress(r.progress)
}

// each calls do for all sources, of which maxSources at the same time, and disconnects those for which it fails.
func (r *receiver) each(do func(*source) error) (err error) {
	var running sync.WaitGroup
	free := make(chan struct{}, maxSources)
	for _, s := range r.sources {
		free <- struct{}{}
		running.Go(func() {
			if s.err == nil {
				s.fail(do(s))
			}
			<-free
		})
	}
	running.Wait()
	for _, s := range r.sources {
		err = errors.Join(err, s.err)
	}
	return err
}

// sweep returns an error if it isn't complete for all sources.
func (r *receiver) sweep(ctx context.Context, step Step) error {
	for _, s := range r.sources {
		s.err, s.step = nil, step
	}
	err := r.each(func(s *source) error { return s.connect(ctx) })
	if r.release == nil {
		if err == nil {
			err = r.reserve(ctx, step)
		}
		if err != nil {
			return err
		}
	}
	r.update(func(p *Progress) { p.Total = r.sum(func(s *source) int64 { return s.moved }) }, false)
	_ = r.each(func(s *source) error { return s.scan(ctx) })
	var s *source // of the item that is visited next
	which := func(key []byte) bool {
		s = r.sourceOf(key)
		return s != nil
	}
	_, err = r.Scan(ctx, handover.AnyOrder, which, func(found *memfile.Item) error {
		if s.err == nil {
			s.fail(s.visit(ctx, ours, found))
		}
		return ctx.Err()
	})
	if err != nil {
		err = fmt.Errorf("scanning the own items: %w", err)
	}
	_ = r.each(func(*source) error { return err })
	err = r.each(func(s *source) error { return s.finish(ctx) })
	r.update(func(p *Progress) { p.Moved = r.sum(func(s *source) int64 { return s.n }) }, false)
	return err
}

func (r *receiver) sum(of func(*source) int64) (sum int64) {
	for _, s := range r.sources {
		sum += of(s)
	}
	return sum
}

// sourceOf returns the old owner of a key that moves to the target; nil if there is nothing to do about the key.
func (r *receiver) sourceOf(key []byte) *source {
	if !isClients(key) || r.moves.to.Shard(key) != r.Ordinal {
		return nil
	}
	return r.sources[r.moves.from.Shard(key)]
}

// reserve allocates the tables, and verifies the ring by the own keys, if any.
func (r *receiver) reserve(ctx context.Context, step Step) (err error) {
	if step == Copy && r.Ordinal < len(r.Change.From) {
		if err := verify(ctx, r.Memcached, r.Change, func(*memfile.Item) {}); err != nil {
			return err
		}
	}
	bytes := r.sum(func(s *source) int64 { return pairsSize(s.moved) })
	release, ok := r.Reserve(bytes)
	if r.release = release; !ok {
		return fmt.Errorf("%w of %d bytes", ErrNoMemory, bytes)
	}
	for _, s := range r.sources {
		if s.pairs, err = newPairs(pairsSize(s.moved)); err != nil {
			return fmt.Errorf("%w: %w", ErrNoMemory, err)
		}
	}
	return nil
}

func (s *source) close() {
	s.disconnect()
	if s.pairs != nil {
		_ = s.pairs.Close()
		s.pairs = nil
	}
}

func (s *source) disconnect() {
	for _, p := range s.pipes {
		if p != nil {
			p.close()
		}
	}
	s.pipes, s.todo = [2]*pipe{}, nil
}

// fail ends the connections after an error.
func (s *source) fail(err error) {
	if err != nil {
		s.err = fmt.Errorf("shard %d: %w", s.ordinal, err)
		s.disconnect()
	}
}

// connect connects to both memcacheds, unless it is connected.
func (s *source) connect(ctx context.Context) error {
	if s.pipes[ours] != nil {
		return nil
	}
	order := counted
	if s.step == Copy {
		order = verified
	}
	remote := s.remote(s.ordinal)
	report, err := remote.Scan(ctx, order, nil, nil)
	if err != nil {
		return err
	}
	s.moved = report.Items
	var runs [2]string
	for at, m := range [...]Memcached{theirs: remote, ours: s.Memcached} {
		if s.pipes[at], err = openPipe(ctx, m); err != nil {
			return err
		}
		runs[at] = s.pipes[at].run
	}
	others := runs != s.runs
	if others {
		s.runs, s.flushes, s.sweeps, s.copied = runs, [2]string{}, 0, false
	}
	if s.pairs != nil {
		s.pairs.each(func(_ uint64, p pair) pair {
			if p.seen = [2]bool{}; others { // what a sweep that failed has seen doesn't count
				p = pair{}
			}
			return p
		})
	}
	return nil
}

// scan visits what the source has.
func (s *source) scan(ctx context.Context) error {
	for at, p := range s.pipes {
		if err := p.refresh(); err != nil {
			return err
		}
		s.flushed[at] = p.flushes
	}
	s.changes = 0
	order := handover.AnyOrder
	if s.step == Copy && s.sweeps == 0 && s.Ordinal < len(s.Change.From) { // it has no room for all, and keeps the last ones
		order = handover.ColdFirst
	}
	_, err := s.pipes[theirs].Scan(ctx, order, nil, func(found *memfile.Item) error { return s.visit(ctx, theirs, found) })
	if err != nil {
		return fmt.Errorf("reading what it has: %w", err)
	}
	return s.complete(ctx, theirs)
}

// complete completes the scan of one side.
func (s *source) complete(ctx context.Context, at side) error {
	if err := s.apply(ctx); err != nil {
		return err
	}
	if err := s.pipes[at].check(); err != nil {
		return err
	}
	s.n = s.pairs.end(at, at == ours && s.step == Copy)
	return nil
}

// visit decides about an item that the scan of one side shows.
func (s *source) visit(ctx context.Context, at side, found *memfile.Item) error {
	hash := peerlink.KeyHash(s.seed, found.Key)
	p, known := s.pairs.find(hash)
	if shown := p.shown(at, found.CAS, found.Expires); (known || at == theirs) && s.pairs.set(hash, shown) {
		p = shown
	}
	if s.flushes[at] != "" && s.flushes != s.flushed && p.exists() {
		p.state = [2]state{changed, changed} // also what a scan shows may be flushed
	}
	do := rule(s.step, p.exists(), p.state[theirs], p.state[ours])
	if do == keep {
		return nil
	}
	t := task{action: do, hash: hash, at: at, item: item{key: bytes.Clone(found.Key), binary: found.Binary, cas: found.CAS, expires: found.Expires}}
	if s.todo = append(s.todo, t); len(s.todo) < peerlink.BatchItems {
		return nil
	}
	return s.apply(ctx)
}

// apply does what is to do. Both items of a key that is compared are read before others are changed.
func (s *source) apply(ctx context.Context) error {
	for _, part := range []struct {
		action
		from side
		then func(*task, *item) error
	}{{compare, theirs, s.note}, {compare, ours, s.compare}, {pull, theirs, s.pull}, {push, ours, s.push}} {
		for i := range s.todo {
			t := &s.todo[i]
			if t.action != part.action {
				continue
			}
			if err := s.pipes[part.from].fetch(t.item.key, t.item.binary, func(found *item) error { return part.then(t, found) }); err != nil {
				return err
			}
		}
		for _, at := range []side{part.from, part.from.other()} {
			if err := s.pipes[at].barrier(); err != nil {
				return err
			}
		}
	}
	s.changes += int64(len(s.todo))
	s.todo = s.todo[:0]
	return ctx.Err()
}

// note notes the source's item of a comparison.
func (s *source) note(t *task, found *item) error {
	if found != nil {
		t.item, t.sum = *found, maphash.Bytes(s.content, found.value)
	}
	return nil
}

// compare makes a pair of two items that are equal. Two equal numbers may lack what clients of one side have added.
func (s *source) compare(t *task, found *item) error {
	if found == nil || isNumber(found.value) || t.item.flags != found.flags || t.sum != maphash.Bytes(s.content, found.value) {
		return s.drop(t, theirs, ours)
	}
	s.pair(t.hash, [2]uint64{t.item.cas, found.cas}, [2]uint32{t.item.expires, found.expires})
	return nil
}

func (s *source) pull(t *task, found *item) error { return s.transfer(theirs, t, found) }

func (s *source) push(t *task, found *item) error { return s.transfer(ours, t, found) }

// transfer stores the item of one side in the other one, if that has its item of the pair, or as long as no client uses it.
func (s *source) transfer(from side, t *task, found *item) error {
	to := from.other()
	p, known := s.pairs.find(t.hash)
	if found == nil || s.step == Copy && !known && !s.pairs.set(t.hash, p) {
		return s.drop(t, to)
	}
	compare := p.cas[to]
	switch {
	case s.step == Copy:
		compare = 0
		s.update(func(p *Progress) { p.Moved++ }, false)
	case !p.exists():
		return nil
	}
	var at time.Time
	if found.expires != 0 {
		at = s.pipes[from].clock.At(found.expires)
	}
	var cas [2]uint64
	var expires [2]uint32
	cas[from], expires[from] = found.cas, found.expires
	return s.pipes[to].set(found, at, compare, func(head protocol.Head, _ []byte) error {
		switch {
		case head.Code == protocol.MetaHit:
			if cas[to] = head.CAS; !at.IsZero() {
				expires[to] = s.pipes[to].seconds(at)
			}
			s.pair(t.hash, cas, expires)
		case s.step == Copy:
			s.unpair(t)
		}
		return nil
	})
}

// pair notes that both sides are equal.
func (s *source) pair(hash uint64, cas [2]uint64, expires [2]uint32) {
	p, _ := s.pairs.find(hash)
	p.cas, p.expires, p.state = cas, expires, [2]state{same, same}
	s.pairs.set(hash, p)
}

// unpair lets a key be no pair. As long as clients use the source only, its item isn't pulled again before it changes.
func (s *source) unpair(t *task) {
	p, known := s.pairs.find(t.hash)
	if !known {
		return
	}
	if p = (pair{seen: p.seen}); s.step == Copy && t.at == theirs {
		p.cas[theirs], p.expires[theirs], p.state[theirs] = t.item.cas, t.item.expires, same
	}
	s.pairs.set(t.hash, p)
}

// drop deletes an item from these sides.
func (s *source) drop(t *task, from ...side) error {
	s.update(func(p *Progress) { p.Deleted++ }, false)
	s.unpair(t)
	for _, at := range from {
		if err := s.pipes[at].delete(t.item.key); err != nil {
			return err
		}
	}
	return nil
}

// finish completes a sweep.
func (s *source) finish(ctx context.Context) error {
	if err := s.complete(ctx, ours); err != nil {
		return err
	}
	s.flushes = s.flushed
	s.sweeps++
	if few := float64(s.changes) <= fewChanges*float64(s.n); s.sweeps > 1 && few || s.sweeps >= maxSweeps {
		s.copied = true
	}
	return s.pairs.compact()
}

// conclude deletes what isn't a pair, and what the sources have.
func (r *receiver) conclude(ctx context.Context) error {
	if !r.Concluded {
		if err := r.deleteUnpaired(ctx); err != nil {
			return err
		}
		r.Concluded = true
		if r.Conclude != nil {
			r.Conclude()
		}
	}
	for _, s := range r.sources {
		s.err = nil
	}
	err := r.each(func(s *source) error { return s.purge(ctx) })
	maps.DeleteFunc(r.sources, func(_ int, s *source) bool { return s.err == nil })
	return err
}

// deleteUnpaired deletes from the own memcached what isn't a pair whose source is unchanged. A scan can miss an item; a dump can't.
func (r *receiver) deleteUnpaired(ctx context.Context) error {
	hash := func(key []byte) uint64 { return peerlink.KeyHash(r.seed, key) }
	err := protocol.EachName(func(visit func(protocol.Listed) error) error { return r.Dump(ctx, visit) }, hash,
		func(listed protocol.Listed) bool {
			s := r.sourceOf(listed.Key)
			if s == nil {
				return false
			}
			p, _ := s.pairs.find(hash(listed.Key))
			return !p.exists() || p.state[theirs] != same
		},
		func(names protocol.Names) error {
			for len(names) > 0 {
				key := names.Next()
				if err := r.sourceOf(key).drop(&task{item: item{key: key}, hash: hash(key)}, ours); err != nil {
					return err
				}
			}
			return r.each(func(s *source) error { return s.pipes[ours].check() })
		})
	if err != nil {
		return fmt.Errorf("deleting what isn't a pair: %w", err)
	}
	return nil
}

// purge deletes the source's items of the keys that moved, unless they go with the shard.
func (s *source) purge(ctx context.Context) error {
	if s.ordinal >= len(s.Change.To) {
		s.close()
		return nil
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	err := s.pipes[theirs].purgeAll(ctx, nil, false, func(int) { s.update(func(p *Progress) { p.Purged++ }, false) })
	if err != nil {
		return fmt.Errorf("deleting what moved: %w", err)
	}
	s.close()
	return nil
}

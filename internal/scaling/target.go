package scaling

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

const (
	// fewChanges is the fraction of the items that may change in a sweep when all are copied. After maxSweeps, more may.
	fewChanges, maxSweeps = 0.005, 5
	// The pause between two sweeps is pauseShare times as long as a sweep: clients need the processor.
	pauseShare         = 4
	minPause, maxPause = 50 * time.Millisecond, 2 * time.Second
	retryInterval      = time.Second
	progressInterval   = 250 * time.Millisecond
	// maxLost bounds the hashes of a sweep whose names the source shows.
	maxLost = 16 << 10
	// purges is how often a source deletes what it has: a scan can miss an item.
	purges = 3
	// sampleKeys is how many random keys show from which shards keys come.
	sampleKeys = 100_000
)

// Run moves the keys of the target from their old owners. It returns nil when the change is closed. ErrUnproven, ErrNoMemory and
// ErrImpossible are final. The context is done when there is no longer a change; what was copied remains then, and the next Copy deletes or
// replaces it.
func Run(ctx context.Context, t Target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &receiver{Target: t, seed: mathrand.Uint64(), content: maphash.MakeSeed()}
	defer r.close()
	if err := r.prepare(); err != nil {
		return err
	}
	for {
		began, step := time.Now(), t.Step()
		var err error
		if !r.Concluded {
			err = r.sweep(ctx, step)
		}
		if err == nil && step == Close {
			err = r.end(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrUnproven), errors.Is(err, ErrNoMemory), errors.Is(err, ErrImpossible):
			return err
		}
		took := time.Since(began)
		pause := min(max(minPause, pauseShare*took), maxPause)
		if err != nil {
			pause = max(pause, retryInterval)
			t.Log.Info("Keys of other shards are incomplete, and the agent tries again", "reason", err)
		}
		r.update(func(p *Progress) {
			p.Error, p.Stale = err, 2*(took+pause)
			switch {
			case step != Copy && err == nil:
				p.Step = step
			case step != Copy && p.Step != Close:
				p.Step = Published
			case r.allCopied():
				p.Step = Copy
			default:
				p.Step = ""
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

// receiver is a target that runs.
type receiver struct {
	Target
	seed uint64
	// content is that of hashes of contents, which never leave the process.
	content maphash.Seed
	// moves has both rings. sources are by ordinal; nil for a shard from which no keys come.
	moves    moves
	sources  []*source
	release  func()
	verified bool

	mu       sync.Mutex
	progress Progress
	reported time.Time
}

// source is a shard from which keys come.
type source struct {
	*receiver
	ordinal int
	link    *peerlink.Link
	stop    func() bool
	own     *pipe
	offer   offer
	pairs   *pairs
	// run and ownRun are the processes of the pairs, flushes their flush_alls.
	run, ownRun, flushes string
	// zero is when the source's clock showed 0, by the own one. A reading can only be late.
	zero time.Time
	// since is the highest CAS before the former scan: what has a higher one may have changed since. next is that of the former scan.
	since, next uint64
	lost        []uint64
	buffer      []byte

	// Of a sweep.
	step    Step
	err     error
	flushed bool
	changes int64
	todo    []task
	// drops are the names of what the source deletes.
	drops [][]byte

	sweeps int
	copied bool
	n      int64 // pairs
	closed bool
}

// task is an action that needs the source.
type task struct {
	action  action
	key     []byte
	binary  bool
	hash    uint64
	cas     uint64 // of the own item
	expires uint32
	// sum is the hash of the own item's content; 0 of one that can't be compared.
	sum uint64
	// sent is the expiry that the source got.
	sent uint32
}

// Sources returns the shards from which a shard gets keys, by ordinal. It is none for a shard that gets none.
func Sources(c Change, target int) ([]int, error) {
	m, err := newMoves(c, 0, target)
	if err != nil {
		return nil, err
	}
	found := make([]bool, len(c.From))
	for range sampleKeys {
		key := []byte(rand.Text())
		if from := m.from.Shard(key); from != target && !found[from] {
			found[from] = m.to.Shard(key) == target
		}
	}
	var sources []int
	for ordinal, is := range found {
		if is {
			sources = append(sources, ordinal)
		}
	}
	return sources, nil
}

// prepare finds out from which shards keys come.
func (r *receiver) prepare() error {
	sources, err := Sources(r.Change, r.Ordinal)
	if err != nil {
		return err
	}
	r.moves, _ = newMoves(r.Change, 0, r.Ordinal)
	r.sources = make([]*source, len(r.Change.From))
	for _, ordinal := range sources {
		r.sources[ordinal] = &source{receiver: r, ordinal: ordinal}
	}
	return nil
}

func (r *receiver) all(visit func(*source)) {
	for _, s := range r.sources {
		if s != nil && !s.closed {
			visit(s)
		}
	}
}

func (r *receiver) allCopied() bool {
	copied := true
	r.all(func(s *source) { copied = copied && s.copied })
	return copied
}

func (r *receiver) close() {
	r.all(func(s *source) { s.disconnect() })
	for _, s := range r.sources {
		if s != nil && s.pairs != nil {
			_ = s.pairs.Close()
		}
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

// each calls do for all sources at the same time, and disconnects those for which it fails.
func (r *receiver) each(do func(*source) error) error {
	var running sync.WaitGroup
	r.all(func(s *source) {
		running.Go(func() {
			if s.err == nil {
				s.fail(do(s))
			}
		})
	})
	running.Wait()
	return r.errors()
}

func (r *receiver) errors() (err error) {
	r.all(func(s *source) { err = errors.Join(err, s.err) })
	return err
}

// sweep returns an error if it isn't complete for all sources.
func (r *receiver) sweep(ctx context.Context, step Step) error {
	if step == Copy && !r.verified && r.Ordinal < len(r.Change.From) {
		if err := verify(ctx, r.Memcached, r.Change, func(*memfile.Item) {}); err != nil {
			return err
		}
	}
	r.verified = true
	r.all(func(s *source) { s.err, s.step = nil, step })
	err := r.each(func(s *source) error { return s.connect(ctx) })
	if r.release == nil {
		if err == nil {
			err = r.reserve()
		}
		if err != nil {
			return err
		}
	}
	r.update(func(p *Progress) {
		p.Total = 0
		r.all(func(s *source) { p.Total += s.offer.Moved })
	}, false)
	_ = r.each(func(s *source) error { return s.show(ctx) })
	_, err = r.Scan(ctx, handover.AnyOrder, func(item *memfile.Item) error {
		if s := r.sourceOf(item.Key); s != nil && s.err == nil {
			s.fail(s.decide(item))
		}
		return ctx.Err()
	})
	if err != nil { // marks of this sweep must not count in the next one: connect removes them
		r.all(func(s *source) { s.fail(fmt.Errorf("scanning the own items: %w", err)) })
		return r.errors()
	}
	err = r.each(func(s *source) error { return s.finish() })
	r.update(func(p *Progress) {
		p.Moved = 0
		r.all(func(s *source) { p.Moved += s.n })
	}, false)
	return err
}

// sourceOf returns the old owner of a key that moves to the target; nil if there is nothing to do about the key.
func (r *receiver) sourceOf(key []byte) *source {
	if string(key) == wire.DiscoveryItem || r.moves.to.Shard(key) != r.Ordinal {
		return nil
	}
	if s := r.sources[r.moves.from.Shard(key)]; s != nil && !s.closed {
		return s
	}
	return nil
}

// reserve allocates the tables.
func (r *receiver) reserve() error {
	var bytes int64
	r.all(func(s *source) { bytes += pairsSize(s.offer.Moved) })
	release, ok := r.Reserve(bytes)
	if !ok {
		return fmt.Errorf("%w of %d bytes", ErrNoMemory, bytes)
	}
	r.release = release
	var err error
	r.all(func(s *source) {
		if err == nil {
			s.pairs, err = newPairs(pairsSize(s.offer.Moved))
		}
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	return nil
}

func (s *source) disconnect() {
	if s.own != nil {
		s.own.close()
	}
	if s.link != nil {
		s.stop()
		s.link.Abort()
	}
	s.own, s.link = nil, nil
}

// fail ends the connection after an error.
func (s *source) fail(err error) {
	if err == nil {
		return
	}
	s.err = fmt.Errorf("shard %d: %w", s.ordinal, err)
	s.todo, s.drops = nil, nil
	s.disconnect()
}

// connect connects to the source and to the own memcached, unless it is.
func (s *source) connect(ctx context.Context) error {
	if s.link != nil {
		return nil
	}
	identity, err := peerlink.Identity(s.Key, purpose)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	identity.ServerName = ServiceName
	opening, cancel := context.WithTimeout(ctx, peerlink.OpenTimeout)
	defer cancel()
	conn, err := s.Dial(opening, s.ordinal)
	if err != nil {
		return err
	}
	secured := tls.Client(conn, identity)
	if err := secured.HandshakeContext(opening); err != nil {
		_ = conn.Close()
		return err
	}
	s.link = peerlink.New(secured, frames)
	s.stop = context.AfterFunc(ctx, s.link.Abort)
	go s.link.Beat(ctx)
	err = s.link.Send(kindHello, hello{Versions: []int{protocolVersion}, Owner: s.Owner, Source: s.ordinal, Target: s.Ordinal,
		Ring: s.Change.Ring, From: s.Change.From, To: s.Change.To, Verify: s.step == Copy, Seed: s.seed})
	if err != nil {
		return err
	}
	if s.offer, err = peerlink.Expect[offer](s.link, kindOffer); err != nil {
		return err
	}
	if s.own, err = openPipe(ctx, s.Memcached); err != nil {
		return err
	}
	if s.pairs != nil {
		s.pairs.sweep(func(uint64, *pair) {}) // marks of a sweep that failed
	}
	if s.offer.Run != s.run || s.own.run != s.ownRun {
		s.run, s.ownRun, s.flushes, s.zero = s.offer.Run, s.own.run, "", time.Time{}
		s.since, s.next, s.sweeps, s.copied, s.lost = 0, s.offer.CAS, 0, false, nil
		if s.pairs != nil {
			s.pairs.clear()
		}
	}
	s.read(s.offer.Now)
	return nil
}

// read notes a reading of the source's clock.
func (s *source) read(now int64) {
	if zero := time.Now().Add(-time.Duration(now) * time.Millisecond); s.zero.IsZero() || zero.Before(s.zero) {
		s.zero = zero
	}
}

// show reads what the source has.
func (s *source) show(ctx context.Context) error {
	if err := s.own.refresh(ctx); err != nil {
		return err
	}
	s.changes = 0
	for lost := s.lost; len(lost) > 0; {
		n := min(len(lost), maxList/8)
		var list []byte
		for _, hash := range lost[:n] {
			list = binary.BigEndian.AppendUint64(list, hash)
		}
		if err := s.link.SendContent(kindLost, list); err != nil {
			return err
		}
		lost = lost[n:]
	}
	if err := s.link.Send(kindSweep, sweep{Send: s.step == Copy, Since: s.since}); err != nil {
		return err
	}
	for {
		k, size, err := s.link.Next()
		if err != nil {
			return fmt.Errorf("reading what it has: %w", err)
		}
		switch k {
		case kindShown, kindName:
			var text []byte
			if text, err = readFrame(s.link.R, size, &s.buffer); err == nil && k == kindShown {
				err = s.shown(text)
			} else if err == nil {
				err = s.named(text)
			}
		case kindItem:
			err = s.item(size)
		case kindDone:
			var d done
			if d, err = peerlink.ReadMessage[done](s.link.R, size); err == nil {
				return s.done(d)
			}
		default:
			err = s.link.Unexpected(k, size)
		}
		if err != nil {
			return err
		}
	}
}

// shown marks what a list of entries shows.
func (s *source) shown(list []byte) error {
	if len(list)%entrySize != 0 {
		return fmt.Errorf("%w: %d bytes of entries", peerlink.ErrFrame, len(list))
	}
	for ; len(list) > 0; list = list[entrySize:] {
		if at, ok := s.pairs.find(max(binary.BigEndian.Uint64(list), 1)); ok {
			p := s.pairs.get(at)
			p.shown = true
			p.changed = p.changed || p.source != binary.BigEndian.Uint64(list[8:]) || differ(p.sourceExpires, binary.BigEndian.Uint32(list[16:]))
			s.pairs.put(at, p)
		}
	}
	return nil
}

// named deletes an item of the source that the own memcached no longer has.
func (s *source) named(key []byte) error {
	key = bytes.Clone(key)
	return s.own.get(key, " c u", func(head protocol.Head, _ []byte) error {
		if head.Code == protocol.MetaMiss {
			s.changes++
			s.drops = append(s.drops, key) // the source doesn't read before it has shown everything
			s.pairs.update(peerlink.KeyHash(s.seed, key), func(p *pair) { p.source, p.target = 0, 0 })
		}
		return nil
	})
}

// sendDrops lets the source delete what is in drops.
func (s *source) sendDrops() error {
	var list []byte
	for i, key := range s.drops {
		if list = appendName(list, key); len(list) < maxList-protocol.MaxKey-1 && i < len(s.drops)-1 {
			continue
		}
		if err := s.link.SendContent(kindDrop, list); err != nil {
			return err
		}
		list = list[:0]
	}
	s.drops = s.drops[:0]
	return nil
}

// item stores an item of the source, while no client uses the target.
func (s *source) item(size int) error {
	i, err := readItem(s.link.R, size, &s.buffer)
	if err != nil {
		return err
	}
	if s.step != Copy {
		return fmt.Errorf("%w: an item that was not requested", peerlink.ErrFrame)
	}
	hash := peerlink.KeyHash(s.seed, i.key)
	at, ok := s.pairs.find(hash)
	if !ok {
		return nil
	}
	p := s.pairs.get(at)
	p.shown, p.changed = true, p.source != i.cas || differ(p.sourceExpires, i.expires)
	if s.pairs.put(at, p); p.target != 0 && !p.changed {
		return nil
	}
	s.changes++
	s.update(func(p *Progress) { p.Moved++ }, false)
	return s.set(i, 0, hash)
}

// set stores the source's item, and makes a pair.
func (s *source) set(i item, compare, hash uint64) error {
	expires := s.time(i.expires)
	return s.own.set(i, expires, compare, func(head protocol.Head, _ []byte) error {
		if head.Code == protocol.MetaHit {
			own := task{hash: hash, cas: head.CAS}
			if !expires.IsZero() {
				own.expires = s.own.seconds(expires)
			}
			s.pair(own, i.cas, i.expires)
		}
		return nil
	})
}

// pair notes that both sides are equal.
func (s *source) pair(own task, cas uint64, expires uint32) {
	if at, ok := s.pairs.find(own.hash); ok {
		s.pairs.put(at, pair{source: cas, sourceExpires: expires, target: own.cas, targetExpires: own.expires, shown: true, seen: true})
	}
}

// time returns when the source's clock shows so many seconds.
func (s *source) time(seconds uint32) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return s.zero.Add(time.Duration(seconds) * time.Second)
}

// done is called at the end of what the source shows.
func (s *source) done(d done) error {
	if err := s.own.barrier(); err != nil {
		return err
	}
	if err := s.sendDrops(); err != nil {
		return err
	}
	s.read(d.Now)
	s.since, s.next, s.lost = s.next, d.CAS, s.lost[:0]
	flushes := s.own.flushes + " " + d.Flushes
	s.flushed = s.flushes != "" && s.flushes != flushes
	s.flushes = flushes
	return nil
}

// decide decides about an item of the own memcached.
func (s *source) decide(found *memfile.Item) error {
	hash := peerlink.KeyHash(s.seed, found.Key)
	var p pair
	at, known := s.pairs.Find(hash)
	if known {
		p = s.pairs.get(at)
		p.seen = true
		s.pairs.put(at, p)
	}
	of, own := gone, changed
	switch {
	case p.shown && p.changed:
		of = changed
	case p.shown:
		of = same
	}
	if p.target == found.CAS && !differ(p.targetExpires, found.Expires) {
		own = same
	}
	do := rule(s.step, p.target != 0, of, own)
	if s.flushed && p.target != 0 {
		do = drop
	}
	switch do {
	case keep:
		return nil
	case drop:
		return s.drop(task{key: found.Key, hash: hash}, s.step != Copy)
	}
	s.todo = append(s.todo, task{action: do, key: bytes.Clone(found.Key), binary: found.Binary, hash: hash, cas: found.CAS, expires: found.Expires})
	if len(s.todo) < peerlink.BatchItems {
		return nil
	}
	return s.apply()
}

// drop deletes an item from the own side, or from both. There is no pair any more.
func (s *source) drop(t task, both bool) error {
	s.changes++
	s.update(func(p *Progress) { p.Deleted++ }, false)
	s.pairs.update(t.hash, func(p *pair) { p.source, p.target = 0, 0 })
	if both {
		if s.drops = append(s.drops, bytes.Clone(t.key)); len(s.drops) == maxLost {
			if err := s.sendDrops(); err != nil {
				return err
			}
		}
	}
	return s.own.delete(t.key)
}

// apply does what is to do: first it reads the own items, then it sends some, then it gets those of the source.
func (s *source) apply() error {
	var pushed, asked []*task
	var names []byte
	for i := range s.todo {
		t := &s.todo[i]
		var err error
		switch t.action {
		case push:
			err = s.own.fetch(t.key, t.binary, func(i *item) error { return s.push(t, i, &pushed) })
		case compare:
			err = s.own.fetch(t.key, t.binary, func(i *item) error { s.sum(t, i); return nil })
			fallthrough
		case pull:
			asked, names = append(asked, t), appendName(names, t.key)
		}
		if err != nil {
			return err
		}
	}
	if err := s.own.barrier(); err != nil {
		return err
	}
	if err := s.stored(pushed); err != nil {
		return err
	}
	if len(asked) > 0 {
		if err := s.link.SendContent(kindAsk, names); err != nil {
			return err
		}
	}
	for _, t := range asked {
		if err := s.answered(t); err != nil {
			return err
		}
	}
	s.changes += int64(len(s.todo))
	s.todo = s.todo[:0]
	if err := s.own.barrier(); err != nil {
		return err
	}
	return s.sendDrops()
}

// push sends an own item, which replaces that of the pair.
func (s *source) push(t *task, own *item, pushed *[]*task) error {
	var p pair
	s.pairs.update(t.hash, func(of *pair) { p = *of })
	if own == nil || p.source == 0 {
		return nil
	}
	t.cas, t.expires = own.cas, own.expires
	sent := *own
	sent.cas = p.source
	if own.expires != 0 {
		sent.expires = uint32(max(s.own.clock.At(own.expires).Sub(s.zero).Round(time.Second)/time.Second, 1))
	}
	*pushed = append(*pushed, t)
	t.sent = sent.expires
	return s.link.Write(sent.append, sent.value)
}

// stored reads what the source has stored of what was sent.
func (s *source) stored(pushed []*task) error {
	if len(pushed) == 0 {
		return nil
	}
	if err := s.link.Send(kindApply, nil); err != nil {
		return err
	}
	k, size, err := s.link.Next()
	if err != nil {
		return err
	}
	if k != kindStored || size != 8*len(pushed) {
		return s.link.Unexpected(k, size)
	}
	list, err := readFrame(s.link.R, size, &s.buffer)
	if err != nil {
		return err
	}
	return eachHash(list, func(cas uint64) {
		if t := pushed[0]; cas != 0 {
			s.pair(*t, cas, t.sent)
		}
		pushed = pushed[1:]
	})
}

// sum notes the content of an own item.
func (s *source) sum(t *task, i *item) {
	if i == nil {
		return
	}
	t.cas, t.expires, t.sum = i.cas, i.expires, s.hash(i)
}

// hash returns 0 for a number: two equal ones may lack what clients of one side have added.
func (s *source) hash(i *item) uint64 {
	if isNumber(i.value) {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(s.content)
	_, _ = h.Write(binary.NativeEndian.AppendUint32(nil, i.flags))
	_, _ = h.Write(i.value)
	return max(h.Sum64(), 1)
}

// answered applies the source's answer about a key.
func (s *source) answered(t *task) error {
	k, size, err := s.link.Next()
	if err != nil {
		return err
	}
	if k == kindNone {
		return s.drop(*t, false)
	}
	if k != kindItem {
		return s.link.Unexpected(k, size)
	}
	i, err := readItem(s.link.R, size, &s.buffer)
	switch {
	case err != nil:
		return err
	case t.action == compare && t.sum != 0 && t.sum == s.hash(&i):
		s.pair(*t, i.cas, i.expires)
		return nil
	case t.action == compare:
		return s.drop(*t, true)
	}
	compare := t.cas
	if s.step == Copy {
		compare = 0
	}
	i.key, i.binary = t.key, t.binary
	return s.set(i, compare, t.hash)
}

// finish completes a sweep.
func (s *source) finish() error {
	if err := s.apply(); err != nil {
		return err
	}
	if err := s.own.check(); err != nil {
		return err
	}
	s.n = s.pairs.sweep(func(hash uint64, p *pair) {
		if p.target == 0 {
			*p = pair{}
			return
		}
		of := gone
		if p.shown {
			of = changed
		}
		do := keep
		if !p.seen {
			do = rule(s.step, true, of, gone)
		}
		if do == look && len(s.lost) < maxLost {
			s.lost = append(s.lost, hash)
		}
		if do == forget || s.step == Close && (!p.shown || p.changed) {
			p.source, p.target = 0, 0
		}
	})
	if err := s.pairs.compact(); err != nil {
		return err
	}
	s.sweeps++
	if few := float64(s.changes) <= fewChanges*float64(s.n); s.sweeps > 1 && few || s.sweeps >= maxSweeps {
		s.copied = true
	}
	return nil
}

// end deletes what isn't a pair, and what the sources have.
func (r *receiver) end(ctx context.Context) error {
	if !r.Concluded {
		if err := r.deleteUnpaired(ctx); err != nil {
			return err
		}
		r.Concluded = true
		if r.Conclude != nil {
			r.Conclude()
		}
	}
	r.all(func(s *source) { s.err = nil })
	return r.each(func(s *source) error { return s.purge(ctx) })
}

// deleteUnpaired deletes from the own memcached what isn't a pair. A scan can miss an item; a dump can't.
func (r *receiver) deleteUnpaired(ctx context.Context) error {
	err := r.Server.Dump(ctx, peerlink.Silence, func(listed protocol.Listed) error {
		s := r.sourceOf(listed.Key)
		if s == nil {
			return nil
		}
		hash := peerlink.KeyHash(r.seed, listed.Key)
		if at, found := s.pairs.Find(hash); found && s.pairs.get(at).target != 0 {
			return nil
		}
		return s.drop(task{key: listed.Key, hash: hash}, false)
	})
	if err != nil {
		return fmt.Errorf("listing the own items: %w", err)
	}
	return r.each(func(s *source) error { return s.own.check() })
}

// purge lets the source delete its items of the keys that moved.
func (s *source) purge(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	for range purges {
		if err := s.link.Send(kindPurge, nil); err != nil {
			return err
		}
		d, err := peerlink.Expect[done](s.link, kindDone)
		if err != nil {
			return err
		}
		s.update(func(p *Progress) { p.Purged += d.Items }, false)
		if d.Items == 0 {
			break
		}
	}
	s.closed = true
	s.disconnect()
	return nil
}

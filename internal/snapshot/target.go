package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

// counts are what became of items.
type counts struct {
	restored, kept, expired, refused, bytes atomic.Int64
}

func (c *counts) items() int64 {
	return c.restored.Load() + c.kept.Load() + c.expired.Load() + c.refused.Load()
}

// target is a shard that items are written into.
type target struct {
	env    Env
	link   link
	limit  limit
	add    bool
	maxTTL int64 // in seconds, 0 is none
	counts counts
	known  sample
	// room bounds the bytes of all targets' batches that are not answered.
	// taken is what this one has of it.
	room  *semaphore.Weighted
	taken atomic.Int64
	// largest item in bytes with all that memcached adds; 0 is unknown.
	largest  int64
	overhead int64
	// careful is a target without room.
	careful atomic.Bool
	asker   asker

	mu     sync.Mutex
	filled *batch // that is not sent yet

	queue chan *batch
	free  chan *batch
	ended chan struct{} // closed when run has returned
	err   error         // of run, then
	hits  int
}

// itemHead is what memcached adds to key and value (sizeof(item) on 64 bits, the
// CAS, a NUL after the key, CRLF after the value).
const (
	itemHead    = 48
	itemCAS     = 8
	itemBetween = 3
	itemFlags   = 4
)

// open asks the server what it takes and starts to write what is put.
func (t *target) open(ctx context.Context) error {
	conn, r, err := t.link.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	settings, err := askSettings(conn, r)
	if err != nil {
		// It refuses by itself what is too large.
		t.env.Log.Warn("The largest item is not known.", "shard", t.link.ordinal, "error", err)
	} else {
		t.largest, t.overhead = settings.ItemSizeMax, itemHead+itemBetween
		if settings.CAS {
			t.overhead += itemCAS
		}
		t.careful.Store(!settings.Evictions)
	}
	t.queue = make(chan *batch, 1)
	t.free = make(chan *batch, t.link.window+2)
	t.ended = make(chan struct{})
	go func() {
		defer close(t.ended)
		defer t.asker.close()
		t.err = t.link.run(ctx)
	}()
	return nil
}

func askSettings(conn net.Conn, r *bufio.Reader) (memcache.Settings, error) {
	if err := conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return memcache.Settings{}, err
	}
	if _, err := io.WriteString(conn, "stats settings\r\n"); err != nil {
		return memcache.Settings{}, err
	}
	stats, err := memcache.ReadStats(r)
	if err != nil {
		return memcache.Settings{}, err
	}
	return memcache.ParseSettings(stats)
}

// tooLarge reports whether the server would refuse an item. It must not be asked: for
// a store that it refuses, it deletes the item that it has (process_mset_cmd_start in
// proto_parser.c), which add is to keep.
func (t *target) tooLarge(item record) bool {
	size := t.overhead + int64(len(item.key)+item.size)
	if item.flags != 0 {
		size += itemFlags
	}
	return t.largest > 0 && size > t.largest
}

// expiry returns when an item is to expire in memcached, a Unix time or 0 for never;
// false is that it has. A point in time is the same however long a request waits, and
// memcached, whose clock may be late by a second, reads it exactly.
func (t *target) expiry(item record) (int64, bool) {
	if item.expires == 0 && t.maxTTL == 0 {
		return 0, true
	}
	now := t.env.Now().Unix()
	expires := item.expires
	if t.maxTTL > 0 && (expires == 0 || expires > now+t.maxTTL) {
		expires = now + t.maxTTL
	}
	return expires, expires > now
}

// turnedAway counts an item that is not to be sent.
func (t *target) turnedAway(count *atomic.Int64, item record) {
	count.Add(1)
	t.counts.bytes.Add(int64(len(item.key) + item.size))
	t.env.Meter.add(1, int64(len(item.key)+item.size))
}

// put has an item be written. Errors are those of run, and the context's.
func (t *target) put(ctx context.Context, item record, value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tooLarge(item) {
		t.turnedAway(&t.counts.refused, item)
		return nil
	}
	b := t.filled
	if b == nil {
		b = t.newBatch()
		t.filled = b
	}
	expires, ok := t.expiry(item)
	if !ok {
		t.turnedAway(&t.counts.expired, item)
		return nil
	}
	text, ok := memcache.AppendMetaSet(b.text, item.key, item.size, item.flags, expires, t.add)
	if !ok {
		t.turnedAway(&t.counts.refused, item)
		return nil
	}
	text = append(slices.Grow(text, len(value)+2), value...)
	b.text = append(text, "\r\n"...)
	b.ends = append(b.ends, len(b.text))
	if expires != 0 && expires < t.env.Now().Unix()+longLived {
		b.keys.add(nil) // no key of a sample
	} else {
		b.keys.add(item.key)
	}
	b.size += int64(len(item.key) + item.size)
	if b.count() < t.limit.batchItems && b.size < t.limit.batchBytes {
		return nil
	}
	return t.flush(ctx)
}

func (t *target) newBatch() *batch {
	var b *batch
	select {
	case b = <-t.free:
		b.reset()
	default:
		b = &batch{}
	}
	return b
}

// flush sends what was put. The lock is held.
func (t *target) flush(ctx context.Context) error {
	b := t.filled
	if b == nil {
		return nil
	}
	t.filled = nil
	return t.send(ctx, b)
}

func (t *target) send(ctx context.Context, b *batch) error {
	select {
	case <-t.ended:
		return t.err
	default:
	}
	if err := t.room.Acquire(ctx, int64(len(b.text))); err != nil {
		return cause(ctx, err)
	}
	t.taken.Add(int64(len(b.text)))
	select {
	case t.queue <- b:
		return nil
	case <-t.ended:
		return t.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// large has a value be written that is larger than memory. write sends it, each time
// anew: the request's first line, which it gets, the value and CRLF.
func (t *target) large(ctx context.Context, item record, write func(ctx context.Context, w io.Writer, head []byte) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tooLarge(item) {
		t.turnedAway(&t.counts.refused, item)
		return nil
	}
	expires, ok := t.expiry(item)
	if !ok {
		t.turnedAway(&t.counts.expired, item)
		return nil
	}
	if err := t.flush(ctx); err != nil {
		return err
	}
	item.key = bytes.Clone(item.key)
	b := &batch{ends: []int{0}, size: int64(len(item.key) + item.size)}
	b.keys.add(item.key)
	b.stream = func(ctx context.Context, w io.Writer) error {
		head, _ := memcache.AppendMetaSet(nil, item.key, item.size, item.flags, expires, t.add)
		return write(ctx, limitedWriter{ctx, t.limit, w}, head)
	}
	return t.send(ctx, b)
}

// limitedWriter waits for a limit's leave.
type limitedWriter struct {
	ctx   context.Context
	limit limit
	w     io.Writer
}

func (l limitedWriter) Write(p []byte) (n int, err error) {
	const most = 1 << 20
	for len(p) > 0 {
		part := p[:min(len(p), most)]
		if err := l.limit.wait(l.ctx, 0, int64(len(part))); err != nil {
			return n, err
		}
		m, err := l.w.Write(part)
		n += m
		if err != nil {
			return n, err
		}
		p = p[m:]
	}
	return n, nil
}

// finish sends the rest and waits until all is answered.
func (t *target) finish(ctx context.Context) error {
	t.mu.Lock()
	err := t.flush(ctx)
	close(t.queue)
	t.mu.Unlock()
	<-t.ended
	t.release(t.taken.Load()) // of what was never answered
	if t.err != nil {
		return t.err
	}
	return err
}

// release gives room to others.
func (t *target) release(bytes int64) {
	t.taken.Add(-bytes)
	t.room.Release(bytes)
}

// next returns a batch once the limit allows.
func (t *target) next(ctx context.Context) (*batch, error) {
	var b *batch
	select {
	case more, ok := <-t.queue:
		if !ok {
			return nil, errNoMore
		}
		b = more
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b.stream != nil {
		return b, t.limit.wait(ctx, 1, 0)
	}
	return b, t.limit.wait(ctx, b.count(), b.size)
}

// answer counts one answer.
func (t *target) answer(b *batch, _ net.Conn, r *bufio.Reader) error {
	head, err := memcache.ReadHead(r)
	var refused *memcache.ServerError
	switch {
	case errors.As(err, &refused):
		// Out of memory, as what is too large is not sent.
		t.counts.refused.Add(1)
		t.careful.Store(true)
		return nil
	case err != nil:
		return err
	case head.Code == memcache.MetaHit, head.Code == memcache.MetaNotStored && b.again:
		// What was asked twice was most likely stored the first time.
		t.counts.restored.Add(1)
	case head.Code == memcache.MetaNotStored:
		t.counts.kept.Add(1)
	default:
		return fmt.Errorf("%w: %s to a store", memcache.ErrMalformed, head.Code)
	}
	if key := b.keys.at(b.done); len(key) > 0 {
		if t.hits++; t.hits%sampleEvery == 0 || t.hits <= sampleSize {
			t.known.latest(key)
		}
	}
	return nil
}

func (t *target) answered(b *batch) {
	t.counts.bytes.Add(b.size)
	t.env.Meter.add(int64(b.count()), b.size)
	t.release(int64(len(b.text)))
	// One that held something large is not kept.
	if b.stream != nil || cap(b.text) > 2*maxBatchBytes {
		return
	}
	select {
	case t.free <- b:
	default:
	}
}

package copy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
)

// What memcached adds to the size of key and value (sizeof(item) on 64 bits, the CAS, a
// NUL after the key, CRLF after the value), in bytes.
const (
	itemHead    = 48
	itemCAS     = 8
	itemBetween = 3
	itemFlags   = 4
)

// answerBuffer holds the longest line, and the answers to a batch of about four bytes each.
const answerBuffer = protocol.MaxLine

type counts struct {
	restored, kept, expired, rejected, bytes atomic.Int64
}

func (c *counts) items() int64 {
	return c.restored.Load() + c.kept.Load() + c.expired.Load() + c.rejected.Load()
}

// shardLoader writes items into one shard. It is the handler of its pipeline.
type shardLoader struct {
	options  Options
	pipeline pipeline
	limit    rateLimit
	add      bool  // keep existing items
	maxTTL   int64 // in seconds; 0 means no limit
	counts   counts
	detector lossDetector
	clock    protocol.Clock // of the shard when it was opened
	// unanswered limits the bytes of all shards' requests without an answer, of which
	// this shard has acquired some.
	unanswered *semaphore.Weighted
	acquired   atomic.Int64
	// maxItem is the largest item in bytes with the overhead; 0 means unknown.
	maxItem  int64
	overhead int64
	// probeBeforeAdd is set for a shard without free memory.
	probeBeforeAdd atomic.Bool
	guard          addGuard

	mu     sync.Mutex
	filled *batch // not sent yet

	queue chan *batch
	done  chan struct{} // closed when the pipeline has stopped
	err   error         // of the pipeline, valid then
	hits  int
}

// newShardLoader returns the loader of a shard, of which there are so many at a time.
func (l *loader) newShardLoader(ordinal, concurrent int) *shardLoader {
	s := &shardLoader{
		options: l.options, limit: newRateLimit(l.task), add: !l.load.Replace, unanswered: l.unanswered,
		maxTTL: int64(l.load.MaxTTL / time.Second),
	}
	// The semaphore doesn't count batches that are being filled.
	s.limit.batchBytes = min(s.limit.batchBytes, max(4<<10, maxUnanswered/int64(concurrent)/8))
	s.pipeline = pipeline{
		handler: s, prepare: s.dropExisting, checkServer: s.detector.check,
		target: newTarget(l.task, ordinal, l.options), timeout: l.options.ShardTimeout, log: l.options.Log, buffer: answerBuffer,
	}
	return s
}

func (s *shardLoader) open(ctx context.Context) error {
	c, err := s.pipeline.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s.clock = c.clock
	if again, err := s.readClock(c); err == nil { // the first reading may be late
		s.clock = again.Best(s.clock)
	}
	settings, err := readSettings(c)
	if err != nil {
		// memcached then rejects items that are too large by itself.
		s.options.Log.Warn("The size of the largest item is unknown", "shard", s.pipeline.ordinal, "error", err)
	} else {
		s.maxItem, s.overhead = settings.ItemSizeMax, itemHead+itemBetween
		if settings.CAS {
			s.overhead += itemCAS
		}
		s.probeBeforeAdd.Store(!settings.Evictions)
	}
	s.queue = make(chan *batch, 1)
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		defer s.guard.close()
		s.err = s.pipeline.run(ctx)
		s.release(s.acquired.Load()) // of requests that never got an answer: put may wait for it
	}()
	return nil
}

func (s *shardLoader) readClock(c *conn) (protocol.Clock, error) {
	stats, err := readStats(c, "stats")
	if err != nil {
		return protocol.Clock{}, err
	}
	return protocol.ClockOf(stats, s.options.Now())
}

func readSettings(c *conn) (protocol.Settings, error) {
	stats, err := readStats(c, "stats settings")
	if err != nil {
		return protocol.Settings{}, err
	}
	return protocol.ParseSettings(stats)
}

func readStats(c *conn, request string) (protocol.Stats, error) {
	if _, err := io.WriteString(c, request+"\r\n"); err != nil {
		return nil, err
	}
	return protocol.ReadStats(c.r)
}

// isTooLarge reports whether the server would reject an item. Such an item must not be sent:
// memcached deletes the existing item under the key of a rejected item
// (process_mset_cmd_start in proto_parser.c).
func (s *shardLoader) isTooLarge(item format.Record) bool {
	size := s.overhead + int64(len(item.Key)+item.Size)
	if item.Flags != 0 {
		size += itemFlags
	}
	return s.maxItem > 0 && size > s.maxItem
}

// expiry returns when an item expires, the zero time for never, and false if it already has.
func (s *shardLoader) expiry(item format.Record) (at time.Time, lives bool) {
	expires, now := item.Expires, s.options.Now().Unix()
	if s.maxTTL > 0 && (expires == 0 || expires > now+s.maxTTL) {
		expires = now + s.maxTTL
	}
	if expires == 0 {
		return time.Time{}, true
	}
	return time.Unix(expires, 0), expires > now
}

// appendHead appends the first line of a request to dst, and returns the Unix time of the shard at which the item expires, unless the
// item is not sent: then it counts the item.
func (s *shardLoader) appendHead(dst []byte, item format.Record) (head []byte, expires int64, ok bool) {
	count := &s.counts.rejected
	// A crafted snapshot could lead clients with auto discovery to other servers.
	if string(item.Key) != agentwire.DiscoveryItem && !s.isTooLarge(item) {
		at, lives := s.expiry(item)
		if !lives {
			count = &s.counts.expired
		} else if head, ok = protocol.AppendMetaSet(dst, item.Key, item.Size, item.Flags, s.clock.Exptime(at), s.add); ok {
			return head, s.clock.Exptime(at), true
		}
	}
	size := int64(len(item.Key) + item.Size)
	count.Add(1)
	s.counts.bytes.Add(size)
	s.options.Progress.add(1, size)
	return nil, 0, false
}

// put sends an item, together with others. Errors are those of the pipeline, and the
// context's.
func (s *shardLoader) put(ctx context.Context, item format.Record, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.filled == nil {
		s.filled = newBatch()
	}
	b := s.filled
	text, expires, ok := s.appendHead(b.text, item)
	if !ok {
		return nil
	}
	text = append(slices.Grow(text, len(value)+2), value...)
	b.text = append(text, "\r\n"...)
	b.ends = append(b.ends, len(b.text))
	if expires != 0 && expires < s.clock.Unix(s.options.Now())+minTTL {
		b.keys.add(nil) // not for the sample
	} else {
		b.keys.add(item.Key)
	}
	b.expires = append(b.expires, expires)
	b.size += int64(len(item.Key) + item.Size)
	if b.count() < s.limit.batchItems && b.size < s.limit.batchBytes {
		return nil
	}
	return s.flush(ctx)
}

// flush queues the batch that is being filled. s.mu is locked.
func (s *shardLoader) flush(ctx context.Context) error {
	b := s.filled
	if b == nil {
		return nil
	}
	s.filled = nil
	return s.enqueue(ctx, b)
}

func (s *shardLoader) enqueue(ctx context.Context, b *batch) error {
	select {
	case <-s.done:
		return s.err
	default:
	}
	if err := s.unanswered.Acquire(ctx, int64(len(b.text))); err != nil {
		return err
	}
	s.acquired.Add(int64(len(b.text)))
	select {
	case s.queue <- b:
		return nil
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// putLarge sends an item whose value doesn't fit into memory. Of all shards, one reads
// such a value at a time.
func (s *shardLoader) putLarge(ctx context.Context, item format.Record, value *format.LargeValue, reading *sync.Mutex) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	head, expires, ok := s.appendHead(nil, item)
	if !ok {
		return nil
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	b := &batch{ends: []int{0}, expires: []int64{expires}, size: int64(len(item.Key) + item.Size)}
	b.keys.add(item.Key)
	b.stream = func(ctx context.Context, w io.Writer) error {
		reading.Lock()
		defer reading.Unlock()
		if err := value.WriteTo(ctx, limitedWriter{ctx, s.limit, w}, head); err != nil {
			return err
		}
		_, err := io.WriteString(w, "\r\n")
		return err
	}
	return s.enqueue(ctx, b)
}

type limitedWriter struct {
	ctx   context.Context
	limit rateLimit
	w     io.Writer
}

func (l limitedWriter) Write(p []byte) (n int, err error) {
	if err := l.limit.wait(l.ctx, 0, int64(len(p))); err != nil {
		return 0, err
	}
	return l.w.Write(p)
}

// finish sends the last batch and waits for all answers.
func (s *shardLoader) finish(ctx context.Context) error {
	s.mu.Lock()
	err := s.flush(ctx)
	close(s.queue)
	s.mu.Unlock()
	<-s.done
	s.release(s.acquired.Load()) // of a batch that was queued after the pipeline had stopped
	if s.err != nil {
		return s.err
	}
	return err
}

func (s *shardLoader) release(bytes int64) {
	s.acquired.Add(-bytes)
	s.unanswered.Release(bytes)
}

// next returns a batch of sets once the limit allows it.
func (s *shardLoader) next(ctx context.Context) (*batch, error) {
	select {
	case b, ok := <-s.queue:
		switch {
		case !ok:
			return nil, errNoMore
		case b.stream != nil:
			return b, s.limit.wait(ctx, 1, 0)
		}
		return b, s.limit.wait(ctx, b.count(), b.size)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *shardLoader) readAnswer(b *batch, c *conn) error {
	head, err := protocol.ReadHead(c.r)
	_, rejected := errors.AsType[*protocol.ServerError](err)
	switch {
	case rejected:
		// Out of memory, since items that are too large are not sent.
		s.counts.rejected.Add(1)
		s.probeBeforeAdd.Store(true)
		return nil
	case err != nil:
		return err
	case head.Code == protocol.MetaHit, head.Code == protocol.MetaNotStored && b.resent:
		// A request that was sent twice was most likely stored the first time.
		s.counts.restored.Add(1)
	case head.Code == protocol.MetaNotStored:
		s.counts.kept.Add(1)
	default:
		return fmt.Errorf("%w: %s to a set", protocol.ErrMalformed, head.Code)
	}
	if key := b.keys.at(b.answered); len(key) > 0 {
		if s.hits++; s.hits%hitsPerSample == 0 || s.hits <= sampleSize {
			s.detector.add(key, b.expires[b.answered])
			s.detector.storedOn, s.detector.storedAt = c.clock.Started, time.Now()
		}
	}
	return nil
}

func (s *shardLoader) complete(b *batch) {
	s.counts.bytes.Add(b.size)
	s.options.Progress.add(int64(b.count()), b.size)
	s.release(int64(len(b.text)))
	b.recycle()
}

package copy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// busyTimeout is how long a save waits for other key dumps of a shard.
	busyTimeout = 10 * time.Minute
	// crawlerTimeout is how long it waits for the LRU crawler. The agent enables it again 10 s after a client has disabled it.
	crawlerTimeout = time.Minute
	// valueBuffer in bytes is the size of reads of values.
	valueBuffer = 64 << 10
	// expiryTolerance in seconds is how far memcached's clock may be off: it counts whole seconds, and lags when memcached is busy.
	expiryTolerance = 3
	// getFlags request the value, the client's flags and the remaining time to live,
	// without a change of the item's place in the LRU.
	getFlags = " v f t u"
)

type shardSaver struct {
	ctx      context.Context
	options  Options
	first    attempt
	pipeline pipeline
	limit    rateLimit
	spool    *keySpool
	writer   *format.ChunkWriter
	detector lossDetector
	// clock is the best reading of the shard's, time the Unix time that it showed last.
	clock protocol.Clock
	time  int64
	won   [][]byte
	bytes int64 // of the batch whose answers are read
	hits  int
	// expired and missing are of Shard.Gone: those whose time was over, and all others.
	expired, missing int64
	// unnamed is counted where requests are created, everything else where answers are read.
	unnamed atomic.Int64
}

// saveShard writes the chunks of one shard and returns its entry of the manifest.
func saveShard(ctx context.Context, bucket *blob.Bucket, task wire.Task, o Options, first attempt, space *spoolSpace, folder string, ordinal int) (shard format.Shard, err error) {
	spool, err := newKeySpool(o.SpoolDir, space)
	if err != nil {
		return format.Shard{}, err
	}
	defer func() {
		if removed := spool.remove(); err == nil && removed != nil {
			err = spoolFailure(removed)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	writer, err := format.NewChunkWriter(ctx, bucket, task.Path, folder, ordinal)
	if err != nil {
		cancel()
		return format.Shard{}, err
	}
	defer writer.Close()
	defer cancel()

	s := &shardSaver{
		ctx: ctx, options: o, first: first, limit: newRateLimit(task), spool: spool, writer: writer,
	}
	s.pipeline = pipeline{
		handler: s, checkServer: s.checkServer,
		target: newTarget(task, ordinal, o), timeout: o.ShardTimeout, log: o.Log, buffer: valueBuffer,
	}
	if err := s.list(ctx); err != nil {
		return format.Shard{}, s.failure(err)
	}
	if err := s.pipeline.run(ctx); err != nil {
		return format.Shard{}, s.failure(err)
	}
	if err := s.tooManyMissing(); err != nil {
		return format.Shard{}, err
	}
	writer.Shard.Unnamed = s.unnamed.Load()
	return writer.Finish()
}

func (s *shardSaver) checkServer(c *conn) error {
	s.clock, s.time = c.clock.Best(s.clock), c.time
	return s.detector.check(c)
}

// failure makes a loss of items final: a retry would save the few items of now as the
// newest snapshot.
func (s *shardSaver) failure(err error) error {
	if errors.Is(err, errLost) {
		return wire.FailFinally(wire.ReasonShardLostItems, "shard %d lost its items during the backup, so no snapshot was created: %w", s.pipeline.ordinal, err)
	}
	return err
}

// tooManyMissing returns a failure if most of the listed items were not there any more when
// they were read, apart from those that had expired: a snapshot of the others would be the
// newest one.
func (s *shardSaver) tooManyMissing() error {
	if listed := s.spool.keys - s.expired; s.missing*2 > listed {
		return wire.FailFinally(wire.ReasonShardLostItems,
			"shard %d listed %d items, but %d of them were deleted or evicted before they were read, so no snapshot was created; if clients or evictions remove them that fast, set a higher rateLimit",
			s.pipeline.ordinal, listed, s.missing)
	}
	return nil
}

func (s *shardSaver) list(ctx context.Context) error {
	began := time.Now()
	ordinal, address := s.pipeline.ordinal, s.pipeline.address
	waiting := false
	for attempts := 0; ; {
		c, err := s.pipeline.connect(ctx)
		if err != nil {
			return err
		}
		err = s.dump(ctx, c)
		_ = c.Close()
		switch {
		case err == nil:
			s.options.Progress.expect(s.spool.keys)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, protocol.ErrDumpDisabled):
			return wire.FailFinally(wire.ReasonKeyDumpDisabled, "shard %d at %s: %w; remove -X from the Memcached's arguments", ordinal, address, err)
		case errors.Is(err, protocol.ErrCrawlerDisabled) && time.Since(began) > crawlerTimeout:
			return wire.FailFinally(wire.ReasonKeyDumpDisabled,
				"shard %d at %s: %w; remove no_lru_crawler from the Memcached's arguments, or find the client that sends the command lru_crawler disable", ordinal, address, err)
		case isTerminal(err):
			return err
		}
		switch {
		case errors.Is(err, protocol.ErrCrawlerDisabled):
			if !waiting {
				s.options.Log.Info("Waiting for the shard's LRU crawler", "shard", ordinal)
			}
			waiting = true
		case errors.Is(err, protocol.ErrBusy):
			if time.Since(began) > busyTimeout {
				return wire.Fail(wire.ReasonShardUnreachable, "shard %d at %s was busy with other key dumps for %s", ordinal, address, busyTimeout)
			}
			if !waiting {
				s.options.Log.Info("Waiting, since the shard is busy with another key dump", "shard", ordinal)
			}
			waiting = true
		default:
			s.options.Log.Info("Restarting a key dump that was interrupted", "shard", ordinal, "error", err)
			if attempts++; attempts > maxEmptyConnections {
				return wire.Fail(wire.ReasonShardUnreachable, "shard %d at %s: %d key dumps were interrupted; last error: %w", ordinal, address, attempts, err)
			}
		}
		if err := s.spool.clear(); err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// dump spools the keys of one dump, and does nothing else in the meantime: a dump that
// is read slowly harms those who request another one.
func (s *shardSaver) dump(ctx context.Context, c *conn) error {
	defer c.closeAfter(ctx)()
	if err := s.first.check(s.pipeline.ordinal, c, s.options.Now()); err != nil {
		return err
	}
	most, err := mostKeys(c.stats)
	if err != nil {
		return err
	}
	return protocol.ReadDump(c, c.r, func(listed protocol.Listed) error {
		if string(listed.Key) == agentwire.DiscoveryItem {
			return nil // the agent's own, whose addresses would be wrong elsewhere
		}
		if s.spool.keys == most {
			return wire.FailFinally(wire.ReasonSpoolFull, "shard %d at %s lists more than %d keys, which is far more than it has items; check the Memcached's image", s.pipeline.ordinal, s.pipeline.address, most)
		}
		if listed.Expires == 0 || listed.Expires > c.time+minTTL {
			s.detector.addUniformly(listed.Key, listed.Expires)
		}
		return s.spool.add(listed.Key, listed.Size, listed.Expires, ageGroup(c.time-listed.Accessed))
	})
}

// mostKeys returns how many keys a shard may list: its items, and many that clients add in
// the meantime.
func mostKeys(stats protocol.Stats) (int64, error) {
	items, err := currentItems(stats)
	return 2*min(items, 1<<40) + 1_000_000, err
}

// next returns a batch of gets once the limit allows it. The first request of a batch reads the clock from which the times
// to live are counted.
func (s *shardSaver) next(ctx context.Context) (*batch, error) {
	b := newBatch()
	b.text = append(b.text, "stats\r\n"...)
	b.ends, b.expires = append(b.ends, len(b.text)), append(b.expires, 0)
	b.keys.add(nil)
	for gets(b) < s.limit.batchItems && b.size < s.limit.batchBytes {
		key, size, expires, err := s.spool.next()
		if errors.Is(err, io.EOF) {
			if gets(b) == 0 {
				return nil, errNoMore
			}
			break
		}
		if err != nil {
			return nil, err
		}
		text, ok := protocol.AppendMetaGet(b.text, key, getFlags)
		if !ok {
			s.unnamed.Add(1)
			s.options.Progress.add(1, 0)
			continue
		}
		b.text = text
		b.ends = append(b.ends, len(text))
		b.keys.add(key)
		b.expires = append(b.expires, expires)
		b.size += size
	}
	return b, s.limit.wait(ctx, gets(b), b.size)
}

// gets returns the number of items that a batch requests.
func gets(b *batch) int { return b.count() - 1 }

func (s *shardSaver) readAnswer(b *batch, c *conn) error {
	if b.answered == 0 {
		return s.readClock(c)
	}
	head, err := protocol.ReadHead(c.r)
	switch {
	case err != nil: // also SERVER_ERROR, such as no memory for the answer: another connection repeats the request
		return err
	case head.Code == protocol.MetaMiss:
		s.writer.Shard.Gone++
		if expires := b.expires[b.answered]; expires != 0 && expires <= s.clock.Unix(s.options.Now())+expiryTolerance {
			s.expired++
		} else {
			s.missing++
		}
		return nil
	case head.Code != protocol.MetaValue:
		return fmt.Errorf("%w: %s to a get", protocol.ErrMalformed, head.Code)
	}
	key := b.keys.at(b.answered)
	if head.Stale {
		return s.skipStale(key, head, c)
	}
	item := format.Record{Key: key, Flags: head.Flags, Size: head.Size}
	expires := int64(0)
	if head.TTL >= 0 {
		expires = s.expiry(b.expires[b.answered], head.TTL)
		item.Expires = s.clock.AtUnix(expires).Unix()
	}
	if err := s.writer.Add(item, c.r); err != nil {
		return err
	}
	s.bytes += int64(len(key) + head.Size)
	if s.hits++; s.hits%hitsPerSample == 0 && (head.TTL < 0 || head.TTL > minTTL) {
		s.detector.add(key, expires)
	}
	return nil
}

func (s *shardSaver) readClock(c *conn) error {
	stats, err := protocol.ReadStats(c.r)
	if err != nil {
		return err
	}
	now := s.options.Now()
	clock, err := protocol.ClockOf(stats, now)
	s.clock, s.time = clock.Best(s.clock), clock.Unix(now)
	return err
}

// expiry returns the Unix time of the shard at which an item expires whose time to live was just read. The key dump says it
// exactly, unless a client has changed it since: then it is counted from the clock, which has shown at least s.time
// since the last reading, and at most the time of now.
func (s *shardSaver) expiry(listed, ttl int64) int64 {
	if shown := listed - ttl; s.time <= shown && shown <= s.clock.Unix(s.options.Now())+1 {
		s.time = shown
	}
	return s.time + ttl
}

func (s *shardSaver) complete(b *batch) {
	s.options.Progress.add(int64(gets(b)), s.bytes)
	s.bytes = 0
	s.reinvalidate()
	b.recycle()
}

func (s *shardSaver) skipStale(key []byte, head protocol.Head, c *conn) error {
	if _, err := io.CopyN(io.Discard, c.r, int64(head.Size)); err != nil {
		return err
	}
	if err := protocol.EndValue(c.r); err != nil {
		return err
	}
	s.writer.Shard.Stale++
	if head.Won {
		s.won = append(s.won, bytes.Clone(key))
	}
	return nil
}

// reinvalidate invalidates the stale items again that memcached requested this client to
// renew: it would send no other client the request until the item expires. An error only costs that.
func (s *shardSaver) reinvalidate() {
	if len(s.won) == 0 {
		return
	}
	won := s.won
	s.won = nil
	c, err := s.pipeline.dial(s.ctx)
	if err == nil {
		defer c.Close()
		defer c.closeAfter(s.ctx)()
		err = invalidate(won, c)
	}
	if err != nil {
		s.options.Log.Warn("memcached might not request clients to renew stale items that the backup has read", "shard", s.pipeline.ordinal, "items", len(won), "error", err)
	}
}

// invalidate invalidates the items that are still stale.
func invalidate(keys [][]byte, c *conn) error {
	var text, stale []byte
	for _, key := range keys {
		text, _ = protocol.AppendMetaGet(text, key, " c u")
	}
	requested := 0
	err := c.heads(text, len(keys), func(i int, head protocol.Head) {
		// Without a CAS a newer value could be invalidated.
		if head.Code == protocol.MetaHit && head.Stale && head.CAS != 0 {
			stale, _ = protocol.AppendInvalidate(stale, keys[i], head.CAS)
			requested++
		}
	})
	if err != nil {
		return err
	}
	return c.heads(stale, requested, func(int, protocol.Head) {})
}

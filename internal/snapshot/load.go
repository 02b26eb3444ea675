package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"gocloud.dev/blob"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/ring"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

const (
	// maxRoom in bytes is what may be unanswered in all.
	maxRoom = 8 << 20
	// maxAnew is how often a shard is begun anew that lost what it was given.
	maxAnew = 2
	// answerBuffer holds the answers of a batch, which are some four bytes each.
	answerBuffer = 4 << 10
)

// Load copies the items of the snapshot at task.Path into task.Servers, shard by
// shard where the numbers are the same, else as task.Load.Ring says. The outcome says
// with every error how far it came.
func Load(ctx context.Context, bucket *blob.Bucket, task snapshotapi.Task, env Env) (snapshotapi.Outcome, error) {
	env = env.withDefaults()
	began := time.Now()
	l := &loader{bucket: bucket, task: task, env: env}
	err := l.load(ctx)
	restored, kept, expired, refused := l.sums()
	if f := snapshotapi.AsFailure(err); f != nil && l.began {
		err = &snapshotapi.Failure{Reason: f.Reason, Final: f.Final, Err: fmt.Errorf("%w (before that, %d items were restored)", err, restored)}
	}
	outcome, err := outcomeOf(ctx, env.Meter, began, err, func(o *snapshotapi.Outcome) {
		o.Message = fmt.Sprintf("%d items restored; %d kept as they were, %d had expired, %d refused", restored, kept, expired, refused)
		o.TotalItems = o.Items
	})
	outcome.Restored, outcome.Kept, outcome.Expired, outcome.Refused = restored, kept, expired, refused
	outcome.Items = restored + kept + expired + refused
	if err == nil {
		outcome.TotalItems = outcome.Items
	}
	if l.manifest != nil {
		outcome.Snapshot = l.manifest.describe()
	}
	return outcome, err
}

// loader loads a snapshot.
type loader struct {
	bucket   *blob.Bucket
	task     snapshotapi.Task
	env      Env
	options  snapshotapi.Load
	manifest *Manifest
	// ring is nil where a shard's items go into the shard of its ordinal.
	ring ring.Ring
	room *semaphore.Weighted
	// bigger is held by who sends a value through its own buffers.
	bigger sync.Mutex

	began   bool
	mu      sync.Mutex
	targets []*target // all that items were put into and that kept them
}

// sums are what became of all items.
func (l *loader) sums() (restored, kept, expired, refused int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.targets {
		restored += t.counts.restored.Load()
		kept += t.counts.kept.Load()
		expired += t.counts.expired.Load()
		refused += t.counts.refused.Load()
	}
	return restored, kept, expired, refused
}

func (l *loader) load(ctx context.Context) error {
	if l.task.Load != nil {
		l.options = *l.task.Load
	}
	if len(l.task.Servers) == 0 {
		return snapshotapi.FailFinally(v1alpha1.ReasonNothingRuns, "there is no shard that could be filled")
	}
	if err := l.open(ctx); err != nil {
		return err
	}
	if err := l.route(); err != nil {
		return err
	}
	var source func(int) bool
	if l.ring == nil {
		source = l.chosen
	}
	if err := verifyChunks(ctx, l.bucket, l.task.Path, l.manifest, source); err != nil {
		return err
	}
	for i, shard := range l.manifest.Shards {
		if source == nil || source(i) {
			l.env.Meter.expect(shard.Items)
		}
	}
	l.room = semaphore.NewWeighted(maxRoom)
	l.began = true
	if l.ring != nil {
		return l.loadByRing(ctx)
	}
	return l.loadByOrdinal(ctx)
}

// open reads the manifest and judges it.
func (l *loader) open(ctx context.Context) error {
	manifest, err := readManifest(ctx, l.bucket, l.task.Path)
	if err != nil {
		return err
	}
	if manifest == nil {
		some, err := holdsAnything(ctx, l.bucket, l.task.Path)
		if err != nil {
			return err
		}
		if some {
			return snapshotapi.FailFinally(v1alpha1.ReasonSnapshotUnfinished, "the snapshot at %s was never finished, or is being deleted: it has no manifest; use another snapshot", l.task.Path)
		}
		return snapshotapi.FailFinally(v1alpha1.ReasonSnapshotNotFound, "there is no snapshot at %s; check the store and the path", l.task.Path)
	}
	l.manifest = manifest
	if age := l.env.Now().Sub(manifest.TakenAt); l.options.MaxAge > 0 && age > l.options.MaxAge {
		return snapshotapi.FailFinally(v1alpha1.ReasonSnapshotTooOld, "the snapshot is %s old, and maxAge is %s", age.Round(time.Second), l.options.MaxAge)
	}
	return nil
}

// route finds out which items belong to which shard.
func (l *loader) route() error {
	have, want := len(l.manifest.Shards), len(l.task.Servers)
	for _, shard := range l.options.Shards {
		if shard < 0 || shard >= want {
			return snapshotapi.FailFinally(v1alpha1.ReasonSizeDiffers, "shard %d is to be restored, and the Memcached has %d", shard, want)
		}
	}
	if have == want {
		return nil
	}
	if l.options.Ring == "" {
		return snapshotapi.FailFinally(v1alpha1.ReasonSizeDiffers, "the snapshot has %d shards and the Memcached %d, and only its clients know which shard a key then belongs to: declare what they compute in spec.hashing of the Memcached, or restore into one of %d shards", have, want, have)
	}
	names := l.options.RingServers
	if len(names) != want {
		return snapshotapi.FailFinally(v1alpha1.ReasonSizeDiffers, "the ring has %d servers and the Memcached %d", len(names), want)
	}
	var err error
	if l.ring, err = ring.New(l.options.Ring, names); err != nil {
		return snapshotapi.FailFinally(v1alpha1.ReasonSizeDiffers, "spec.hashing of the Memcached cannot be used: %w", err)
	}
	return nil
}

// chosen reports whether a shard is to be filled.
func (l *loader) chosen(shard int) bool {
	return len(l.options.Shards) == 0 || slices.Contains(l.options.Shards, shard)
}

// newTarget returns a target of which there are so many at once.
func (l *loader) newTarget(ordinal, among int) *target {
	t := &target{
		env: l.env, limit: newLimit(l.task), add: !l.options.Replace, room: l.room,
		maxTTL: int64(l.options.MaxTTL / time.Second),
	}
	// What is not sent yet is in no room.
	t.limit.batchBytes = min(t.limit.batchBytes, max(4<<10, maxRoom/int64(among)/8))
	t.link = link{
		ordinal: ordinal, address: l.task.Servers[ordinal], patience: l.env.Patience, log: l.env.Log,
		window: inFlight, buffer: answerBuffer,
		next: t.next, prepare: t.weed, answer: t.answer, answered: t.answered, returned: t.known.keptBy,
	}
	return t
}

// begin opens a target, whose counts are part of the outcome from now on.
func (l *loader) begin(ctx context.Context, t *target) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.targets = append(l.targets, t)
	return nil
}

// forget takes back what was counted of a target that lost it.
func (l *loader) forget(t *target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.targets = slices.DeleteFunc(l.targets, func(other *target) bool { return other == t })
	l.env.Meter.add(-t.counts.items(), -t.counts.bytes.Load())
	l.env.Log.Warn("A shard lost what it was given and is begun anew.", "shard", t.link.ordinal, "error", t.err)
}

// lost is the Failure of a shard that loses its items again and again.
func lost(ordinal int, err error) error {
	return snapshotapi.Fail(v1alpha1.ReasonShardLostItems, "shard %d lost its items %d times while they were restored: %w", ordinal, maxAnew+1, err)
}

// loadByOrdinal fills each shard with the items of the snapshot's shard of its ordinal.
func (l *loader) loadByOrdinal(ctx context.Context) error {
	group, run := errgroup.WithContext(ctx)
	group.SetLimit(shardsAtOnce)
	for ordinal := range l.task.Servers {
		if !l.chosen(ordinal) {
			continue
		}
		group.Go(func() error { return l.loadShard(run, ordinal) })
	}
	return outer(ctx, group.Wait())
}

// outer is the cause of ctx's end rather than what it led to.
func outer(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (l *loader) loadShard(ctx context.Context, ordinal int) error {
	for anew := 0; ; anew++ {
		lostIt, err := l.loadOnce(ctx, ordinal)
		if lostIt == nil {
			return err
		}
		l.forget(lostIt)
		if anew == maxAnew {
			return lost(ordinal, err)
		}
	}
}

// loadOnce returns the target with its error if it lost its items.
func (l *loader) loadOnce(ctx context.Context, ordinal int) (lost *target, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := l.newTarget(ordinal, shardsAtOnce)
	if err := l.begin(ctx, t); err != nil {
		return nil, err
	}
	err = l.feed(ctx, ordinal, func([]byte) *target { return t })
	if err != nil && !errors.Is(err, errLost) {
		cancel()
		<-t.ended
		return nil, err
	}
	if err = t.finish(ctx); errors.Is(err, errLost) {
		return t, err
	}
	return nil, err
}

// loadByRing fills all shards from all of the snapshot's.
func (l *loader) loadByRing(ctx context.Context) error {
	var ordinals []int
	for ordinal := range l.task.Servers {
		if l.chosen(ordinal) {
			ordinals = append(ordinals, ordinal)
		}
	}
	for anew := 0; ; anew++ {
		again, err := l.pass(ctx, ordinals)
		if err != nil || len(again) == 0 {
			return err
		}
		ordinals = ordinals[:0]
		for _, t := range again {
			l.forget(t)
			ordinals = append(ordinals, t.link.ordinal)
		}
		if anew == maxAnew {
			return lost(again[0].link.ordinal, again[0].err)
		}
	}
}

// pass puts what belongs to the given shards into them, and returns those that lost it.
func (l *loader) pass(ctx context.Context, ordinals []int) (again []*target, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	targets := make([]*target, len(l.task.Servers)) // nil is none
	var opening errgroup.Group
	opening.SetLimit(shardsAtOnce)
	for _, ordinal := range ordinals {
		targets[ordinal] = l.newTarget(ordinal, len(ordinals))
		opening.Go(func() error { return l.begin(ctx, targets[ordinal]) })
	}
	err = opening.Wait()
	if err == nil {
		feeding, run := errgroup.WithContext(ctx)
		feeding.SetLimit(shardsAtOnce)
		for shard := range l.manifest.Shards {
			feeding.Go(func() error {
				return l.feed(run, shard, func(key []byte) *target { return targets[l.ring.Shard(key)] })
			})
		}
		err = feeding.Wait()
	}
	if err != nil {
		cancel()
	}
	for _, t := range targets {
		if t == nil || t.ended == nil {
			continue
		}
		switch e := t.finish(ctx); {
		case errors.Is(e, errLost):
			again = append(again, t)
		case err == nil:
			err = e
		}
	}
	return again, err
}

// feed puts the items of one of the snapshot's shards where pick says; nil is nowhere.
func (l *loader) feed(ctx context.Context, shard int, pick func(key []byte) *target) error {
	ctx, cancel := context.WithCancel(ctx)
	reader := &chunkReader{bucket: l.bucket, path: l.task.Path, manifest: l.manifest, shard: shard}
	decoder, err := newDecoder()
	if err != nil {
		cancel()
		return fmt.Errorf("making a decompressor: %w", err)
	}
	defer decoder.Close()
	ahead := &prefetch{reader: reader}
	defer ahead.stop()
	defer cancel()

	chunks := reader.chunks()
	var raw []byte
	ahead.start(ctx, 0)
	for i := 0; i < len(chunks); {
		stored, err := ahead.take()
		if err != nil {
			return err
		}
		if raw, err = decode(decoder, stored, raw, chunks[i]); err != nil {
			return reader.corrupt(i, err)
		}
		ahead.done(stored)
		taken := 1
		if item, rest, err := parseRecord(raw); err != nil {
			return reader.corrupt(i, err)
		} else if item.size > MaxWhole {
			if taken, err = reader.span(i, item, len(rest)); err != nil || chunks[i].Items != 1 {
				return reader.corrupt(i, errRecord)
			}
			ahead.start(ctx, i+taken)
			if t := pick(item.key); t == nil {
				l.env.Meter.add(1, int64(len(item.key)+item.size))
			} else if err := l.putLarge(ctx, t, reader, i, taken, item); err != nil {
				return err
			}
		} else {
			ahead.start(ctx, i+1)
			if err := l.putChunk(ctx, raw, chunks[i].Items, pick); errors.Is(err, errRecord) {
				return reader.corrupt(i, err)
			} else if err != nil {
				return err
			}
		}
		i += taken
	}
	return nil
}

// putChunk puts the items of a chunk.
func (l *loader) putChunk(ctx context.Context, raw []byte, items int, pick func(key []byte) *target) error {
	for ; len(raw) > 0; items-- {
		item, rest, err := parseRecord(raw)
		if err != nil {
			return err
		}
		if item.size > MaxWhole {
			return errRecord
		}
		value := rest[:item.size]
		raw = rest[item.size:]
		if err := l.put(ctx, pick(item.key), item, value); err != nil {
			return err
		}
	}
	if items != 0 {
		return errRecord
	}
	return nil
}

// put has a target get an item. One that lost its items gets them all in another pass.
func (l *loader) put(ctx context.Context, t *target, item record, value []byte) error {
	if t == nil {
		l.env.Meter.add(1, int64(len(item.key)+item.size))
		return nil
	}
	err := t.put(ctx, item, value)
	if l.ring != nil && errors.Is(err, errLost) {
		return nil
	}
	return err
}

// putLarge has a value be written that is in several chunks, of which each has its
// checksum before it goes on its way; else the connection ends amid the value.
func (l *loader) putLarge(ctx context.Context, t *target, reader *chunkReader, first, n int, item record) error {
	err := t.large(ctx, item, func(ctx context.Context, w io.Writer, head []byte) error {
		l.bigger.Lock()
		defer l.bigger.Unlock()
		decoder, err := newDecoder()
		if err != nil {
			return snapshotapi.Fail(v1alpha1.ReasonJobFailed, "making a decompressor: %w", err)
		}
		defer decoder.Close()
		var stored, raw []byte
		for i := first; i < first+n; i++ {
			if stored, err = reader.fetch(ctx, i, stored); err != nil {
				return err
			}
			if raw, err = decode(decoder, stored, raw, reader.chunks()[i]); err != nil {
				return reader.corrupt(i, err)
			}
			part := raw
			if i == first {
				if _, part, err = parseRecord(raw); err != nil {
					return reader.corrupt(i, err)
				}
				if _, err := w.Write(head); err != nil {
					return err
				}
			}
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		_, err = w.Write([]byte("\r\n"))
		return err
	})
	if l.ring != nil && errors.Is(err, errLost) {
		return nil
	}
	return err
}

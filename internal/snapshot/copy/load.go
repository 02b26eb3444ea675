package copy

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

	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// maxUnanswered in bytes limits the requests of all shards without an answer.
	maxUnanswered = 8 << 20
	// maxRestarts is how often a shard that lost its items is loaded again.
	maxRestarts = 2
)

// Load copies the items of the snapshot at task.Path into task.Servers, shard by shard
// if the numbers of shards are equal, otherwise by task.Load.Ring. The outcome is valid
// with an error too.
func Load(ctx context.Context, bucket *blob.Bucket, task wire.Task, o Options) (wire.Outcome, error) {
	o = o.withDefaults()
	began := time.Now()
	l := &loader{bucket: bucket, task: task, options: o}
	err := l.run(ctx)
	restored, kept, expired, refused := l.sums()
	if f := wire.AsFailure(err); f != nil && l.writing {
		err = &wire.Failure{Reason: f.Reason, Final: f.Final, Err: fmt.Errorf("%w (before that, %d items were restored)", err, restored)}
	}
	outcome, err := newOutcome(ctx, o.Progress, began, err)
	outcome.Restored, outcome.Kept, outcome.Expired, outcome.Refused = restored, kept, expired, refused
	outcome.Items = restored + kept + expired + refused
	if err == nil {
		outcome.TotalItems = outcome.Items
		outcome.Message = fmt.Sprintf("%d items restored; %d already existed and were kept, %d had expired, %d were rejected by memcached", restored, kept, expired, refused)
	}
	if l.manifest != nil {
		outcome.Snapshot = l.manifest.Describe()
	}
	return outcome, err
}

// loader loads a snapshot.
type loader struct {
	bucket   *blob.Bucket
	task     wire.Task
	load     wire.Load
	options  Options
	manifest *format.Manifest
	// ring is nil if each shard gets the items of the shard with its ordinal.
	ring       ring.Ring
	unanswered *semaphore.Weighted
	// large is locked by the shard that sends a large value, which needs buffers of its own.
	large sync.Mutex

	writing bool // memcached may have items of the snapshot
	mu      sync.Mutex
	shards  []*shardLoader // that were opened and didn't lose their items
}

func (l *loader) sums() (restored, kept, expired, refused int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.shards {
		restored += s.counts.restored.Load()
		kept += s.counts.kept.Load()
		expired += s.counts.expired.Load()
		refused += s.counts.refused.Load()
	}
	return restored, kept, expired, refused
}

func (l *loader) run(ctx context.Context) error {
	if l.task.Load != nil {
		l.load = *l.task.Load
	}
	if len(l.task.Servers) == 0 {
		return wire.FailFinally(wire.ReasonNoShards, "the Memcached has no shards to restore into")
	}
	if err := l.open(ctx); err != nil {
		return err
	}
	if err := l.route(); err != nil {
		return err
	}
	var sources func(int) bool // nil means all shards of the snapshot
	if l.ring == nil {
		sources = l.isSelected
	}
	if err := l.manifest.VerifyChunks(ctx, l.bucket, l.task.Path, sources); err != nil {
		return err
	}
	for i, shard := range l.manifest.Shards {
		if sources == nil || sources(i) {
			l.options.Progress.expect(shard.Items)
		}
	}
	l.unanswered = semaphore.NewWeighted(maxUnanswered)
	l.writing = true
	if l.ring != nil {
		return l.loadByRing(ctx)
	}
	return l.loadByOrdinal(ctx)
}

// open reads the manifest and checks the age of the snapshot.
func (l *loader) open(ctx context.Context) error {
	manifest, err := format.Open(ctx, l.bucket, l.task.Path)
	if err != nil {
		return err
	}
	l.manifest = manifest
	if age := l.options.Now().Sub(manifest.TakenAt); l.load.MaxAge > 0 && age > l.load.MaxAge {
		return wire.FailFinally(wire.ReasonSnapshotTooOld, "the snapshot is %s old, but maxAge is %s; use a newer snapshot", age.Round(time.Second), l.load.MaxAge)
	}
	return nil
}

// route decides how items map to shards.
func (l *loader) route() error {
	have, want := len(l.manifest.Shards), len(l.task.Servers)
	for _, shard := range l.load.Shards {
		if shard < 0 || shard >= want {
			return wire.FailFinally(wire.ReasonSizeDiffers, "shard %d doesn't exist; the Memcached has %d shards", shard, want)
		}
	}
	if have == want {
		return nil
	}
	if l.load.Ring == "" {
		return wire.FailFinally(wire.ReasonSizeDiffers, "the snapshot has %d shards and the Memcached %d, and only its clients know to which shard a key then belongs; set spec.hashing of the Memcached, or restore into one with %d shards", have, want, have)
	}
	names := l.load.RingServers
	if len(names) != want {
		return wire.FailFinally(wire.ReasonSizeDiffers, "the ring has %d servers and the Memcached %d", len(names), want)
	}
	var err error
	if l.ring, err = ring.New(l.load.Ring, names); err != nil {
		return wire.FailFinally(wire.ReasonSizeDiffers, "spec.hashing of the Memcached is invalid: %w", err)
	}
	return nil
}

// isSelected reports whether a shard is loaded.
func (l *loader) isSelected(shard int) bool {
	return len(l.load.Shards) == 0 || slices.Contains(l.load.Shards, shard)
}

// openShard starts the loader of a shard, whose counts are part of the outcome from then on.
func (l *loader) openShard(ctx context.Context, s *shardLoader) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shards = append(l.shards, s)
	return nil
}

// discard removes the counts of a shard that lost its items.
func (l *loader) discard(s *shardLoader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shards = slices.DeleteFunc(l.shards, func(other *shardLoader) bool { return other == s })
	l.options.Progress.add(-s.counts.items(), -s.counts.bytes.Load())
	l.options.Log.Warn("Loading a shard again that lost its items.", "shard", s.pipeline.ordinal, "error", s.err)
}

func lostRepeatedly(ordinal int, err error) error {
	return wire.Fail(wire.ReasonShardLostItems, "shard %d lost its items %d times during the restore: %w", ordinal, maxRestarts+1, err)
}

// loadByOrdinal loads each shard from the snapshot's shard with the same ordinal.
func (l *loader) loadByOrdinal(ctx context.Context) error {
	group, run := errgroup.WithContext(ctx)
	group.SetLimit(maxShards)
	for ordinal := range l.task.Servers {
		if l.isSelected(ordinal) {
			group.Go(func() error { return l.loadShard(run, ordinal) })
		}
	}
	if err := group.Wait(); err != nil {
		return causeOr(ctx, err)
	}
	return nil
}

func (l *loader) loadShard(ctx context.Context, ordinal int) error {
	for restarts := 0; ; restarts++ {
		lost, err := l.loadOnce(ctx, ordinal)
		if lost == nil {
			return err
		}
		l.discard(lost)
		if restarts == maxRestarts {
			return lostRepeatedly(ordinal, err)
		}
	}
}

// loadOnce returns the shard's loader with the error if the shard lost its items.
func (l *loader) loadOnce(ctx context.Context, ordinal int) (lost *shardLoader, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := l.newShardLoader(ordinal, maxShards)
	if err := l.openShard(ctx, s); err != nil {
		return nil, err
	}
	err = l.read(ctx, ordinal, func([]byte) *shardLoader { return s })
	if err != nil && !errors.Is(err, errLost) {
		cancel()
		<-s.done
		return nil, err
	}
	if err = s.finish(ctx); errors.Is(err, errLost) {
		return s, err
	}
	return nil, err
}

// loadByRing loads all shards from all shards of the snapshot.
func (l *loader) loadByRing(ctx context.Context) error {
	var ordinals []int
	for ordinal := range l.task.Servers {
		if l.isSelected(ordinal) {
			ordinals = append(ordinals, ordinal)
		}
	}
	for restarts := 0; ; restarts++ {
		lost, err := l.loadPass(ctx, ordinals)
		if err != nil || len(lost) == 0 {
			return err
		}
		ordinals = ordinals[:0]
		for _, s := range lost {
			l.discard(s)
			ordinals = append(ordinals, s.pipeline.ordinal)
		}
		if restarts == maxRestarts {
			return lostRepeatedly(lost[0].pipeline.ordinal, lost[0].err)
		}
	}
}

// loadPass loads some shards and returns those that lost their items.
func (l *loader) loadPass(ctx context.Context, ordinals []int) (lost []*shardLoader, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	targets := make([]*shardLoader, len(l.task.Servers)) // nil: not loaded
	var opening errgroup.Group
	opening.SetLimit(maxShards)
	for _, ordinal := range ordinals {
		targets[ordinal] = l.newShardLoader(ordinal, len(ordinals))
		opening.Go(func() error { return l.openShard(ctx, targets[ordinal]) })
	}
	err = opening.Wait()
	if err == nil {
		reading, run := errgroup.WithContext(ctx)
		reading.SetLimit(maxShards)
		for shard := range l.manifest.Shards {
			reading.Go(func() error {
				return l.read(run, shard, func(key []byte) *shardLoader { return targets[l.ring.Shard(key)] })
			})
		}
		err = reading.Wait()
	}
	if err != nil {
		cancel()
	}
	for _, s := range targets {
		if s == nil || s.done == nil {
			continue
		}
		switch e := s.finish(ctx); {
		case errors.Is(e, errLost):
			lost = append(lost, s)
		case err == nil:
			err = e
		}
	}
	return lost, err
}

// read passes the items of one shard of the snapshot to the loaders that pick returns.
func (l *loader) read(ctx context.Context, shard int, pick func(key []byte) *shardLoader) error {
	return l.manifest.ReadShard(ctx, l.bucket, l.task.Path, shard, router{l, pick})
}

// router passes each item to the loader of its shard.
type router struct {
	*loader
	// pick returns nil for a key whose shard is not loaded.
	pick func(key []byte) *shardLoader
}

func (r router) Put(ctx context.Context, item format.Record, value []byte) error {
	s := r.pick(item.Key)
	if s == nil {
		return r.skip(item)
	}
	return r.ignoreLoss(s.put(ctx, item, value))
}

func (r router) PutLarge(ctx context.Context, item format.Record, value *format.LargeValue) error {
	s := r.pick(item.Key)
	if s == nil {
		return r.skip(item)
	}
	return r.ignoreLoss(s.putLarge(ctx, item, func(ctx context.Context, w io.Writer, head []byte) error {
		r.large.Lock()
		defer r.large.Unlock()
		if err := value.WriteTo(ctx, w, head); err != nil {
			return err
		}
		_, err := w.Write([]byte("\r\n"))
		return err
	}))
}

func (r router) skip(item format.Record) error {
	r.options.Progress.add(1, int64(len(item.Key)+item.Size))
	return nil
}

// ignoreLoss lets the other shards of a ring continue: a shard that lost its items gets
// all of them in another pass.
func (r router) ignoreLoss(err error) error {
	if r.ring != nil && errors.Is(err, errLost) {
		return nil
	}
	return err
}

package copy

import (
	"context"
	"errors"
	"fmt"
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
// if the numbers of shards are equal and the servers have the same names, otherwise by
// task.Load.Ring. The outcome is valid with an error too.
func Load(ctx context.Context, bucket *blob.Bucket, task wire.Task, o Options) (wire.Outcome, error) {
	o = o.withDefaults()
	began := time.Now()
	l := &loader{bucket: bucket, task: task, options: o}
	err := l.run(ctx)
	restored, kept, expired, rejected := l.sums()
	if f := wire.AsFailure(err); f != nil && l.writing {
		err = &wire.Failure{Reason: f.Reason, Final: f.Final, Err: fmt.Errorf("%w (before that, %d items were restored)", err, restored)}
	}
	outcome, err := newOutcome(o.Progress, began, err)
	outcome.Restored, outcome.Kept, outcome.Expired, outcome.Rejected = restored, kept, expired, rejected
	outcome.Items = restored + kept + expired + rejected
	if err == nil {
		outcome.TotalItems = outcome.Items
		outcome.Message = fmt.Sprintf("%d items restored; %d already existed and were kept, %d had expired, %d were rejected by memcached", restored, kept, expired, rejected)
	}
	if l.manifest != nil {
		outcome.Snapshot = l.manifest.Describe()
	}
	return outcome, err
}

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
	// shards by ordinal; nil for one that is not loaded or lost its items.
	shards []*shardLoader
}

func (l *loader) sums() (restored, kept, expired, rejected int64) {
	for _, s := range l.shards {
		if s != nil {
			restored += s.counts.restored.Load()
			kept += s.counts.kept.Load()
			expired += s.counts.expired.Load()
			rejected += s.counts.rejected.Load()
		}
	}
	return restored, kept, expired, rejected
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
	var targets, sources []int
	for ordinal := range l.task.Servers {
		if len(l.load.Shards) == 0 || slices.Contains(l.load.Shards, ordinal) {
			targets = append(targets, ordinal)
		}
	}
	for shard := range l.manifest.Shards {
		if l.ring != nil || slices.Contains(targets, shard) {
			sources = append(sources, shard)
		}
	}
	isSource := func(shard int) bool { return slices.Contains(sources, shard) }
	if err := l.manifest.VerifyChunks(ctx, l.bucket, l.task.Path, isSource); err != nil {
		return err
	}
	for _, shard := range sources {
		l.options.Progress.expect(l.manifest.Shards[shard].Items)
	}
	l.unanswered = semaphore.NewWeighted(maxUnanswered)
	l.shards = make([]*shardLoader, len(l.task.Servers))
	l.writing = true
	if l.ring != nil {
		if err := l.loadAll(ctx, targets, sources); err != nil {
			return err
		}
		return l.checkKept(ctx)
	}
	group, run := errgroup.WithContext(ctx)
	group.SetLimit(maxShards)
	for _, ordinal := range targets {
		group.Go(func() error { return l.loadAll(run, []int{ordinal}, []int{ordinal}) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return l.checkKept(ctx)
}

// checkKept returns a failure if a shard lost its items after it was loaded, while others
// still were: its pod may have been replaced.
func (l *loader) checkKept(ctx context.Context) error {
	for ordinal, s := range l.shards {
		if s == nil {
			continue
		}
		switch err := s.pipeline.checkAgain(ctx); {
		case errors.Is(err, errLost):
			return wire.Fail(wire.ReasonShardLostItems, "shard %d lost its items after it was restored: %w", ordinal, err)
		case err != nil:
			return err
		}
	}
	return nil
}

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

func (l *loader) route() error {
	have, want := len(l.manifest.Shards), len(l.task.Servers)
	for _, shard := range l.load.Shards {
		if shard < 0 || shard >= want {
			return wire.FailFinally(wire.ReasonSizeDiffers, "shard %d doesn't exist; the Memcached has %d shards", shard, want)
		}
	}
	if have == want && (l.load.Ring == "" || !l.isRenamed()) {
		return nil
	}
	if l.load.Ring == "" {
		return wire.FailFinally(wire.ReasonSizeDiffers, "the snapshot has %d shards and the Memcached %d, and only its clients know to which shard a key then belongs; set spec.access.hashing of the Memcached, or restore into one with %d shards", have, want, have)
	}
	names := l.load.RingServers
	if len(names) != want {
		return wire.FailFinally(wire.ReasonSizeDiffers, "the ring has %d servers and the Memcached %d", len(names), want)
	}
	var err error
	if l.ring, err = ring.New(l.load.Ring, names); err != nil {
		return wire.FailFinally(wire.ReasonSizeDiffers, "spec.access.hashing of the Memcached is invalid: %w", err)
	}
	return nil
}

// isRenamed reports whether the Memcached has another name than the snapshot's, so that clients that hash the names of
// servers look for a key on another shard.
func (l *loader) isRenamed() bool {
	from, to := l.manifest.Memcached, l.task.Memcached
	return to.Name != "" && (from.Namespace != to.Namespace || from.Name != to.Name)
}

// loadAll loads some shards from some shards of the snapshot, and again those that lost
// their items.
func (l *loader) loadAll(ctx context.Context, targets, sources []int) error {
	for restarts := 0; ; restarts++ {
		lost, err := l.loadOnce(ctx, targets, sources)
		if err != nil || len(lost) == 0 {
			return err
		}
		targets = nil
		for _, s := range lost {
			ordinal := s.pipeline.ordinal
			if restarts == maxRestarts {
				return wire.Fail(wire.ReasonShardLostItems, "shard %d lost its items %d times during the restore: %w", ordinal, maxRestarts+1, s.err)
			}
			l.options.Progress.add(-s.counts.items(), -s.counts.bytes.Load())
			l.options.Log.Warn("Loading a shard again that lost its items", "shard", ordinal, "error", s.err)
			targets = append(targets, ordinal)
		}
	}
}

// loadOnce loads some shards and returns those that lost their items.
func (l *loader) loadOnce(ctx context.Context, targets, sources []int) (lost []*shardLoader, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := router{loader: l, loaders: make([]*shardLoader, len(l.task.Servers)), alone: len(targets) == 1}
	var opening errgroup.Group
	opening.SetLimit(maxShards)
	for _, ordinal := range targets {
		s := l.newShardLoader(ordinal, max(len(targets), maxShards))
		l.shards[ordinal], r.loaders[ordinal] = s, s
		opening.Go(func() error { return s.open(ctx) })
	}
	err = opening.Wait()
	if err == nil {
		reading, run := errgroup.WithContext(ctx)
		reading.SetLimit(maxShards)
		for _, shard := range sources {
			r.shard = shard
			sink := r
			reading.Go(func() error { return l.manifest.ReadShard(run, l.bucket, l.task.Path, shard, sink) })
		}
		err = reading.Wait()
	}
	if err != nil && !errors.Is(err, errLost) {
		cancel()
	}
	for _, ordinal := range targets {
		s := r.loaders[ordinal]
		if s.done == nil { // it was not opened
			continue
		}
		switch e := s.finish(ctx); {
		case errors.Is(e, errLost):
			lost = append(lost, s)
			l.shards[ordinal] = nil
		case err == nil:
			err = e
		}
	}
	if errors.Is(err, errLost) {
		err = nil
	}
	return lost, err
}

// router passes each item of a shard of the snapshot to the loader of its target.
type router struct {
	*loader
	shard int
	// loaders by ordinal; nil for a shard that is not loaded.
	loaders []*shardLoader
	alone   bool // there is one loader
}

// pick returns nil for a key whose shard is not loaded.
func (r router) pick(key []byte) *shardLoader {
	ordinal := r.shard
	if r.ring != nil {
		ordinal = r.ring.Shard(key)
	}
	return r.loaders[ordinal]
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
	return r.ignoreLoss(s.putLarge(ctx, item, value, &r.large))
}

func (r router) skip(item format.Record) error {
	r.options.Progress.add(1, int64(len(item.Key)+item.Size))
	return nil
}

// ignoreLoss lets the other shards of a ring continue: a shard that lost its items gets
// all of them in another pass.
func (r router) ignoreLoss(err error) error {
	if !r.alone && errors.Is(err, errLost) {
		return nil
	}
	return err
}

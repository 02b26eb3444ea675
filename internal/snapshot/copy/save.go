package copy

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"path"
	"time"

	"gocloud.dev/blob"
	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// maxShards is how many shards are copied at a time: each needs about 15 MiB.
	maxShards = 4
	// cleanupTimeout bounds how long a save that was stopped deletes its chunks, so that it
	// reports its outcome before Kubernetes kills the pod.
	cleanupTimeout = wire.SaveGrace - 15*time.Second
)

// Save copies all items of task.Servers into a new snapshot at task.Path. If this task
// has already completed a snapshot there, Save does nothing and returns that one. The
// outcome is valid with an error too.
func Save(ctx context.Context, bucket *blob.Bucket, task wire.Task, o Options) (wire.Outcome, error) {
	o = o.withDefaults()
	began := time.Now()
	manifest, err := save(ctx, bucket, task, o)
	outcome, err := newOutcome(o.Progress, began, err)
	if err == nil {
		outcome.Snapshot = manifest.Describe()
		outcome.Items, outcome.Bytes, outcome.TotalItems = outcome.Snapshot.Items, outcome.Snapshot.Bytes, outcome.Snapshot.Items
		outcome.Message = manifest.Summary()
	}
	return outcome, err
}

// newOutcome returns the figures of a run, and its error as a Failure.
func newOutcome(progress *Progress, began time.Time, err error) (wire.Outcome, error) {
	p := progress.Report("")
	outcome := wire.Outcome{Reason: wire.ReasonSucceeded, Items: p.Items, TotalItems: p.TotalItems, Bytes: p.Bytes}
	if err != nil && wire.AsFailure(err) == nil {
		err = wire.Fail(wire.ReasonJobFailed, "copying items: %w", err)
	}
	if took := time.Since(began).Seconds(); took > 0 {
		outcome.ItemsPerSecond = int64(float64(p.Items) / took)
	}
	return outcome, err
}

func save(ctx context.Context, bucket *blob.Bucket, task wire.Task, o Options) (*format.Manifest, error) {
	if len(task.Servers) == 0 {
		return nil, wire.FailFinally(wire.ReasonNoShards, "the Memcached has no shards to save")
	}
	manifest, err := existingSnapshot(ctx, bucket, task)
	if err != nil {
		return nil, err
	}
	if manifest == nil {
		manifest, err = saveShards(ctx, bucket, task, o)
	}
	if f := wire.AsFailure(err); err == nil || f != nil && f.Final {
		forget(ctx, bucket, task, o.Log)
	}
	return manifest, err
}

func saveShards(ctx context.Context, bucket *blob.Bucket, task wire.Task, o Options) (saved *format.Manifest, err error) {
	first, err := firstAttempt(ctx, bucket, task, o)
	if err == nil {
		err = format.DeleteAll(ctx, bucket, task.Path, path.Join(task.Path, attemptName))
	}
	if err != nil {
		return nil, err
	}
	// A Job may have two pods for a while, which must not write to the same folder.
	folder := rand.Text()
	manifest := &format.Manifest{
		TaskID: task.ID, TakenAt: o.Now().UTC().Truncate(time.Second), Memcached: task.Memcached,
		Folder: folder, Shards: make([]format.Shard, len(task.Servers)),
	}
	var space *spoolSpace
	if task.SpoolBytes > 0 {
		space = &spoolSpace{limit: task.SpoolBytes}
	}
	group, run := errgroup.WithContext(ctx)
	group.SetLimit(maxShards)
	for ordinal := range task.Servers {
		group.Go(func() (err error) {
			manifest.Shards[ordinal], err = saveShard(run, bucket, task, o, first, space, folder, ordinal)
			return err
		})
	}
	if err = group.Wait(); err == nil {
		manifest.CreatedAt = o.Now().UTC().Truncate(time.Second)
		saved, err = complete(ctx, bucket, task, manifest)
	}
	if err != nil || saved.Folder != folder {
		discard(ctx, bucket, task.Path, folder, o.Log)
	}
	return saved, err
}

// discard deletes the chunks of an attempt that isn't the snapshot, since a full store would stay
// full. The next attempt deletes what this one can't.
func discard(ctx context.Context, bucket *blob.Bucket, at, folder string, log *slog.Logger) {
	remove := func(ctx context.Context) error {
		if manifest, err := format.Find(ctx, bucket, at); err == nil && manifest != nil && manifest.Folder == folder { // its write failed after it was in the store
			if err := bucket.Delete(ctx, path.Join(at, format.ManifestName)); err != nil {
				return err
			}
		}
		return format.DeleteAll(ctx, bucket, path.Join(at, folder))
	}
	err := remove(ctx)
	if ctx.Err() != nil { // the pod stops
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		err = remove(stopping)
	}
	if err != nil {
		log.Warn("Chunks of a failed snapshot remain in the store", "path", at, "error", err)
	}
}

// existingSnapshot returns the snapshot that this task completed before, or nil. One without all of its chunks is not complete: its
// attempt deleted them when it took the write of the manifest for failed.
func existingSnapshot(ctx context.Context, bucket *blob.Bucket, task wire.Task) (*format.Manifest, error) {
	manifest, err := format.Find(ctx, bucket, task.Path)
	if err != nil || manifest == nil {
		return nil, err
	}
	if manifest.TaskID != task.ID {
		return nil, wire.FailFinally(wire.ReasonSnapshotOwnedByOther, "%s contains a snapshot of another backup (ID %.80q), which is not overwritten; use another path", task.Path, manifest.TaskID)
	}
	err = manifest.VerifyChunks(ctx, bucket, task.Path, nil)
	if f := wire.AsFailure(err); f != nil && f.Reason == wire.ReasonSnapshotCorrupt {
		return nil, nil
	}
	return manifest, err
}

// complete writes the manifest. Another pod of the same Job may have completed the
// snapshot in the meantime, or have deleted these chunks as those of a failed attempt.
func complete(ctx context.Context, bucket *blob.Bucket, task wire.Task, manifest *format.Manifest) (*format.Manifest, error) {
	if other, err := existingSnapshot(ctx, bucket, task); err != nil || other != nil {
		return other, err
	}
	if err := manifest.VerifyChunks(ctx, bucket, task.Path, nil); err != nil {
		if f := wire.AsFailure(err); f != nil && f.Reason == wire.ReasonSnapshotCorrupt {
			return nil, wire.Fail(wire.ReasonStoreFailed, "the store lost a chunk that was just written: %w", f.Err)
		}
		return nil, err
	}
	return manifest, manifest.Write(ctx, bucket, task.Path)
}

// defaultShardTimeout: a warm restart takes seconds, a new pod on another node about
// a minute.
const defaultShardTimeout = 2 * time.Minute

// Options of a run.
type Options struct {
	// SpoolDir is a directory for the names of keys; empty means the system's directory
	// for temporary files.
	SpoolDir string
	// TLSDir is a directory with the files of the task's TLS, and UsersDir one with the users that may log in;
	// empty means wire.TLSPath and wire.UsersPath.
	TLSDir, UsersDir string
	// Progress counts what is done.
	Progress *Progress
	// ShardTimeout is how long a shard may be unavailable; 0 means two minutes.
	ShardTimeout time.Duration
	// DialContext connects to the shards; nil means over TCP.
	DialContext protocol.DialContext
	// Now is the clock; nil means the system's.
	Now func() time.Time
	// Log gets one line for each problem that was solved.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.TLSDir, o.UsersDir = cmp.Or(o.TLSDir, wire.TLSPath), cmp.Or(o.UsersDir, wire.UsersPath)
	if o.ShardTimeout == 0 {
		o.ShardTimeout = defaultShardTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

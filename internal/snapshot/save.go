package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/memcache"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/store"
)

const (
	// shardsAtOnce bounds the memory of a run: each takes some 15 MiB.
	shardsAtOnce = 4
	// inFlight is how many batches of a shard may be unanswered.
	inFlight = 4
	// busyPatience is how long another dump may keep a server from telling its keys.
	busyPatience = 10 * time.Minute
)

// Save copies all items of task.Servers into a new snapshot at task.Path. Where there
// is a whole one of this very task, it does nothing and tells of that one. The
// outcome says with every error how far it came.
func Save(ctx context.Context, bucket *blob.Bucket, task snapshotapi.Task, env Env) (snapshotapi.Outcome, error) {
	env = env.withDefaults()
	began := time.Now()
	manifest, err := save(ctx, bucket, task, env)
	return outcomeOf(ctx, env.Meter, began, err, func(o *snapshotapi.Outcome) {
		o.Snapshot = manifest.describe()
		o.Items, o.Bytes, o.TotalItems = o.Snapshot.Items, o.Snapshot.Bytes, o.Snapshot.Items
		o.Message = manifest.summary()
	})
}

// outcomeOf returns how a run ended, with its error in the Failure that it is.
func outcomeOf(ctx context.Context, meter *Meter, began time.Time, err error, succeeded func(*snapshotapi.Outcome)) (snapshotapi.Outcome, error) {
	progress := meter.Progress("")
	outcome := snapshotapi.Outcome{
		Reason: v1alpha1.ReasonSucceeded,
		Items:  progress.Items, TotalItems: progress.TotalItems, Bytes: progress.Bytes,
	}
	if err == nil {
		succeeded(&outcome)
	} else {
		failure := snapshotapi.AsFailure(err)
		if failure == nil {
			doing := "copying items"
			if ctx.Err() != nil {
				doing = "it was stopped before its end"
			}
			failure = &snapshotapi.Failure{Reason: v1alpha1.ReasonJobFailed, Err: fmt.Errorf("%s: %w", doing, err)}
			err = failure
		}
		outcome.Reason, outcome.Final, outcome.Message = failure.Reason, failure.Final, err.Error()
	}
	if took := time.Since(began).Seconds(); took > 0 {
		outcome.ItemsPerSecond = int64(float64(progress.Items) / took)
	}
	return outcome, err
}

func save(ctx context.Context, bucket *blob.Bucket, task snapshotapi.Task, env Env) (*Manifest, error) {
	if len(task.Servers) == 0 {
		return nil, snapshotapi.FailFinally(v1alpha1.ReasonNothingRuns, "there is no shard whose items could be saved")
	}
	if done, err := savedBefore(ctx, bucket, task); err != nil || done != nil {
		return done, err
	}
	if err := deleteAll(ctx, bucket, task.Path); err != nil {
		return nil, err
	}
	folder, err := newFolder()
	if err != nil {
		return nil, err
	}
	manifest := &Manifest{
		TaskID: task.ID, TakenAt: env.Now().UTC().Truncate(time.Second), Memcached: task.Memcached,
		Folder: folder, Shards: make([]Shard, len(task.Servers)),
	}
	group, run := errgroup.WithContext(ctx)
	group.SetLimit(shardsAtOnce)
	for ordinal := range task.Servers {
		group.Go(func() (err error) {
			manifest.Shards[ordinal], err = saveShard(run, bucket, task, env, folder, ordinal)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		giveUp(ctx, bucket, path.Join(task.Path, folder), env.Log)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	manifest.CreatedAt = env.Now().UTC().Truncate(time.Second)
	return manifest, commit(ctx, bucket, task, manifest)
}

// giveUpTime bounds how long an attempt that failed removes what it wrote. A Job's
// pod has thirty seconds to stop.
const giveUpTime = 15 * time.Second

// giveUp removes the chunks of an attempt that failed, as far as that can be done
// soon: a store that is full would stay so. The next attempt removes the rest.
func giveUp(ctx context.Context, bucket *blob.Bucket, at string, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpTime)
	defer cancel()
	if err := deleteAll(ctx, bucket, at); err != nil {
		log.Warn("Chunks of a snapshot that failed stay in the store.", "path", at, "reason", err)
	}
}

// newFolder returns a name of an attempt's own: a Job may have two pods for a while,
// and neither may write into what the other tells of.
func newFolder() (string, error) {
	var name [8]byte
	if _, err := rand.Read(name[:]); err != nil {
		return "", fmt.Errorf("naming a folder: %w", err)
	}
	return hex.EncodeToString(name[:]), nil
}

// savedBefore returns the snapshot that this task has made already, if it has.
func savedBefore(ctx context.Context, bucket *blob.Bucket, task snapshotapi.Task) (*Manifest, error) {
	manifest, err := readManifest(ctx, bucket, task.Path)
	if err != nil || manifest == nil {
		return nil, err
	}
	if manifest.TaskID != task.ID {
		return nil, snapshotapi.FailFinally(v1alpha1.ReasonSnapshotNotOurs, "at %s is a snapshot of another backup, of the ID %.80q: it is left as it is", task.Path, manifest.TaskID)
	}
	return manifest, nil
}

// commit makes the snapshot be there. Another pod of the same Job may have done so
// meanwhile, or have taken this one's chunks for those of an attempt that ended.
func commit(ctx context.Context, bucket *blob.Bucket, task snapshotapi.Task, manifest *Manifest) error {
	other, err := savedBefore(ctx, bucket, task)
	if err != nil {
		return err
	}
	if other != nil && verifyChunks(ctx, bucket, task.Path, other, nil) == nil {
		*manifest = *other
		return nil
	}
	if err := verifyChunks(ctx, bucket, task.Path, manifest, nil); err != nil {
		if f := snapshotapi.AsFailure(err); f != nil && f.Reason == v1alpha1.ReasonSnapshotCorrupt {
			return snapshotapi.Fail(v1alpha1.ReasonStoreFailed, "what was written is not there: %w", f.Err)
		}
		return err
	}
	text, err := manifest.encode()
	if err != nil {
		return err
	}
	if len(text) > maxManifest {
		return snapshotapi.FailFinally(v1alpha1.ReasonStoreFailed, "the snapshot has more chunks than a manifest can hold: back up fewer items")
	}
	return store.Failure(writeObject(ctx, bucket, path.Join(task.Path, ManifestName), text), "writing the snapshot's manifest")
}

// summary tells of what is not in a snapshot.
func (m *Manifest) summary() string {
	var gone, stale, unnamed int64
	for _, shard := range m.Shards {
		gone, stale, unnamed = gone+shard.Gone, stale+shard.Stale, unnamed+shard.Unnamed
	}
	items, _, _ := m.totals()
	text := fmt.Sprintf("%d items of %d shards", items, len(m.Shards))
	for _, part := range []struct {
		n    int64
		what string
	}{
		{gone, "went before they were read"},
		{stale, "are marked as stale and left out"},
		{unnamed, "have keys that no text request can name"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf("; %d %s", part.n, part.what)
		}
	}
	return text
}

// shardSaver saves one shard.
type shardSaver struct {
	ctx    context.Context
	env    Env
	link   link
	limit  limit
	spool  *spool
	writer *chunkWriter
	known  sample
	free   chan *batch
	now    int64 // the Unix time of the batch whose answers are read
	won    [][]byte
	bytes  int64 // of the batch whose answers are read
	hits   int
	// unnamed is counted where requests are made, all else where answers are read.
	unnamed atomic.Int64
}

// sampleEvery is how many hits there are to one key of the sample.
const sampleEvery = 16

// saveShard writes the chunks of one shard and returns what there is.
func saveShard(ctx context.Context, bucket *blob.Bucket, task snapshotapi.Task, env Env, folder string, ordinal int) (shard Shard, err error) {
	spool, err := newSpool(env.Spool)
	if err != nil {
		return Shard{}, err
	}
	defer func() {
		if removed := spool.remove(); err == nil && removed != nil {
			err = spoolFailure(removed)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	writer, err := newChunkWriter(ctx, bucket, task.Path, folder, ordinal)
	if err != nil {
		cancel()
		return Shard{}, err
	}
	defer writer.close()
	defer cancel()

	s := &shardSaver{
		ctx: ctx, env: env, limit: newLimit(task), spool: spool, writer: writer,
		free: make(chan *batch, inFlight+2),
	}
	s.link = link{
		ordinal: ordinal, address: task.Servers[ordinal], patience: env.Patience, log: env.Log, window: inFlight, buffer: readBuffer,
		next: s.next, answer: s.answer, answered: s.answered, returned: s.known.keptBy,
	}
	if err := s.list(ctx); err != nil {
		return Shard{}, s.failure(err)
	}
	if err := s.link.run(ctx); err != nil {
		return Shard{}, s.failure(err)
	}
	writer.shard.Unnamed = s.unnamed.Load()
	return writer.finish()
}

// failure tells of lost items: the next try would make a snapshot of what little is
// there now, and have it be the newest.
func (s *shardSaver) failure(err error) error {
	if errors.Is(err, errLost) {
		return snapshotapi.FailFinally(v1alpha1.ReasonShardLostItems, "shard %d lost its items while they were saved: %w; no snapshot was made of the rest", s.link.ordinal, err)
	}
	return err
}

// list spools all keys of the shard.
func (s *shardSaver) list(ctx context.Context) error {
	began := time.Now()
	busy := false
	for fruitless := 0; ; {
		conn, r, err := s.link.connect(ctx)
		if err != nil {
			return err
		}
		err = s.dump(ctx, conn, r)
		_ = conn.Close()
		switch {
		case err == nil:
			s.env.Meter.expect(s.spool.keys)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, memcache.ErrDumpForbidden):
			return snapshotapi.FailFinally(v1alpha1.ReasonDumpForbidden, "shard %d at %s: %w; take -X or no_lru_crawler from the Memcached's arguments", s.link.ordinal, s.link.address, err)
		case ends(err):
			return err
		}
		if errors.Is(err, memcache.ErrBusy) {
			if time.Since(began) > busyPatience {
				return snapshotapi.Fail(v1alpha1.ReasonShardUnreachable, "shard %d at %s was busy with other dumps for %s", s.link.ordinal, s.link.address, busyPatience)
			}
			if !busy {
				s.env.Log.Info("The shard is busy with another dump, which is waited for.", "shard", s.link.ordinal)
			}
			busy = true
		} else {
			s.env.Log.Info("The dump of keys broke off and is begun anew.", "shard", s.link.ordinal, "error", err)
			if fruitless++; fruitless > maxFruitless {
				return snapshotapi.Fail(v1alpha1.ReasonShardUnreachable, "shard %d at %s: %d dumps of its keys broke off, the last one so: %w", s.link.ordinal, s.link.address, fruitless, err)
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

// dump reads one dump into the spool. It does nothing else meanwhile: a dump that is
// read slowly harms older versions.
func (s *shardSaver) dump(ctx context.Context, conn net.Conn, r *bufio.Reader) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := conn.Write([]byte(memcache.DumpRequest)); err != nil {
		return err
	}
	now := s.env.Now().Unix()
	dump := memcache.NewDumpReader(r)
	for n := 0; ; n++ {
		if n%4096 == 0 {
			if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
				return err
			}
		}
		listed, err := dump.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if listed.Expires == 0 || listed.Expires > now+longLived {
			s.known.anyOf(listed.Key)
		}
		if err := s.spool.add(listed.Key, listed.Size, listed.Expires, ageOf(now-listed.Accessed)); err != nil {
			return err
		}
	}
}

// expiryTolerance in seconds is how far what memcached says is left to live may be from
// the truth: it counts whole seconds, by a clock that is late when it is busy.
const expiryTolerance = 3

// getFlags ask for the value, the client's flags and what is left to live, and that
// the item's place in the LRU stays as it is.
const getFlags = " v f t u"

// next returns a batch of requests, once the limit allows.
func (s *shardSaver) next(ctx context.Context) (*batch, error) {
	var b *batch
	select {
	case b = <-s.free:
		b.reset()
	default:
		b = &batch{}
	}
	for b.count() < s.limit.batchItems && b.size < s.limit.batchBytes {
		key, size, expires, err := s.spool.next()
		if errors.Is(err, io.EOF) {
			if b.count() == 0 {
				return nil, errNoMore
			}
			break
		}
		if err != nil {
			return nil, err
		}
		text, ok := memcache.AppendMetaGet(b.text, key, getFlags)
		if !ok {
			s.unnamed.Add(1)
			s.env.Meter.add(1, 0)
			continue
		}
		b.text = text
		b.ends = append(b.ends, len(text))
		b.keys.add(key)
		b.expires = append(b.expires, expires)
		b.size += size
	}
	err := s.limit.wait(ctx, b.count(), b.size)
	b.asked = s.env.Now().Unix()
	return b, err
}

// answer takes the answer to one request.
func (s *shardSaver) answer(b *batch, conn net.Conn, r *bufio.Reader) error {
	if b.done == 0 {
		s.now = s.env.Now().Unix()
	}
	head, err := memcache.ReadHead(r)
	var refused *memcache.ServerError
	if errors.As(err, &refused) {
		// Of one item, such as no memory for its answer.
		s.writer.shard.Gone++
		return nil
	}
	if err != nil {
		return err
	}
	if head.Code == memcache.MetaMiss {
		s.writer.shard.Gone++
		return nil
	}
	if head.Code != memcache.MetaValue {
		return fmt.Errorf("%w: %s to a get", memcache.ErrMalformed, head.Code)
	}
	key := b.keys.at(b.done)
	if head.Stale {
		return s.stale(key, head, conn, r)
	}
	item := record{key: key, flags: head.Flags, size: head.Size}
	if head.TTL >= 0 {
		item.expires = s.now + head.TTL
		// The list told it exactly, unless a client has changed it since. What is left
		// was told at some time from the request until now, which is seconds where a
		// disk or a processor is busy.
		if listed := b.expires[b.done]; b.asked+head.TTL-expiryTolerance <= listed && listed <= item.expires+expiryTolerance {
			item.expires = listed
		}
	}
	if err := s.writer.item(item, conn, r); err != nil {
		return err
	}
	s.bytes += int64(len(key) + head.Size)
	if s.hits++; s.hits%sampleEvery == 0 && (head.TTL < 0 || head.TTL > longLived) {
		s.known.latest(key)
	}
	return nil
}

// answered tells what was done and frees the batch.
func (s *shardSaver) answered(b *batch) {
	s.env.Meter.add(int64(b.count()), s.bytes)
	s.bytes = 0
	s.giveBack()
	select {
	case s.free <- b:
	default:
	}
}

// stale leaves out an item that a client has marked as not to be used any more, but
// to be renewed.
func (s *shardSaver) stale(key []byte, head memcache.Head, conn net.Conn, r *bufio.Reader) error {
	for left := head.Size; left > 0; {
		n, err := r.Discard(min(left, MaxWhole))
		if err != nil {
			return err
		}
		left -= n
		if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
	}
	if err := memcache.EndValue(r); err != nil {
		return err
	}
	s.writer.shard.Stale++
	if head.Won {
		s.won = append(s.won, bytes.Clone(key))
	}
	return nil
}

// giveBack has the next client be told to renew what only this reader was told to:
// no other would until the item expires. The items are marked again, provided that
// they are as they were. What fails is left: it is a kindness.
func (s *shardSaver) giveBack() {
	if len(s.won) == 0 {
		return
	}
	won := s.won
	s.won = nil
	conn, r, err := s.link.dial(s.ctx)
	if err == nil {
		defer conn.Close()
		stop := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
		defer stop()
		err = invalidate(won, conn, r)
	}
	if err != nil {
		s.env.Log.Warn("Stale items were read whose clients may not be told to renew them.", "shard", s.link.ordinal, "items", len(won), "error", err)
	}
}

// invalidate marks items that are still stale as stale anew.
func invalidate(keys [][]byte, conn net.Conn, r *bufio.Reader) error {
	if err := conn.SetDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	var text []byte
	for _, key := range keys {
		text, _ = memcache.AppendMetaGet(text, key, " c u")
	}
	if _, err := conn.Write(text); err != nil {
		return err
	}
	text = text[:0]
	asked := 0
	for _, key := range keys {
		head, err := memcache.ReadHead(r)
		if err != nil {
			return err
		}
		// Without a CAS a newer value could be marked.
		if head.Code == memcache.MetaHit && head.Stale && head.CAS != 0 {
			text, _ = memcache.AppendInvalidate(text, key, head.CAS)
			asked++
		}
	}
	if _, err := conn.Write(text); err != nil {
		return err
	}
	for range asked {
		if _, err := memcache.ReadHead(r); err != nil {
			return err
		}
	}
	return nil
}

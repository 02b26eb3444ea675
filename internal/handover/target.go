package handover

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

const (
	// maxPasses is how many live passes there are at most.
	maxPasses = 3
	// followFor is how long both sides serve at least. A client's node learns later than the source's which pod the Service
	// leads to.
	followFor = 5 * time.Second
	// The pause between two passes in the meantime is pauseShare times as long as a pass: clients need the processor.
	pauseShare         = 4
	minPause, maxPause = 50 * time.Millisecond, 500 * time.Millisecond
	// fewChanges is the fraction of items that may differ when the end begins.
	fewChanges = 0.005
	// removedAtOnce is how many key hashes one scan searches for.
	removedAtOnce = 1 << 20
	// scanAttempts is how often the target scans its memory for a key that must be deleted.
	scanAttempts     = 3
	progressInterval = 250 * time.Millisecond
)

// Receive copies the items of a source into the target's own memcached. It returns nil once
// the source has confirmed that it no longer serves. After an error other than
// ErrNotStarted and ErrBusy, the target's memcached has some of the items, and must be restarted
// without them. After ErrImpossible and ErrDiverged another attempt would fail too.
func Receive(ctx context.Context, target Target) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &receiver{Target: target, began: time.Now()}
	err := r.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && r.following {
		err = fmt.Errorf("%w: %w", ErrDiverged, err)
	}
	return r.result, err
}

type receiver struct {
	Target
	began  time.Time
	link   *link
	cache  *cache
	offer  offer
	result Result

	// ahead is by how many milliseconds the source's clock is ahead of the own one.
	ahead int64
	// following is whether both sides serve.
	following bool
	key       [protocol.MaxKey]byte
	removed   []uint64 // sorted while a scan runs
	// kept are those of removed for which a scan has searched while clients change the memory: it can miss what it can't read. askAll is
	// set if they were too many.
	kept     []uint64
	askAll   bool
	progress Progress
	reported time.Time
}

func (r *receiver) run(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return fmt.Errorf("connecting to the source: %w", err)
	}
	defer r.link.Close()
	defer context.AfterFunc(ctx, r.link.Abort)()
	var err error
	asked := time.Now()
	requested, grace := r.announced()
	if err := r.link.Send(kindHello, hello{Versions: []int{protocolVersion}, Pod: r.Pod, Shard: r.Shard, Owner: r.Owner,
		Follow: r.Ready != nil, Requested: requested, GraceSeconds: int64(grace / time.Second), State: true}); err != nil {
		return fmt.Errorf("sending to the source: %w", err)
	}
	go r.link.Beat(ctx)
	if r.offer, err = expect[offer](r.link, kindOffer); err != nil {
		return fmt.Errorf("reading the source's offer: %w", err)
	}
	r.ahead = ahead(r.offer.Now, asked, time.Now())
	if r.offer.Version != protocolVersion {
		return fmt.Errorf("%w: the source uses version %d of the handover", ErrImpossible, r.offer.Version)
	}
	r.Log.Info("The handover started", "source", r.offer.Pod, "items", r.offer.Items, "live", r.offer.Live,
		"sourceVersion", r.offer.Memcached, "seconds", float64(r.offer.Milliseconds)/1000)
	if r.cache, err = openCache(ctx, r.Memcached); err != nil {
		return fmt.Errorf("preparing the own memcached: %w", err)
	}
	defer func() { _ = r.cache.close() }()
	if r.offer.Grace {
		go r.announce(ctx, grace)
	}
	return r.copy(ctx)
}

func (r *receiver) announced() (requested bool, grace time.Duration) {
	if r.Announced == nil {
		return false, 0
	}
	return r.Announced()
}

// announce lets the source know another grace period than the one that it knows.
func (r *receiver) announce(ctx context.Context, known time.Duration) {
	for peerlink.Sleep(ctx, peerlink.BeatInterval) == nil {
		_, grace := r.announced()
		if grace == 0 || grace == known {
			continue
		}
		if r.link.Send(kindHello, hello{GraceSeconds: int64(grace / time.Second)}) != nil {
			return
		}
		known = grace
	}
}

// ahead returns by how many milliseconds a clock that showed a Unix time at some time in between is at least ahead, or, negative, behind:
// an answer that took long is no sign that clocks differ.
func ahead(shown int64, from, to time.Time) int64 {
	return shown - min(max(shown, from.UnixMilli()), to.UnixMilli())
}

func (r *receiver) connect(ctx context.Context) error {
	config, err := identity(r.Key)
	if err != nil {
		return err
	}
	opened, err := peerlink.Dial(ctx, func(ctx context.Context) (net.Conn, error) { return r.DialContext.OrTCP()(ctx, "tcp", r.Source) }, config, frames)
	if errors.Is(err, peerlink.ErrOtherKey) {
		err = fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	r.link = &link{opened}
	return err
}

// copy requests live passes, and then the end.
func (r *receiver) copy(ctx context.Context) error {
	r.progress.Total = r.offer.Items
	inTime := true
	for live := r.offer.Live; live; {
		r.result.Passes++
		r.progress.Pass = r.result.Passes
		d, err := r.pass(ctx, kindPass)
		if err != nil {
			return err
		}
		if d.Complete {
			r.progress.Total = d.Items
		}
		inTime = d.Complete
		live = d.Complete && r.result.Passes < maxPasses && float64(d.Sent+d.Removed) > fewChanges*float64(d.Items)
	}
	if r.Ready == nil {
		return r.finish(ctx)
	}
	if r.result.Strict = r.strict(inTime); r.result.Strict != "" {
		r.Log.Info("The source stops before this pod serves", "reason", r.result.Strict)
		return r.finish(ctx)
	}
	return r.follow(ctx)
}

// strict returns why the target can't serve before the end; empty if it can.
func (r *receiver) strict(inTime bool) string {
	switch {
	case !r.offer.Follow:
		return "the other pod's agent or its memcached (-C) can't hand over in this mode, or it lacks memory"
	case !r.cache.cas:
		return "memcached has no CAS (-C)"
	case !r.cache.listsKeys:
		return "memcached doesn't list its keys (-X or no_lru_crawler)"
	case !inTime, time.Until(r.end()) < followFor:
		return "there was no time for it"
	}
	return ""
}

// end returns when the source has to stop.
func (r *receiver) end() time.Time {
	return r.began.Add(time.Duration(r.offer.Milliseconds) * time.Millisecond)
}

// follow serves together with the source until new connections reach this side. Those that the source got
// later would be reset at its end.
func (r *receiver) follow(ctx context.Context) error {
	received, err := r.cache.lastCAS()
	if err != nil {
		return fmt.Errorf("reading from the own memcached: %w", err)
	}
	r.following = true
	// It also deletes what the last pass read while memcached changed it.
	d, err := r.pass(ctx, kindFollow)
	if err != nil {
		return err
	}
	if d.FlushesAt != 0 && !d.Flushed { // later, it would undo what a client of the target flushes
		if err := r.flush(d); err != nil {
			return err
		}
	}
	served := time.Now()
	began := served
	r.Ready()
	for d.Complete && (time.Since(served) < followFor || !d.Routed && time.Now().Before(r.end())) {
		r.progress.Pass++
		if err := peerlink.Sleep(ctx, min(max(minPause, pauseShare*time.Since(began)), maxPause)); err != nil {
			return err
		}
		began = time.Now()
		if d, err = r.pass(ctx, kindFollow); err != nil {
			return err
		}
	}
	r.progress.Pass = 0
	if d, err = r.pass(ctx, kindFinish); err != nil {
		return err
	}
	if err := r.deleteOwn(ctx, received); err != nil {
		return fmt.Errorf("deleting items that the source does not have: %w", err)
	}
	r.result.Both = time.Since(served)
	return r.acknowledge(ctx, d)
}

// deleteOwn deletes what the source does not have: of what clients have stored since a CAS, and of the keys that it has removed since.
// That includes what they have stored since the source stopped: a CAS does not distinguish it from an older value that
// "md I" or "incr" has changed since. Names are from a dump, as a scan misses what a client stores at the same time.
func (r *receiver) deleteOwn(ctx context.Context, after uint64) error {
	r.keep()
	slices.Sort(r.kept)
	r.cache.deleting = true
	hash := func(key []byte) uint64 { return peerlink.KeyHash(r.offer.Seed, key) }
	inexpressible := false
	err := protocol.EachName(func(visit func(protocol.Listed) error) error { return r.cache.conn.Dump(ctx, visit) }, hash,
		func(item protocol.Listed) bool {
			first := r.cache.firstCAS // a client can choose a lower one than all of the copy (flag E)
			if _, found := slices.BinarySearch(r.kept, hash(item.Key)); !found && first <= item.CAS && item.CAS <= after && !r.askAll {
				return false
			}
			if _, ok := protocol.AppendDelete(nil, item.Key); !ok {
				inexpressible = true
			}
			return true
		},
		func(names protocol.Names) error {
			var hashes []byte
			for len(names) > 0 {
				asked := names
				for hashes = hashes[:0]; len(names) > 0 && len(hashes) < maxRemoved; {
					hashes = binary.BigEndian.AppendUint64(hashes, hash(names.Next()))
				}
				unknown, err := r.ask(hashes)
				if err != nil {
					return err
				}
				for len(asked) > len(names) {
					key := asked.Next()
					if len(unknown) == 0 || unknown[0] != hash(key) { // in the order of the question
						continue
					}
					unknown = unknown[1:]
					if err := r.cache.delete(key); err != nil {
						return err
					}
				}
			}
			return r.cache.barrier()
		})
	if err == nil && inexpressible && r.cache.omitted { // a client has stored it, and only this deletes it
		err = r.cache.flushAll(time.Time{})
	}
	return err
}

// ask returns those of the key hashes that the source doesn't have.
func (r *receiver) ask(hashes []byte) ([]uint64, error) {
	if err := r.link.SendContent(kindAsk, hashes); err != nil {
		return nil, err
	}
	k, size, err := r.link.Next()
	if err != nil {
		return nil, err
	}
	if k != kindRemoved {
		return nil, r.link.Unexpected(k, size)
	}
	return readRemoved(r.link.R, size, nil)
}

// finish stops the source, and makes the target equal to it.
func (r *receiver) finish(ctx context.Context) error {
	r.progress.Pass = 0
	d, err := r.pass(ctx, kindFinish)
	if err == nil && d.FlushesAt != 0 {
		err = r.flush(d)
	}
	if err != nil {
		return err
	}
	return r.acknowledge(ctx, d)
}

// acknowledge waits for the confirmation after the last pass.
func (r *receiver) acknowledge(ctx context.Context, d done) error {
	if err := r.cache.restore(); err != nil {
		return fmt.Errorf("writing to the own memcached: %w", err)
	}
	n, err := r.cache.items(ctx)
	if protocol.IsFull(err) { // clients use all connections
		n, err = d.Items, nil
	}
	if err != nil {
		return fmt.Errorf("reading from the own memcached: %w", err)
	}
	r.result.ItemsBefore, r.result.Items, r.result.Rejected = d.Items, min(n, d.Items), r.cache.rejected
	r.result.Bytes = r.progress.Bytes
	if sent, ok := r.result.State[UsesName]; ok {
		r.result.State[UsesName] = ParseUses(sent).arrived(r.cache.firstCAS, r.ahead, r.cache.rejected).Content()
	}
	if err := r.link.Send(kindAcknowledge, acknowledgement{Items: r.result.Items, Rejected: r.result.Rejected}); err != nil {
		return fmt.Errorf("sending to the source: %w", err)
	}
	c, err := expect[confirmation](r.link, kindConfirm)
	if err != nil {
		return fmt.Errorf("waiting for the source's confirmation: %w", err)
	}
	r.result.Took = time.Since(r.began)
	if !r.following {
		r.result.Gap = time.Duration(c.Milliseconds) * time.Millisecond
	}
	r.Log.Info("The handover completed", "items", r.result.Items, "itemsBefore", r.result.ItemsBefore, "rejected", r.result.Rejected,
		"bytes", r.result.Bytes, "passes", r.result.Passes, "took", r.result.Took, "gap", r.result.Gap, "both", r.result.Both)
	return nil
}

// pass sends a command, and applies what the source answers.
func (r *receiver) pass(ctx context.Context, command kind) (d done, err error) {
	if err := r.link.Send(command, nil); err != nil {
		return d, r.sourceError(err)
	}
	for {
		k, size, err := r.link.Next()
		if err != nil {
			return d, fmt.Errorf("reading from the source: %w", err)
		}
		switch k {
		case kindItem:
			err = r.item(size)
		case kindName:
			err = r.name(size)
		case kindRemoved:
			if r.removed, err = readRemoved(r.link.R, size, r.removed); err == nil && len(r.removed) >= removedAtOnce {
				err = r.deleteRemoved(ctx)
			}
		case kindState:
			err = r.state(size)
		case kindDone:
			if d, err = peerlink.ReadMessage[done](r.link.R, size); err == nil {
				err = r.endPass(ctx, command, d)
			}
			r.report(true)
			return d, err
		default:
			err = r.link.Unexpected(k, size)
		}
		if err != nil {
			return d, err
		}
	}
}

func (r *receiver) state(size int) error {
	s, err := peerlink.ReadMessage[state](r.link.R, size)
	if err != nil {
		return fmt.Errorf("reading from the source: %w", err)
	}
	if r.result.State == nil {
		r.result.State = map[string][]byte{}
	}
	if r.result.State[s.Name] = s.Content; len(r.result.State) > maxStates || len(s.Content) > MaxState {
		return fmt.Errorf("%w: too much state", peerlink.ErrFrame)
	}
	return nil
}

// endPass applies what is outstanding at the end of a pass.
func (r *receiver) endPass(ctx context.Context, command kind, d done) error {
	if r.following && d.Flushed {
		if err := r.flush(d); err != nil {
			return err
		}
	}
	if r.following && command == kindFinish {
		return r.cache.barrier() // deleteOwn deletes the others
	}
	return r.deleteRemoved(ctx)
}

// flush repeats the source's last flush_all. With -F, what it has deleted is deleted by name, and one with a delay is not worth the items.
func (r *receiver) flush(d done) error {
	if !r.cache.flushes {
		r.Log.Warn("The other pod's flush_all is not repeated, as memcached has -F", "delayed", d.FlushesAt != 0)
		return nil
	}
	err := r.cache.barrier()
	if err == nil {
		err = r.cache.flushAll(r.at(d.FlushesAt))
	}
	if err != nil {
		return fmt.Errorf("deleting all items: %w", err)
	}
	return nil
}

// name deletes a key that clients of the source have changed.
func (r *receiver) name(size int) error {
	key, err := readName(r.link.R, size, &r.key)
	if err != nil {
		return fmt.Errorf("reading from the source: %w", err)
	}
	r.cache.deleting = true
	if err := r.cache.delete(key); err != nil {
		return fmt.Errorf("deleting an item: %w", err)
	}
	return nil
}

// sourceError returns the failure that the source has sent before it closed the connection, if any.
func (r *receiver) sourceError(err error) error {
	if k, size, readErr := r.link.Next(); readErr == nil && k == kindError {
		return r.link.Unexpected(k, size)
	}
	return fmt.Errorf("sending to the source: %w", err)
}

func (r *receiver) item(size int) error {
	item, err := readItem(r.link.R, size, &r.key)
	if err != nil {
		return fmt.Errorf("reading from the source: %w", err)
	}
	if err := r.cache.set(item, r.at(item.expires), r.link.R); err != nil {
		return fmt.Errorf("storing an item: %w", err)
	}
	r.progress.Items++
	r.progress.Bytes += int64(len(item.key) + item.size)
	if r.progress.Items%64 == 0 {
		r.report(false)
	}
	return nil
}

// at returns a time that the source has sent, the zero time for 0.
func (r *receiver) at(milliseconds int64) time.Time {
	if milliseconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds - r.ahead)
}

func (r *receiver) report(now bool) {
	if r.Progress == nil || !now && time.Since(r.reported) < progressInterval {
		return
	}
	r.reported = time.Now()
	r.Progress(r.progress)
}

// deleteRemoved returns once memcached has everything that was received, and none of the keys in
// r.removed. Their names are in its own memory file.
func (r *receiver) deleteRemoved(ctx context.Context) error {
	if err := r.cache.barrier(); err != nil {
		return fmt.Errorf("storing items: %w", err)
	}
	if len(r.removed) == 0 {
		return nil
	}
	slices.Sort(r.removed)
	r.cache.deleting = true
	for attempt := 1; ; attempt++ {
		report, err := r.Scan(ctx, func(item *memfile.Item) error {
			if _, found := slices.BinarySearch(r.removed, peerlink.KeyHash(r.offer.Seed, item.Key)); !found {
				return nil
			}
			return r.cache.delete(item.Key)
		})
		if err == nil {
			err = r.cache.barrier()
		}
		if err != nil {
			return fmt.Errorf("deleting items: %w", err)
		}
		if report.Unreadable == 0 || r.following {
			break
		}
		if attempt == scanAttempts {
			return fmt.Errorf("deleting items: %d items of the own memory can't be read", report.Unreadable)
		}
	}
	r.cache.deleting = false
	if r.following {
		r.keep()
	}
	r.removed = r.removed[:0]
	return nil
}

// keep lets the dump at the end search for what was removed.
func (r *receiver) keep() {
	if r.kept = append(r.kept, r.removed...); len(r.kept) > removedAtOnce {
		r.kept, r.askAll = nil, true
	}
}

package handover

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// maxPasses is how many live passes there are at most.
	maxPasses = 3
	// fewChanges is the fraction of items that may differ when the end begins.
	fewChanges = 0.005
	// goneAtOnce is how many key hashes one scan searches for.
	goneAtOnce = 1 << 20
	// scanAttempts is how often the target scans its memory for a key that must be deleted.
	scanAttempts     = 3
	progressInterval = 250 * time.Millisecond
)

// Receive copies the items of a source into the target's own memcached. It returns nil once
// the source has confirmed that it no longer serves. After an error other than
// ErrNotTerminating and ErrBusy, the target's memcached has some of the items, and must be restarted
// without them. After ErrImpossible another attempt would fail too.
func Receive(ctx context.Context, target Target) (Result, error) {
	return receive(ctx, target, defaultTiming)
}

func receive(ctx context.Context, target Target, t timing) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &receiver{Target: target, timing: t, began: time.Now()}
	err := r.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r.result, err
}

type receiver struct {
	Target
	timing timing
	began  time.Time
	link   *link
	cache  *cache
	offer  offer
	result Result

	key      [protocol.MaxKey]byte
	gone     []uint64 // sorted while a scan runs
	progress Progress
	reported time.Time
}

func (r *receiver) run(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return fmt.Errorf("connecting to the source: %w", err)
	}
	defer r.link.close()
	defer context.AfterFunc(ctx, r.link.abort)()
	var err error
	if err := r.link.send(kindHello, hello{Versions: []int{protocolVersion}, Pod: r.Pod, Shard: r.Shard, Memcached: r.Version}); err != nil {
		return fmt.Errorf("sending to the source: %w", err)
	}
	go r.link.beat(ctx, r.timing.beat)
	if r.offer, err = expect[offer](r.link, kindOffer); err != nil {
		return fmt.Errorf("reading the source's offer: %w", err)
	}
	if r.offer.Version != protocolVersion {
		return fmt.Errorf("%w: the source uses version %d of the handover", ErrImpossible, r.offer.Version)
	}
	r.result.Source, r.result.Target = r.offer.Pod, r.Pod
	r.Log.Info("The handover started", "source", r.offer.Pod, "items", r.offer.Items, "live", r.offer.Live,
		"sourceVersion", r.offer.Memcached, "seconds", float64(r.offer.Milliseconds)/1000)
	if r.cache, err = openCache(ctx, r.Memcached, r.timing.silence); err != nil {
		return fmt.Errorf("connecting to the own memcached: %w", err)
	}
	defer func() { _ = r.cache.close() }()
	defer context.AfterFunc(ctx, func() { _ = r.cache.close() })()
	return r.copy(ctx)
}

func (r *receiver) connect(ctx context.Context) error {
	config, err := identity(r.Key)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, r.timing.open)
	defer stop()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.Source)
	if err != nil {
		return err
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return err
	}
	r.link = newLink(secured, r.timing)
	return nil
}

// copy requests live passes, and then the end.
func (r *receiver) copy(ctx context.Context) error {
	r.progress.Total = r.offer.Items
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
		live = d.Complete && r.result.Passes < maxPasses && float64(d.Sent+d.Gone) > fewChanges*float64(d.Items)
	}
	r.progress.Pass = 0
	d, err := r.pass(ctx, kindFinish)
	if err != nil {
		return err
	}
	if err := r.cache.restore(); err != nil {
		return fmt.Errorf("writing to the own memcached: %w", err)
	}
	n, err := r.cache.items(ctx)
	if err != nil {
		return fmt.Errorf("reading from the own memcached: %w", err)
	}
	r.result.ItemsBefore, r.result.Items, r.result.Refused = d.Items, min(n, d.Items), r.cache.refused
	r.result.Bytes = r.progress.Bytes
	if err := r.link.send(kindAcknowledge, acknowledgement{Items: r.result.Items, Refused: r.result.Refused}); err != nil {
		return fmt.Errorf("sending to the source: %w", err)
	}
	c, err := expect[confirmation](r.link, kindConfirm)
	if err != nil {
		return fmt.Errorf("waiting for the source's confirmation: %w", err)
	}
	r.result.Gap, r.result.Took = time.Duration(c.Milliseconds)*time.Millisecond, time.Since(r.began)
	return nil
}

// pass sends a command, and applies what the source answers.
func (r *receiver) pass(ctx context.Context, command kind) (d done, err error) {
	if err := r.link.send(command, nil); err != nil {
		return d, r.sourceError(err)
	}
	for {
		k, size, err := r.link.next()
		if err != nil {
			return d, fmt.Errorf("reading from the source: %w", err)
		}
		switch k {
		case kindItem:
			err = r.item(size)
		case kindGone:
			if r.gone, err = readGone(r.link.r, size, r.gone); err == nil && len(r.gone) >= goneAtOnce {
				err = r.deleteGone(ctx)
			}
		case kindDone:
			if d, err = readMessage[done](r.link.r, size); err == nil {
				err = r.deleteGone(ctx)
			}
			r.report(true)
			return d, err
		default:
			err = r.link.unexpected(k, size)
		}
		if err != nil {
			return d, err
		}
	}
}

// sourceError returns the failure that the source has sent before it closed the connection, if any.
func (r *receiver) sourceError(err error) error {
	if k, size, readErr := r.link.next(); readErr == nil && k == kindError {
		return r.link.unexpected(k, size)
	}
	return fmt.Errorf("sending to the source: %w", err)
}

func (r *receiver) item(size int) error {
	item, err := readItem(r.link.r, size, &r.key)
	if err != nil {
		return fmt.Errorf("reading from the source: %w", err)
	}
	if err := r.cache.set(item, r.link.r); err != nil {
		return fmt.Errorf("storing an item: %w", err)
	}
	r.progress.Items++
	r.progress.Bytes += int64(len(item.key) + item.size)
	if r.progress.Items%64 == 0 {
		r.report(false)
	}
	return nil
}

func (r *receiver) report(now bool) {
	if r.Progress == nil || !now && time.Since(r.reported) < progressInterval {
		return
	}
	r.reported = time.Now()
	r.Progress(r.progress)
}

// deleteGone returns once memcached has everything that was received, and none of the keys in
// r.gone. Their names are in its own memory file.
func (r *receiver) deleteGone(ctx context.Context) error {
	if err := r.cache.barrier(); err != nil {
		return fmt.Errorf("storing items: %w", err)
	}
	if len(r.gone) == 0 {
		return nil
	}
	slices.Sort(r.gone)
	r.cache.deleting = true
	for attempt := 1; ; attempt++ {
		report, err := r.Scan(ctx, func(item *memfile.Item) error {
			if _, found := slices.BinarySearch(r.gone, keyHash(r.offer.Seed, item.Key)); !found {
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
		if report.Unreadable == 0 {
			break
		}
		if attempt == scanAttempts {
			return fmt.Errorf("deleting items: %d items of the own memory can't be read", report.Unreadable)
		}
	}
	r.cache.deleting = false
	r.gone = r.gone[:0]
	return nil
}

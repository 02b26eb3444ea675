package scaling

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// purpose contains the version of the frames: agents with another one have another identity.
const purpose = "memcached-operator scaling 1 ed25519"

const (
	kindHello  peerlink.Kind = 'h' // target: hello
	kindOffer  peerlink.Kind = 'o' // source: offer
	kindList   peerlink.Kind = 'k' // source: entries; none at the end
	kindFailed peerlink.Kind = 'e' // source: failure
)

const (
	// maxHello has the names of all servers, maxMessage is the largest other message in JSON, maxList the largest list, in bytes.
	maxHello, maxMessage, maxList = 256 << 10, 4 << 10, 64 << 10
	// entryHead: one byte of the key's length, one that is 1 for a key in base64, four of the expiry, eight of the CAS.
	entryHead = 1 + 1 + 4 + 8
)

// A source that sends beats scans: for as long as its share of the processor requires.
var frames = peerlink.Protocol{
	Limits: map[peerlink.Kind]uint32{kindHello: maxHello, kindOffer: maxMessage, kindList: maxList, kindFailed: maxMessage},
	Failed: kindFailed, Errors: map[string]error{"Unproven": ErrUnproven, "Impossible": ErrImpossible},
}

// A source that only counts the items that move sends no list of them. Before one that is verified, it verifies the ring.
const counted, verified handover.Order = "counted", "verified"

type hello struct {
	Owner string
	// Source and Target are ordinals.
	Source, Target int
	Change         Change
	// Order is that of the list of the items that move. Without one, the connection is one to memcached after the offer. Items is how
	// many move, as counted before.
	Order handover.Order
	Items int64
}

type offer struct {
	// Run identifies the process of the source's memcached.
	Run string
	// Items is the number of those that move, if they are counted.
	Items int64
}

func appendEntry(dst []byte, found *memfile.Item) []byte {
	var encoded byte
	if found.Binary {
		encoded = 1
	}
	dst = binary.BigEndian.AppendUint32(append(dst, byte(len(found.Key)), encoded), found.Expires)
	return append(binary.BigEndian.AppendUint64(dst, found.CAS), found.Key...)
}

// eachEntry visits the entries of a list.
func eachEntry(list []byte, visit func(*memfile.Item) error) error {
	var found memfile.Item
	for len(list) > 0 {
		size := entryHead + int(list[0])
		if size == entryHead || size > min(len(list), entryHead+protocol.MaxKey) {
			return fmt.Errorf("%w: a list with a key of %d bytes", peerlink.ErrFrame, list[0])
		}
		found = memfile.Item{Key: list[entryHead:size:size], Binary: list[1] != 0,
			Expires: binary.BigEndian.Uint32(list[2:]), CAS: binary.BigEndian.Uint64(list[6:])}
		if err := visit(&found); err != nil {
			return err
		}
		list = list[size:]
	}
	return nil
}

// maxScans bounds the scans for targets at a time: each takes more than a page of the memory file, and the items of a shard that leaves
// move to all others. Together, they are no faster.
const maxScans = 4

// Service returns what a handover port has to serve, beside handovers, for a shard from which keys move. memcached is
// called for each connection; after its error, the target tries again.
func Service(key []byte, memcached func() (Memcached, error)) (handover.Service, error) {
	identity, err := peerlink.Identity(key, purpose)
	if err != nil {
		return handover.Service{}, fmt.Errorf("using the key for scaling: %w", err)
	}
	scans := make(chan struct{}, maxScans)
	return handover.Service{Name: ServiceName, Identity: identity, Handle: func(ctx context.Context, conn net.Conn, log *slog.Logger) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		link := peerlink.New(conn, frames)
		defer context.AfterFunc(ctx, link.Abort)()
		if err := answer(ctx, link, memcached, scans, log); err != nil && ctx.Err() == nil {
			log.Info("A shard that gets keys of this one was not answered", "reason", err)
			_ = link.Fail(err)
		}
	}}, nil
}

// answer is the source's side of a connection.
func answer(ctx context.Context, link *peerlink.Link, memcached func() (Memcached, error), scans chan struct{}, log *slog.Logger) error {
	request, err := peerlink.Expect[hello](link, kindHello)
	if err != nil {
		return err
	}
	m, err := memcached()
	if err != nil {
		return err
	}
	switch {
	case request.Owner != m.Owner:
		return fmt.Errorf("%w: this pod is of another Memcached", ErrImpossible)
	case request.Source != m.Ordinal || request.Target == m.Ordinal:
		return fmt.Errorf("this pod is of shard %d, and not of %d", m.Ordinal, request.Source) // a Service that is late
	}
	moves, err := newMoves(request.Change, request.Source, request.Target)
	if err != nil {
		return err
	}
	o := offer{Run: m.Run()}
	if request.Order == "" {
		return passOn(ctx, link, m, o)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a scan for a target that has left would take the share of the next one
		link.Beat(ctx)
		cancel()
	}()
	select {
	case scans <- struct{}{}:
		defer func() { <-scans }()
	case <-ctx.Done():
		return ctx.Err()
	}
	switch request.Order {
	case verified:
		err = verify(ctx, m, request.Change, func(item *memfile.Item) {
			if moves.have(item.Key) {
				o.Items++
			}
		})
		log.Info("A shard requests keys", "ordinal", request.Target, "keys", o.Items, "error", err)
	case counted:
		var report memfile.Report
		report, err = m.Scan(ctx, handover.AnyOrder, moves.have, func(*memfile.Item) error { return ctx.Err() })
		o.Items = report.Items
	}
	if err == nil {
		err = link.Send(kindOffer, o)
	}
	if err != nil || request.Order == verified || request.Order == counted {
		return err
	}
	return list(ctx, link, m, moves, request, o)
}

// list sends an entry of each item that moves.
func list(ctx context.Context, link *peerlink.Link, m Memcached, moves moves, request hello, o offer) error {
	order := request.Order
	if order == handover.ColdFirst {
		release, ok := m.Reserve(max(request.Items, 0) * memfile.OrderBytes)
		defer release()
		if !ok {
			order = handover.AnyOrder
		}
	}
	var entries []byte
	_, err := m.Scan(ctx, order, moves.have, func(found *memfile.Item) error {
		if entries = appendEntry(entries, found); len(entries) < maxList-entryHead-protocol.MaxKey {
			return ctx.Err()
		}
		full := entries
		entries = entries[:0]
		return link.SendContent(kindList, full)
	})
	switch {
	case err != nil:
		return fmt.Errorf("scanning the items: %w", err)
	case m.Run() != o.Run:
		return errRestarted
	case len(entries) > 0:
		if err := link.SendContent(kindList, entries); err != nil {
			return err
		}
	}
	return link.SendContent(kindList, nil)
}

// passOn connects the target with memcached until one of them closes the connection, or memcached exits. If it has started again since
// the offer, the next list has another Run.
func passOn(ctx context.Context, link *peerlink.Link, m Memcached, o offer) error {
	opening, cancel := context.WithTimeout(ctx, peerlink.Silence)
	defer cancel()
	own, err := m.Server.Connect(opening)
	if err != nil {
		return fmt.Errorf("connecting to memcached: %w", err)
	}
	defer own.Close()
	defer context.AfterFunc(ctx, func() { _ = own.Close() })()
	if err := link.Send(kindOffer, o); err != nil {
		return err
	}
	target := link.Conn.Conn
	if err := target.SetDeadline(time.Time{}); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(target, own)
		link.Abort()
	}()
	_, _ = io.Copy(own, target)
	return nil
}

// remote returns the memcached of a source. It is that process which it is when it is used first.
func (r *receiver) remote(ordinal int) Memcached {
	var run string
	var items int64
	open := func(ctx context.Context, order handover.Order) (link *peerlink.Link, o offer, err error) {
		link, err = peerlink.Dial(ctx, func(ctx context.Context) (net.Conn, error) { return r.Dial(ctx, ordinal) }, r.identity, frames)
		if errors.Is(err, peerlink.ErrOtherKey) {
			err = fmt.Errorf("%w: %w", ErrImpossible, err)
		}
		if err != nil {
			return nil, o, err
		}
		defer context.AfterFunc(ctx, link.Abort)()
		err = link.Send(kindHello, hello{Order: order, Items: items, Owner: r.Owner, Source: ordinal, Target: r.Ordinal, Change: r.Change})
		if err == nil {
			o, err = peerlink.Expect[offer](link, kindOffer)
		}
		items, run = max(items, o.Items), cmp.Or(run, o.Run)
		if err == nil && o.Run != run {
			err = errRestarted
		}
		if err != nil {
			link.Abort()
		}
		return link, o, err
	}
	return Memcached{
		Run: func() string { return run },
		Server: protocol.Server{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			link, _, err := open(ctx, "")
			if err != nil {
				return nil, err
			}
			return link.Conn.Conn, link.Conn.SetDeadline(time.Time{})
		}},
		Scan: func(ctx context.Context, order handover.Order, _ func([]byte) bool, visit func(*memfile.Item) error) (report memfile.Report, err error) {
			link, o, err := open(ctx, order)
			if err != nil {
				return report, err
			}
			defer link.Abort()
			if report.Items = o.Items; order == counted || order == verified {
				return report, nil
			}
			defer context.AfterFunc(ctx, link.Abort)()
			var buffer []byte
			for {
				k, size, err := link.Next()
				if err == nil && k != kindList {
					err = link.Unexpected(k, size)
				}
				if err != nil || size == 0 {
					return report, err
				}
				if buffer, err = protocol.ReadPart(link.R, buffer[:0], size); err == nil {
					err = eachEntry(buffer, visit)
				}
				if err != nil {
					return report, protocol.Unexpected(err)
				}
			}
		},
	}
}

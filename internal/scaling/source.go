package scaling

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// Service returns what a handover port has to serve, beside handovers, for a shard from which keys move. memcached is
// called for each connection; after its error, the target tries again.
func Service(key []byte, memcached func() (Memcached, error)) (handover.Service, error) {
	identity, err := peerlink.Identity(key, purpose)
	if err != nil {
		return handover.Service{}, fmt.Errorf("using the key for scaling: %w", err)
	}
	return handover.Service{Name: ServiceName, Identity: identity, Handle: func(ctx context.Context, conn net.Conn, log *slog.Logger) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		s := &session{link: peerlink.New(conn, frames), lost: map[uint64]struct{}{}}
		defer context.AfterFunc(ctx, s.link.Abort)()
		err := s.open(ctx, memcached)
		if err == nil {
			log.Info("A shard began to get keys", "ordinal", s.moves.target, "items", s.offered.Moved)
			err = s.answer(ctx)
		}
		if s.own != nil {
			s.own.close()
		}
		if ctx.Err() == nil {
			log.Info("A connection of a shard that gets keys is over", "reason", err)
			_ = s.link.Send(kindFailed, failureOf(err))
		}
	}}, nil
}

// session is one connection of a target.
type session struct {
	link    *peerlink.Link
	own     *pipe
	moves   moves
	seed    uint64
	offered offer
	pace    peerlink.Pace
	// lost are the hashes whose names the next sweep shows.
	lost   map[uint64]struct{}
	stored []byte
	buffer []byte
}

// open answers the hello.
func (s *session) open(ctx context.Context, memcached func() (Memcached, error)) error {
	request, err := peerlink.Expect[hello](s.link, kindHello)
	if err != nil {
		return err
	}
	go s.link.Beat(ctx)
	m, err := memcached()
	if err != nil {
		return err
	}
	switch {
	case !slices.Contains(request.Versions, protocolVersion):
		return fmt.Errorf("%w: the target knows the versions %v, and the source %d", ErrImpossible, request.Versions, protocolVersion)
	case request.Owner != m.Owner:
		return fmt.Errorf("%w: this pod is of another Memcached", ErrImpossible)
	case request.Source != m.Ordinal || request.Target == m.Ordinal:
		return fmt.Errorf("this pod is of shard %d, and not of %d", m.Ordinal, request.Source) // a Service that is late
	}
	change := Change{Ring: request.Ring, From: request.From, To: request.To}
	if s.moves, err = newMoves(change, request.Source, request.Target); err != nil {
		return err
	}
	s.seed, s.pace.Deadline = request.Seed, time.Now().AddDate(1, 0, 0)
	if s.own, err = openPipe(ctx, m); err != nil {
		return err
	}
	s.offered = offer{Version: protocolVersion, Run: s.own.run}
	err = verify(ctx, m, change, func(item *memfile.Item) {
		s.offered.CAS = max(s.offered.CAS, item.CAS)
		if s.moves.have(item.Key) {
			s.offered.Moved++
		}
	})
	if err != nil && (request.Verify || !isUnproven(err)) {
		return err
	}
	if err := s.own.check(); err != nil {
		return err
	}
	s.offered.Now = s.own.now()
	return s.link.Send(kindOffer, s.offered)
}

// answer runs the commands of the target.
func (s *session) answer(ctx context.Context) error {
	for {
		k, size, err := s.link.Next()
		if err != nil {
			return err
		}
		switch k {
		case kindItem:
			err = s.store(size)
		case kindSweep:
			var m sweep
			if m, err = peerlink.ReadMessage[sweep](s.link.R, size); err == nil {
				err = s.sweep(ctx, m)
			}
		case kindLost, kindAsk, kindDrop, kindApply, kindPurge:
			var list []byte
			if list, err = readFrame(s.link.R, size, &s.buffer); err == nil {
				err = s.list(ctx, k, list)
			}
		default:
			err = s.link.Unexpected(k, size)
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) list(ctx context.Context, k peerlink.Kind, list []byte) (err error) {
	switch k {
	case kindLost:
		return eachHash(list, func(hash uint64) { s.lost[hash] = struct{}{} })
	case kindAsk:
		err = eachName(list, func(key []byte) error { return s.own.fetch(key, false, func(i *item) error { return s.send(ctx, i) }) })
	case kindDrop:
		err = eachName(list, s.own.delete)
	case kindPurge:
		return s.purge(ctx)
	}
	if err == nil {
		err = s.own.barrier()
	}
	if err != nil {
		return err
	}
	if k == kindApply {
		stored := s.stored
		s.stored = nil
		return s.link.SendContent(kindStored, stored)
	}
	return s.link.Flush()
}

// store replaces an item that hasn't changed.
func (s *session) store(size int) error {
	i, err := readItem(s.link.R, size, &s.buffer)
	if err == nil && (i.cas == 0 || len(s.stored) >= maxList) {
		err = fmt.Errorf("%w: an item to store without a CAS, or too many", peerlink.ErrFrame)
	}
	if err != nil {
		return err
	}
	var expires time.Time
	if i.expires != 0 {
		expires = s.own.clock.At(i.expires)
	}
	return s.own.set(i, expires, i.cas, func(head protocol.Head, _ []byte) error {
		if head.Code != protocol.MetaHit {
			head.CAS = 0
		}
		s.stored = binary.BigEndian.AppendUint64(s.stored, head.CAS)
		return nil
	})
}

// send sends an item at the limited rate, or that there is none.
func (s *session) send(ctx context.Context, i *item) error {
	if i == nil {
		return s.link.Write(func(dst []byte) []byte { return peerlink.AppendHead(dst, kindNone, 0) }, nil)
	}
	if err := s.link.Write(i.append, i.value); err != nil {
		return err
	}
	if wait := s.pace.Add(int64(len(i.key)+len(i.value)), time.Now()); wait > 0 {
		if err := s.link.Flush(); err != nil {
			return err
		}
		return peerlink.Sleep(ctx, wait)
	}
	return nil
}

// sweep shows all moved items.
func (s *session) sweep(ctx context.Context, m sweep) error {
	if err := s.own.refresh(ctx); err != nil {
		return err
	}
	order := handover.AnyOrder
	if m.Send && m.Since == 0 { // the target evicts the coldest ones
		if release, ok := s.own.Reserve(s.offered.Moved * memfile.OrderBytes); ok {
			defer release()
			order = handover.ColdFirst
		}
	}
	d := done{Flushes: s.own.flushes}
	var entries []byte
	_, err := s.own.Scan(ctx, order, func(found *memfile.Item) error {
		d.CAS = max(d.CAS, found.CAS)
		if !s.moves.have(found.Key) {
			return ctx.Err()
		}
		d.Items++
		hash := peerlink.KeyHash(s.seed, found.Key)
		if _, asked := s.lost[hash]; asked {
			if err := s.link.Write(func(dst []byte) []byte { return peerlink.AppendHead(dst, kindName, len(found.Key)) }, found.Key); err != nil {
				return err
			}
		}
		if m.Send && found.CAS > m.Since {
			return s.own.fetch(bytes.Clone(found.Key), found.Binary, func(i *item) error {
				if i == nil {
					return nil
				}
				return s.send(ctx, i)
			})
		}
		if entries = appendEntry(entries, hash, found); len(entries) < maxList-entrySize {
			return nil
		}
		shown := entries
		entries = entries[:0]
		return s.link.SendContent(kindShown, shown)
	})
	if err != nil {
		return fmt.Errorf("scanning the items: %w", err)
	}
	if err := s.own.check(); err != nil {
		return err
	}
	clear(s.lost)
	if err := s.link.SendContent(kindShown, entries); err != nil {
		return err
	}
	d.Now = s.own.now()
	return s.link.Send(kindDone, d)
}

// purge deletes the moved items.
func (s *session) purge(ctx context.Context) error {
	var d done
	_, err := s.own.Scan(ctx, handover.AnyOrder, func(found *memfile.Item) error {
		if !s.moves.have(found.Key) {
			return ctx.Err()
		}
		d.Items++
		if err := s.own.delete(found.Key); err != nil {
			return err
		}
		return peerlink.Sleep(ctx, s.pace.Add(0, time.Now()))
	})
	if err == nil {
		err = s.own.check()
	}
	if err != nil {
		return fmt.Errorf("deleting the moved items: %w", err)
	}
	return s.link.Send(kindDone, d)
}

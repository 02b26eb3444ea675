package handover

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/connlimit"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// maxConnections is how many connections are open at a time whose peer has not shown the key.
const maxConnections = 16

// OfferFunc returns what the source hands over in a session. requested is whether the target was requested to take over.
type OfferFunc func(ctx context.Context, requested bool) (Offer, error)

// Serve hands over the items of the pod to the first target that has the same key, until
// the context is done or Complete was called. It closes the listener. Offer is called once for each
// session; its error is sent to the target: ErrNotStarted, ErrImpossible, memfile.ErrLayout, or any
// other, after which the target may try again.
func Serve(ctx context.Context, listener net.Listener, key []byte, offer OfferFunc, log *slog.Logger, services ...Service) error {
	defer listener.Close()
	identity, err := identity(key)
	if err != nil {
		return err
	}
	identity.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if service := named(services, hello.ServerName); service != nil {
			return service.Identity, nil
		}
		return nil, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &source{offer: offer, log: log, completed: cancel, services: services}
	defer s.sessions.Wait()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	connlimit.Serve(&connlimit.Listener{Listener: listener, Limit: maxConnections}, log, func(conn net.Conn) {
		s.sessions.Go(func() { s.handle(ctx, conn, identity) })
	})
	if ctx.Err() == nil {
		return fmt.Errorf("accepting connections: %w", net.ErrClosed)
	}
	return nil
}

// Service is another use of the listener, for clients that connect with its name as their server name (SNI).
type Service struct {
	Name     string
	Identity *tls.Config
	// Handle uses a connection whose client has shown the identity, until it is over.
	Handle func(ctx context.Context, conn net.Conn, log *slog.Logger)
}

// named returns nil if there is no such service.
func named(services []Service, name string) *Service {
	for i := range services {
		if services[i].Name == name {
			return &services[i]
		}
	}
	return nil
}

// source is the state of all connections to a source.
type source struct {
	services  []Service
	offer     OfferFunc
	log       *slog.Logger
	completed func()
	sessions  sync.WaitGroup

	mu      sync.Mutex
	current *session
	heir    string // the pod to which the items belong; empty while they are the source's
}

// session is one connection of a target.
type session struct {
	source *source
	pod    string
	link   *link
	cancel context.CancelCauseFunc
	over   chan struct{}
	// commands are the frames of the target.
	commands chan command

	offer Offer
	// ends are those of the offer, or sooner.
	ends   atomic.Pointer[ends]
	table  *table // nil: no live passes
	hasher *hasher
	seed   uint64
	began  time.Time
	result Result
	// state is whether the target takes frames of that kind.
	state bool
	// received are the uses of the items that the source got in a handover itself, sent those of what the target got.
	received *Uses
	sent     usesSent
	// follow is whether the target may serve before the end, following whether it does.
	follow, following bool
	// routed is closed once new connections reach the target that follows.
	routed     chan struct{}
	oldestLive uint32 // of the pass before
	// covered is set once a live pass has visited all items, late once one had no time to.
	covered, late bool
	// coldest is when the coldest item was accessed that a late pass has visited, by memcached's clock, if the grace period is
	// shorter; 0 without one.
	coldest uint32
}

// ends are the Deadline and the Limit of an Offer, or sooner if the grace period is shorter.
type ends struct {
	deadline, limit time.Time
	shorter         bool
}

// within brings the ends forward to those of a grace period.
func (s *session) within(grace time.Duration, log *slog.Logger) {
	deadline, limit := s.offer.Origin.Within(grace)
	former := s.ends.Load()
	sooner := ends{earlier(former.deadline, deadline), limit, true}
	if !former.limit.IsZero() {
		sooner.limit = earlier(former.limit, limit)
	}
	s.ends.Store(&sooner)
	log.Info("The pod is deleted with a shorter grace period", "seconds", grace.Seconds(), "deadline", sooner.deadline, "limit", sooner.limit)
}

type command struct {
	kind           kind
	grace          time.Duration
	acknowledgment acknowledgement
	hashes         []uint64
}

var errReplaced = errors.New("the target has connected again")

// handle runs a connection until it is over.
func (s *source) handle(ctx context.Context, accepted net.Conn, identity *tls.Config) {
	conn := tls.Server(accepted, identity)
	log := s.log.With("peer", conn.RemoteAddr().String())
	defer conn.Close()
	l := newLink(conn)
	opening, stop := context.WithTimeout(ctx, peerlink.OpenTimeout)
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = accepted.Close() })()
	if err := conn.HandshakeContext(opening); err != nil {
		log.Info("Rejected a connection to the handover port", "reason", err)
		return
	}
	connlimit.Keep(accepted)
	if service := named(s.services, conn.ConnectionState().ServerName); service != nil {
		service.Handle(ctx, conn, log)
		return
	}
	request, err := expect[hello](l, kindHello)
	if err != nil {
		log.Info("Rejected a handover session", "reason", err)
		return
	}
	log = log.With("target", request.Pod)
	session := &session{source: s, pod: request.Pod, link: l, over: make(chan struct{}), commands: make(chan command, 4), began: time.Now()}
	run, cancel := context.WithCancelCause(ctx)
	session.cancel = cancel
	defer cancel(nil)
	err = s.claim(run, session)
	if err == nil {
		err = session.run(ctx, run, request, log)
		s.release(session)
	}
	if err == nil {
		return
	}
	if !IsNotReady(err) { // the target tries again twice a second
		log.Info("A handover session failed", "reason", err)
	}
	if errors.Is(err, memfile.ErrLayout) {
		err = fmt.Errorf("%w: %w", ErrImpossible, err)
	}
	_ = l.Fail(err)
}

// claim makes a session the only one. An earlier session of the same pod stops first.
func (s *source) claim(ctx context.Context, own *session) error {
	for {
		s.mu.Lock()
		current, heir := s.current, s.heir
		if current == nil && heir == "" {
			s.current = own
		}
		s.mu.Unlock()
		switch {
		case heir != "" && heir == own.pod:
			return fmt.Errorf("%w: the pod has got them before", ErrImpossible)
		case heir != "" || current != nil && current.pod != own.pod:
			return ErrBusy
		case current == nil:
			return nil
		}
		current.cancel(errReplaced)
		select {
		case <-current.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *source) release(own *session) {
	if own.offer.Origin != nil {
		own.offer.Origin.Release()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = nil
	close(own.over)
}

// run runs a session. The context stop, which is the server's, doesn't depend on the connection.
func (s *session) run(stop, ctx context.Context, request hello, log *slog.Logger) error {
	if !slices.Contains(request.Versions, protocolVersion) {
		return fmt.Errorf("%w: the target knows the versions %v of the handover, and the source %d", ErrImpossible, request.Versions, protocolVersion)
	}
	// A dead target must not block a write.
	defer context.AfterFunc(ctx, s.link.Abort)()
	go s.receive(log)
	go s.link.Beat(ctx)
	offered, err := s.source.offer(ctx, request.Requested)
	if err != nil {
		return err
	}
	s.offer = offered
	if request.Shard != offered.Shard {
		return fmt.Errorf("%w: this pod is of the shard %q, and the target of %q", ErrImpossible, offered.Shard, request.Shard)
	}
	if request.Owner != offered.Owner {
		return fmt.Errorf("%w: this pod is of another Memcached of that name", ErrImpossible)
	}
	if request.Pod == offered.Pod {
		return fmt.Errorf("%w: pod %s can't replace itself", ErrImpossible, offered.Pod)
	}
	s.ends.Store(&ends{deadline: offered.Deadline, limit: offered.Limit})
	if grace := request.grace(); grace > 0 {
		s.within(grace, log)
	}
	s.hasher, s.seed = newHasher(), rand.Uint64()
	defer s.reserve(log)()
	if s.state = request.State && offered.State != nil; s.state {
		s.received = ParseUses(offered.State()[UsesName])
	}
	s.follow = request.Follow && offered.CAS && s.table != nil
	s.hasher.cas = s.follow

	err = s.link.Send(kindOffer, offer{
		Version: protocolVersion, Pod: offered.Pod, Items: offered.Items, Memcached: offered.Version,
		Milliseconds: max(0, time.Until(s.ends.Load().deadline).Milliseconds()), Live: s.table != nil, Follow: s.follow, Grace: true, Seed: s.seed,
		Now: time.Now().UnixMilli(),
	})
	if err != nil {
		return s.cause(ctx, err)
	}
	log.Info("A handover session started", "items", offered.Items, "live", s.table != nil, "deadline", s.ends.Load().deadline)
	return s.answer(stop, ctx, log)
}

// answer runs the commands of the target.
func (s *session) answer(stop, ctx context.Context, log *slog.Logger) error {
	for {
		c, err := s.next(ctx)
		switch {
		case err != nil:
			return s.failed(err)
		case c.kind == kindPass && s.table != nil && !s.following:
			err = s.livePass(ctx, log)
		case c.kind == kindFollow && s.follow && s.result.Passes > 0:
			if err = s.commit(ctx); err == nil {
				err = s.followingPass(ctx)
			}
		case c.kind == kindFinish:
			return s.finish(stop, ctx, log)
		default:
			err = fmt.Errorf("%w: unexpected kind %q", peerlink.ErrFrame, c.kind)
		}
		if err != nil {
			return s.failed(s.cause(ctx, err))
		}
	}
}

// commit lets no other target have the items: this one is about to serve.
func (s *session) commit(ctx context.Context) error {
	if s.following {
		return nil
	}
	if err := s.offer.Origin.Commit(); err != nil {
		return err
	}
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	s.following, s.source.heir = true, s.pod
	s.routed = make(chan struct{})
	go func() {
		defer close(s.routed)
		s.offer.Origin.AwaitRouted(ctx)
	}()
	return nil
}

// failed abandons the items if the target may have served, and returns err.
func (s *session) failed(err error) error {
	if s.following {
		s.offer.Origin.Abandon()
		s.source.completed()
	}
	return err
}

// cause returns why the context is done, which is the reason of err, or else err.
func (s *session) cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// reserve allocates the table, if there is room.
func (s *session) reserve(log *slog.Logger) (release func()) {
	size := tableSize(s.offer.Items)
	freeRoom, ok := s.offer.Origin.Reserve(size + s.offer.Items*memfile.OrderBytes)
	if !ok {
		log.Info("There is no memory for live passes", "bytes", size)
		return freeRoom
	}
	table, err := newTable(size)
	if err != nil {
		log.Info("There is no memory for live passes", "reason", err)
		return freeRoom
	}
	s.table = table
	return func() {
		if err := table.Close(); err != nil {
			log.Error("Could not free the memory of live passes", "error", err)
		}
		freeRoom()
	}
}

// receive reads the frames of the target. The session is over if it sends no beats.
func (s *session) receive(log *slog.Logger) {
	for {
		c, err := s.link.readCommand()
		if err == nil && c.kind == kindHello && s.ends.Load() == nil {
			err = fmt.Errorf("%w: a second hello before the offer", peerlink.ErrFrame)
		}
		if err != nil {
			s.cancel(fmt.Errorf("reading from the target: %w", err))
			return
		}
		if c.kind == kindHello { // it may be in the middle of a pass
			if c.grace > 0 {
				s.within(c.grace, log)
			}
			continue
		}
		select {
		case s.commands <- c:
		default:
			s.cancel(fmt.Errorf("%w: too many commands", peerlink.ErrFrame))
			return
		}
	}
}

func (l *link) readCommand() (c command, err error) {
	for {
		k, size, err := frames.ReadHead(l.R)
		if err != nil {
			return c, err
		}
		c.kind = k
		switch k {
		case peerlink.KindBeat:
		case kindPass, kindFollow, kindFinish:
			return c, nil
		case kindHello:
			again, err := peerlink.ReadMessage[hello](l.R, size)
			c.grace = again.grace()
			return c, err
		case kindAsk:
			c.hashes, err = readRemoved(l.R, size, nil)
			return c, err
		case kindAcknowledge:
			c.acknowledgment, err = peerlink.ReadMessage[acknowledgement](l.R, size)
			return c, err
		default:
			return c, fmt.Errorf("%w: unexpected kind %q", peerlink.ErrFrame, k)
		}
	}
}

// next waits for the next command.
func (s *session) next(ctx context.Context) (command, error) {
	timer := time.NewTimer(peerlink.StepTimeout)
	defer timer.Stop()
	select {
	case c := <-s.commands:
		return c, nil
	case <-ctx.Done():
		return command{}, context.Cause(ctx)
	case <-timer.C:
		return command{}, fmt.Errorf("the target has not continued for %s", peerlink.StepTimeout)
	}
}

var (
	// errDeadline stops a live pass.
	errDeadline = errors.New("the end has to begin")
	// errShortened lets a live pass begin again with the hottest items.
	errShortened = errors.New("there is no longer time for all items")
)

func (s *session) livePass(ctx context.Context, log *slog.Logger) error {
	s.result.Passes++
	p := pass{session: s, ctx: ctx, live: true, ends: s.ends.Load(), pace: pace{total: s.offer.Items}}
	p.pace.deadline = p.ends.deadline
	d, err := p.run(s.order(p.ends.deadline))
	if errors.Is(err, errShortened) {
		p.pace.visited = 0
		d, err = p.run(HotFirst)
	}
	if err != nil {
		return err
	}
	s.covered, s.late = s.covered || d.Complete, !d.Complete
	if s.late && !s.covered && p.order == HotFirst && p.ends.shorter {
		s.coldest = p.accessed
	}
	log.Info("Sent what changed", "pass", s.result.Passes, "items", d.Items, "sent", d.Sent, "removed", d.Removed, "complete", d.Complete, "seconds", time.Since(p.began).Seconds())
	return s.link.Send(kindDone, d)
}

// followingPass sends the names of what changed.
func (s *session) followingPass(ctx context.Context) error {
	p := pass{session: s, ctx: ctx, names: true}
	d, err := p.run(AnyOrder)
	if err != nil {
		return err
	}
	d.Complete = time.Now().Before(s.ends.Load().deadline)
	select {
	case <-s.routed:
		d.Routed = true
	default:
	}
	return s.link.Send(kindDone, d)
}

// order returns the order of a pass that has to be over at a time; zero is no limit.
func (s *session) order(limit time.Time) Order {
	switch {
	case s.covered, s.coldest > 0:
		return AnyOrder
	case s.late, !limit.IsZero() && time.Until(limit) < copyTime(s.offer.Items, s.offer.Bytes):
		return HotFirst
	}
	return ColdFirst
}

// finish stops memcached and makes the target equal to what it has saved. Unless the target
// has everything, memcached starts again.
func (s *session) finish(stop, ctx context.Context, log *slog.Logger) error {
	stopped := time.Now()
	if err := s.offer.Origin.Stop(stop); err != nil {
		if s.following {
			s.source.completed()
		}
		return fmt.Errorf("stopping memcached: %w", err)
	}
	saved := time.Now()
	p := pass{session: s, ctx: ctx, names: s.following}
	d, a, err := s.sendAll(ctx, &p)
	if err == nil {
		scanned := time.Since(saved)
		s.result.ItemsBefore, s.result.Items, s.result.Rejected = d.Items, a.Items, a.Rejected
		s.result.Gap = time.Since(stopped)
		log.Info("The target has everything", "sent", d.Sent, "removed", d.Removed, "stopSeconds", saved.Sub(stopped).Seconds(), "sendSeconds", scanned.Seconds())
		if !s.following {
			err = s.offer.Origin.Commit()
		}
		if err == nil {
			err = s.confirm()
		}
	}
	if err != nil && !s.following {
		s.offer.Origin.Resume()
	}
	if err != nil {
		return s.failed(s.cause(ctx, err))
	}
	s.result.Took = time.Since(s.began)
	// Until the target has closed the connection, the confirmation may not have arrived.
	_ = peerlink.Sleep(ctx, peerlink.Silence)
	s.offer.Origin.Complete(s.result)
	s.source.completed()
	return nil
}

// sendAll runs the last pass until the target acknowledges it.
func (s *session) sendAll(ctx context.Context, p *pass) (d done, a acknowledgement, err error) {
	if d, err = p.run(s.order(s.ends.Load().limit)); err != nil {
		return d, a, err
	}
	if err = s.sendState(); err != nil {
		return d, a, err
	}
	if err = s.link.Send(kindDone, d); err != nil {
		return d, a, err
	}
	c, err := s.next(ctx)
	for ; err == nil && c.kind == kindAsk && s.following; c, err = s.next(ctx) {
		if err = s.link.SendContent(kindRemoved, s.unknown(c.hashes)); err != nil {
			break
		}
	}
	if err == nil && c.kind != kindAcknowledge {
		err = fmt.Errorf("%w: unexpected kind %q", peerlink.ErrFrame, c.kind)
	}
	return d, c.acknowledgment, err
}

// sendState omits what is too large: it is not worth the items.
func (s *session) sendState() error {
	if !s.state {
		return nil
	}
	states, sent := s.offer.State(), 0
	states[UsesName] = s.sent.sent(time.Now()).Content()
	for name, content := range states {
		if len(content) > MaxState || sent == maxStates {
			s.source.log.Warn("The other pod does not get a part of what this agent knows about the items", "name", name, "bytes", len(content))
			continue
		}
		sent++
		if err := s.link.Send(kindState, state{name, content}); err != nil {
			return err
		}
	}
	return nil
}

// unknown returns a frame of those key hashes that the source doesn't have.
func (s *session) unknown(hashes []uint64) (frame []byte) {
	for _, hash := range hashes {
		if at, found := s.table.Find(hash); !found || s.table.content(at) == absent {
			frame = binary.BigEndian.AppendUint64(frame, hash)
		}
	}
	return frame
}

// confirm hands the items over: from here on they are the target's. An error means that
// the target can't have received the confirmation, since it is one write.
func (s *session) confirm() error {
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	if err := s.link.Send(kindConfirm, confirmation{Milliseconds: s.result.Gap.Milliseconds()}); err != nil {
		return err
	}
	s.source.heir = s.pod
	return nil
}

// pass is one scan, of which the target gets what it doesn't have.
type pass struct {
	session *session
	ctx     context.Context
	live    bool
	// ends of the session when it was last compared, and the order in which the items come.
	ends  *ends
	order Order
	// accessed is when the coldest item was accessed of those that were visited. Clients may have read the last one since the
	// items were sorted.
	accessed uint32
	// names is whether the target gets the names of changed items only, which it deletes.
	names   bool
	pace    pace
	began   time.Time
	done    done
	removed []byte
}

func (p *pass) run(order Order) (done, error) {
	s := p.session
	p.began, p.order, p.accessed = time.Now(), order, math.MaxUint32
	report, err := s.offer.Origin.Scan(p.ctx, order, p.visit)
	p.done.Complete = err == nil
	if errors.Is(err, errDeadline) || errors.Is(err, errShortened) {
		swept := s.table.sweep(nil) // what was not visited is not removed
		if errors.Is(err, errDeadline) {
			err = nil
		}
		return p.done, errors.Join(swept, err)
	}
	if err != nil {
		return p.done, fmt.Errorf("scanning the items: %w", err)
	}
	p.done.Items, p.done.FlushesAt = report.Items, report.FlushesAt
	p.done.Flushed, s.oldestLive = report.OldestLive != s.oldestLive, report.OldestLive
	if s.table != nil {
		if err := s.table.sweep(p.addRemoved); err != nil {
			return p.done, err
		}
	}
	return p.done, p.sendRemoved()
}

// visit sends an item if the target doesn't have its content.
func (p *pass) visit(item *memfile.Item) error {
	s := p.session
	p.accessed = min(p.accessed, item.LastAccess)
	p.pace.visited++
	if p.pace.visited%64 == 0 {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		if err := p.inTime(time.Now()); err != nil {
			return err
		}
	}
	var hash uint64
	var at slot
	var found bool
	if s.table != nil {
		hash = peerlink.KeyHash(s.seed, item.Key)
		if at, found = s.table.Find(hash); !found && s.coldest > 0 && item.LastAccess <= s.coldest {
			return nil // to sort the items again would take most of the time that is left
		}
	}
	content, err := s.hasher.content(item)
	if err != nil || found && s.table.unchanged(at, content) {
		return nil // a later pass shows what can't be read now
	}
	if p.names {
		s.table.put(at, found, hash, content)
		p.done.Sent++
		return s.link.sendName(item.Key)
	}
	return p.send(item, hash, content, at, found)
}

// inTime returns why a live pass can't go on.
func (p *pass) inTime(now time.Time) error {
	if !p.live {
		return nil
	}
	if ends := p.session.ends.Load(); ends != p.ends {
		p.ends, p.pace.deadline = ends, ends.deadline
		if p.order == ColdFirst && p.session.order(ends.deadline) == HotFirst {
			return errShortened
		}
	}
	if now.After(p.ends.deadline) {
		return errDeadline
	}
	return nil
}

func (p *pass) send(item *memfile.Item, hash, content uint64, at slot, found bool) error {
	s := p.session
	now := time.Now()
	if err := p.inTime(now); err != nil {
		return err
	}
	if limit := s.ends.Load().limit; !p.live && !limit.IsZero() && now.After(limit) {
		return nil // and if the target has another content, it deletes the key
	}
	if s.table != nil && !s.table.put(at, found, hash, content) && p.live {
		return nil // sent in the end
	}
	sent, err := s.link.sendItem(item, s.hasher)
	if err != nil {
		return err
	}
	if p.live {
		s.table.setContent(at, stored(sent))
	}
	s.sent.add(s.received.Of(item.CAS, item.AccessedAt, item.Fetched))
	size := int64(item.Size)
	p.done.Sent++
	s.result.Bytes += size
	if wait := p.pace.add(size, now); wait > 0 {
		if err := s.link.Flush(); err != nil {
			return err
		}
		return peerlink.Sleep(p.ctx, wait)
	}
	return nil
}

func (p *pass) addRemoved(hash uint64) error {
	p.removed = binary.BigEndian.AppendUint64(p.removed, hash)
	p.done.Removed++
	if len(p.removed) < maxRemoved {
		return nil
	}
	return p.sendRemoved()
}

func (p *pass) sendRemoved() error {
	if len(p.removed) == 0 {
		return nil
	}
	err := p.session.link.SendContent(kindRemoved, p.removed)
	p.removed = p.removed[:0]
	return err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

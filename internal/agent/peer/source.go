package peer

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

const (
	// The target must begin the end of a handover this long before the drain ends by its
	// timeout.
	endOfHandover = 5 * time.Second
	// contentTimeout is how long after the drain's timeout the target still gets items.
	contentTimeout = 15 * time.Second
	// killTimeout is how long after the drain's timeout the kubelet kills the agent.
	killTimeout = 30 * time.Second
	// deletionTimeout is how long a pod that hands over its items at the operator's request waits for its deletion while
	// the target serves too. The operator deletes it within a second, and after the operator's own restart within some.
	deletionTimeout = 30 * time.Second
	// keyInterval is how often a missing key file is read.
	keyInterval = time.Second
)

// Event is what the goroutine of a handover requests of the supervisor.
type Event int

const (
	// Begins needs a reply after Source.Begin.
	Begins Event = iota
	// Commits needs a record that another pod may serve.
	Commits
	// Stops needs memcached's items saved.
	Stops
	// Resumes needs memcached to serve again.
	Resumes
	// Abandons stops memcached and the agent, since another pod may have served.
	Abandons
	// Completes reports that the other pod serves.
	Completes
	// Releases reports that the session is over.
	Releases
)

// Request is an event of a source.
type Request struct {
	Source *Source
	Event  Event
	// Requested is whether a session that begins is of a pod that was requested to take over.
	Requested bool
	// Result is that of a handover that completes.
	Result handover.Result
	// Reply has room for one.
	Reply chan error
}

// Serve accepts targets as soon as the key file exists, and reports its port to
// ports. It also serves the pods of other shards if their key exists by then.
func Serve(c Config, network Network, requests chan<- Request, ports chan<- Port, log *slog.Logger) {
	key, err := readKey(c.Key)
	if err != nil {
		log.Warn("This pod does not hand over its items before it can read its key", "error", err)
	}
	for ; err != nil; key, err = readKey(c.Key) {
		time.Sleep(keyInterval)
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		log.Warn("This pod does not hand over its items", "error", err)
		return
	}
	address := listener.Addr()
	services := c.services(log)
	ports <- Port{Number: address.(*net.TCPAddr).Port, Scaling: services != nil}
	offer := func(ctx context.Context, requested bool) (handover.Offer, error) {
		s, err := NewSource(c, network, requests, requested)
		if err != nil {
			return handover.Offer{}, err
		}
		offer, err := s.offer(ctx)
		if err != nil {
			s.Release()
		}
		return offer, err
	}
	for {
		err := handover.Serve(context.Background(), listener, key, offer, log, services...)
		if err == nil { // the other pod has the items, and can hand them back
			listener, err = net.Listen("tcp", address.String())
		}
		if err != nil {
			log.Error("This pod no longer hands over its items", "error", err)
			return
		}
	}
}

// Source lets the goroutine of a handover read memcached's items, and stop and start
// memcached by requests to the supervisor.
type Source struct {
	Config
	network  Network
	requests chan<- Request

	// Of Begin.
	drainUntil time.Time
	// deleted is closed once the pod is being deleted; nil if it was before. deletedAt is when it was.
	deleted   chan struct{}
	deletedAt time.Time
	memory    *Memory

	// stopped is whether memcached has saved its items and exited.
	stopped bool
}

// NewSource begins the handover to a target that has connected. The error is the supervisor's.
func NewSource(c Config, network Network, requests chan<- Request, requested bool) (*Source, error) {
	s := &Source{Config: c, network: network, requests: requests}
	return s, s.send(Request{Event: Begins, Requested: requested})
}

// Begin sets what the source reads: a memcached that serves at most until drainUntil. deletedAt is when the pod's deletion
// began; zero before it.
func (s *Source) Begin(drainUntil, deletedAt time.Time, memory *Memory) {
	s.drainUntil, s.deletedAt, s.memory = drainUntil, deletedAt, memory
	if deletedAt.IsZero() {
		s.deleted = make(chan struct{})
	}
}

// Delete reports that the deletion of a pod has begun that wasn't being deleted before.
func (s *Source) Delete(at time.Time) {
	s.deletedAt = at
	close(s.deleted)
}

// Within divides what is left of a grace period: a third is for the end, and half of that for what follows the last
// items. The kubelet counts again from the start when a grace period is shortened after it has begun.
func (s *Source) Within(grace time.Duration) (deadline, limit time.Time) {
	now := time.Now()
	killed := now.Add(grace)
	if s.isDeleted() && s.deletedAt.Add(grace).After(now) {
		killed = s.deletedAt.Add(grace)
	}
	left := killed.Sub(now)
	return killed.Add(-min(left/3, killTimeout+endOfHandover)), killed.Add(-min(left/6, killTimeout-contentTimeout))
}

func (s *Source) isDeleted() bool {
	if s.deleted == nil {
		return true
	}
	select {
	case <-s.deleted:
		return true
	default:
		return false
	}
}

// freeTimeout is how long an offer waits for a free connection to memcached: less than the target waits for the offer.
const freeTimeout = peerlink.StepTimeout / 2

// offer waits while clients use all connections to memcached, which it needs as well.
func (s *Source) offer(ctx context.Context) (handover.Offer, error) {
	waiting, cancel := context.WithTimeout(ctx, freeTimeout)
	defer cancel()
	for {
		offer, err := s.verifiedOffer(ctx)
		if !protocol.IsFull(err) {
			return offer, err
		}
		if peerlink.Sleep(waiting, notReadyInterval) != nil {
			return offer, fmt.Errorf("%w: %w", handover.ErrNotStarted, err)
		}
	}
}

// verifiedOffer returns an error if the memory file can't be read as memcached does.
func (s *Source) verifiedOffer(ctx context.Context) (handover.Offer, error) {
	if err := s.memory.Verify(ctx); err != nil {
		return handover.Offer{}, err
	}
	stats, err := s.memory.Client.GeneralStats(ctx)
	if err != nil {
		return handover.Offer{}, fmt.Errorf("counting the items: %w", err)
	}
	answers, err := s.memory.Client.QueryStats(ctx, "stats settings")
	if err != nil {
		return handover.Offer{}, fmt.Errorf("reading memcached's settings: %w", err)
	}
	settings, err := protocol.ParseSettings(answers[0])
	if err != nil {
		return handover.Offer{}, err
	}
	return handover.Offer{
		Origin: s, State: s.State, CAS: settings.CAS, Pod: s.PodUID, Shard: s.Service, Owner: s.Owner, Version: s.memory.Version, Items: stats.Items, Bytes: stats.Bytes,
		Deadline: s.drainUntil.Add(-endOfHandover), Limit: s.drainUntil.Add(contentTimeout),
	}, nil
}

// request returns the supervisor's answer.
func (s *Source) request(event Event, result handover.Result) error {
	return s.send(Request{Event: event, Result: result})
}

func (s *Source) send(request Request) error {
	request.Source, request.Reply = s, make(chan error, 1)
	s.requests <- request
	return <-request.Reply
}

// Scan visits all items.
func (s *Source) Scan(ctx context.Context, order handover.Order, visit func(*memfile.Item) error) (memfile.Report, error) {
	if s.stopped {
		return s.memory.ScanSaved(order, visit)
	}
	return s.memory.Scan(ctx, order, visit)
}

// Stop stops memcached. The supervisor limits the time of a stop and does not interrupt
// it, so it ignores the context.
func (s *Source) Stop(context.Context) error {
	if err := s.request(Stops, handover.Result{}); err != nil {
		return fmt.Errorf("stopping memcached: %w", err)
	}
	s.stopped = true
	return nil
}

// Resume lets memcached serve again with its items.
func (s *Source) Resume() { _ = s.request(Resumes, handover.Result{}) }

// Commit lets an agent that starts again not serve memcached's items.
func (s *Source) Commit() error { return s.request(Commits, handover.Result{}) }

// Abandon stops memcached and ends this agent: another pod may have served since.
func (s *Source) Abandon() { _ = s.request(Abandons, handover.Result{}) }

// Release lets memcached serve on if it does.
func (s *Source) Release() { _ = s.request(Releases, handover.Result{}) }

// Complete ends this agent.
func (s *Source) Complete(result handover.Result) { _ = s.request(Completes, result) }

// AwaitRouted waits until the Service leads to the target that serves together with this pod, and as long again: the proxies
// of other nodes can be as slow as this node's. A pod that isn't being deleted yet is ready, so the Service leads to both.
func (s *Source) AwaitRouted(ctx context.Context) {
	if s.deleted != nil {
		select {
		case <-s.deleted:
		case <-ctx.Done():
		case <-time.After(deletionTimeout):
		}
	}
	began := time.Now()
	defer func() { _ = peerlink.Sleep(ctx, time.Since(began)) }()
	_ = Drain(ctx, s.network.Status, s.Service, s.PodUID, wire.PhaseFollowing, time.Until(s.drainUntil))
}

// Reserve is that of the memory.
func (s *Source) Reserve(bytes int64) (release func(), ok bool) { return s.memory.Reserve(bytes) }

package peer

import (
	"context"
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

const (
	// An agent uses processorsShare of the processors of its container while keys move, and at most mostOfOne of one. Clients, for which
	// memcached needs the processors, wait as long as they are busy.
	processorsShare, mostOfOne = 0.075, 0.5
	// bytesPerSecond is how much it sends and receives.
	bytesPerSecond = 50 << 20
	// A rest costs time of the processor too, so there is none below shortestRest. longestRest limits what one long work costs,
	// such as a garbage collection.
	shortestRest, longestRest = 20 * time.Millisecond, time.Second
	// restItems is after how many items of the memory file an agent may have to rest.
	restItems = 250
)

// share lets an agent rest whenever it has used more than its part of the processors or of the network. Without connections and
// scans that use it, an agent is not limited.
type share struct {
	// part is of one processor.
	part float64
	// processor returns how long the process has used the processor since it started.
	processor func() time.Duration

	mu   sync.Mutex
	used time.Duration
	// due is when the agent has rested for all its work.
	due time.Time
}

// ofMoves is that of all moves of keys between shards.
var ofMoves = &share{part: partOf(runtime.GOMAXPROCS(0)), processor: processorTime} // before the agent runs on one processor only

func partOf(processors int) float64 { return min(processorsShare*float64(processors), mostOfOne) }

func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // fails only for invalid arguments
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// wait returns how long the agent rests after a work that took so long, and has moved so many bytes.
func (s *share) wait(took time.Duration, bytes int, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.processor()
	// What else the agent does, such as to forward clients' connections, uses the processor during rests too.
	work := min(used-s.used, took)
	costs := max(float64(work)/s.part, float64(bytes)/bytesPerSecond*float64(time.Second))
	s.used = used
	// Time in which there was nothing to do is not made up for.
	if s.due.Before(now) {
		s.due = now
	}
	if s.due = s.due.Add(time.Duration(costs)); s.due.After(now.Add(longestRest)) {
		s.due = now.Add(longestRest)
	}
	if wait := s.due.Sub(now); wait >= shortestRest {
		return wait
	}
	return 0
}

// worker is a scan, or one direction of a connection. One goroutine at a time uses it.
type worker struct {
	share *share
	// began is the end of the last rest.
	began time.Time
}

func (s *share) worker() worker { return worker{share: s, began: time.Now()} }

// rest waits until the agent may work again after it has moved so many bytes, or until the context is done.
func (w *worker) rest(ctx context.Context, bytes int) {
	now := time.Now()
	if wait := w.share.wait(now.Sub(w.began), bytes, now); wait > 0 {
		_ = peerlink.Sleep(ctx, wait)
		now = time.Now()
	}
	w.began = now
}

// dial lets the connections of another function rest.
func (s *share) dial(dial protocol.DialContext) protocol.DialContext {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial.OrTCP()(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &restingConn{conn, s.worker(), s.worker()}, nil
	}
}

// scan lets a scan of the items for whose keys which returns true rest.
func (s *share) scan(ctx context.Context, which func(key []byte) bool) func(*memfile.Item) bool {
	n, w := 0, s.worker()
	return func(item *memfile.Item) bool {
		if n++; n%restItems == 0 {
			w.rest(ctx, 0)
		}
		return which(item.Key)
	}
}

// restingConn rests after each piece of an answer, and before each request.
type restingConn struct {
	net.Conn
	reads, writes worker
}

func (c *restingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.reads.rest(context.Background(), n)
	return n, err
}

func (c *restingConn) Write(p []byte) (int, error) {
	c.writes.rest(context.Background(), len(p))
	return c.Conn.Write(p)
}

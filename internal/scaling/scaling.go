// Package scaling moves the items of the keys that get another shard when the number of shards changes, from their old owner, the
// source, to the new one, the target. While some clients use the old list of servers and others the new one, it keeps both owners
// equal, so that clients of both find the items, and none reads an old value for longer than a sweep takes. After the close,
// the target has no value that is older than the last one that a client wrote, and the source has none of the keys.
//
// # Sweeps
//
// The target drives. For it, both sides are the same: a memcached that it sends requests to (pipe.go), and a scan of the memory file with
// the name, CAS and expiry of each moved key. Those of the source go through its agent (link.go), which has no other state and decides
// nothing but that the clients use the ring. For each source the target has a table of the keys (pairs.go): the CAS and the expiry of
// the item on each side when both were equal, a pair, and what the last scan of each side has shown.
//
// In a sweep, the target scans the source, then itself (sync.go). It decides about each key that a scan shows by what the two last
// scans have shown (rules.go). It does so by name, and memcached compares the CAS again. So what a scan shows may be old, or wrong:
//
//	pair, changed on one side      the other one gets its value, if its own item still has the CAS of the pair
//	pair, gone from one side       it is deleted from the other one
//	both have it, without a pair, or with both changed
//	                               a pair if their contents are equal, and no number; else both are deleted
//	one side has it, no pair       nothing: a deletion in the other side would have left no trace
//
// A change of expiry only (touch, gat) is a change. After a flush_all in one side, all pairs count as changed in both.
//
// While clients use the source only (Copy), the target gets all that the source has, whatever it has itself, and deletes the
// rest of its own.
//
// When clients use the target only (Close), a last sweep follows. Then the target deletes what isn't a pair, by a dump of its keys, which
// misses none, and the moved keys of sources that stay.
//
// # Why no old value remains
//
// A pair means that both sides had the same content at one time, and that a CAS shows every change since. So an item of the target is
// kept by the close only if it is a pair whose source didn't change, or with a value that the source got after that. The source doesn't
// change during the last sweep. Everything else is deleted by name whatever it contains by then, since incr and append make new
// values of old ones. A deletion without a compare can lose a value that a client has just stored, which a cache may; it can't
// make an old one visible. Values are fetched from memcached, with the item locked, and not read from its file: there, a CAS may be newer than the value.
// A number isn't compared: two incr on both sides would give equal values that lack one.
//
// # Failures
//
// The target connects again, and continues with its table if the source's
// memcached is the same process. Otherwise a CAS means nothing: there are no pairs, and both sides are compared. So it is with
// another process of the target's memcached, and with an agent that starts without a table. If the move ends while clients use the source
// only, the target deletes what it has copied. Of a memcached that lost its items,
// nothing is deleted elsewhere; until the close, clients of the other side may read what its clients had changed in the last sweep's time.
package scaling

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Step is how far a change of the number of shards is.
type Step = wire.ScalingStep

// The steps in their order.
const (
	Copy      = wire.ScalingCopy
	Published = wire.ScalingPublished
	Close     = wire.ScalingClose
)

// Change is a change of the number of shards.
type Change struct {
	// Ring is that of the clients, by its name in package ring.
	Ring string
	// From and To are the servers as clients name them, by ordinal, before and after.
	From, To []string
}

// Memcached is the memcached of an agent.
type Memcached struct {
	Server protocol.Server
	// Scan visits and counts those items of the memory file for whose keys which returns true. It visits an item directly after that.
	Scan func(ctx context.Context, order handover.Order, which func(key []byte) bool, visit func(*memfile.Item) error) (memfile.Report, error)
	// Dump lists the keys. It must not pause: memcached may lock items, or lose keys, while a client reads the list slowly.
	Dump func(ctx context.Context, visit func(protocol.Listed) error) error
	// Run identifies the running process of memcached; empty while none runs.
	Run func() string
	// Reserve reports whether the container has room for so many bytes more than buffers. Until release is called, they are
	// reserved, or the buffers only. It may be called again before.
	Reserve func(bytes int64) (release func(), ok bool)
	// Owner is the UID of the Memcached, Ordinal that of the shard.
	Owner   string
	Ordinal int
}

// Target describes the pod that gets keys of other shards.
type Target struct {
	Memcached
	Change Change
	// Key is that of the Memcached for scaling, as in its Secret.
	Key []byte
	// Dial connects to the handover port of the agent of a shard.
	Dial func(ctx context.Context, ordinal int) (net.Conn, error)
	// Step returns the current one. It is called before each sweep.
	Step func() Step
	// Concluded is whether an earlier Run for the change has concluded it: the items of the sources are only left to be deleted, and no
	// longer compared. Conclude, if any, is called when that is so, before anything is deleted from a source.
	Concluded bool
	Conclude  func()
	// Progress, if any, is called after each sweep, and a few times a second during the first one.
	Progress func(Progress)
	Log      *slog.Logger
}

// Progress is how far a target is.
type Progress struct {
	// Step is the one that is completed; empty if none is. After Copy the target has the items, after Published it counts with clients
	// that use both. It can become less, after memcached has lost its items.
	Step Step
	// Moved is the number of pairs, Total that of the items to be copied.
	Moved, Total int64
	// Stale bounds how old a value can be that a client reads from one side after another client has changed it in the other one: it is
	// twice the time since the last complete sweep has begun, and of the pause until the next one.
	Stale time.Duration
	// Deleted is the number of items that were deleted because the sides differed, or only the target had them, Purged that of the
	// items that the sources deleted at the close: those that stay.
	Deleted, Purged int64
	// Error is why a source can't be reached; nil if all can. The target tries again.
	Error error
}

// ServiceName is the server name (SNI) with which a target connects to the handover port.
const ServiceName = "scaling"

var (
	// ErrUnproven means that the keys of a shard are not where the declared ring puts them. Nothing was copied or deleted.
	ErrUnproven = errors.New("the keys are not where the declared ring puts them")
	// ErrNoMemory means that the container has no room for the tables.
	ErrNoMemory = errors.New("there is no memory for a table of the keys")
	// ErrImpossible means that another attempt would fail too.
	ErrImpossible = errors.New("the keys can't move")
)

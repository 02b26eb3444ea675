// Package handover copies the items of a shard from the pod that is being deleted or replaced, the
// source, to its replacement, the target, over one authenticated connection.
//
// The source scans its memory file (internal/memcached/memfile) and sends each item whose content it
// has not sent before. The passes while memcached serves bring the target close; after memcached
// was stopped with a save, the file can't change any more, and the last pass makes the target equal to
// it. Items are compared by their content and not by memcached's CAS, so nothing depends on how a
// version of memcached numbers changes.
//
// # Messages
//
// Both sides derive the same key pair from the key of the Memcached, and accept only that one
// (identity.go). The target drives, the source answers (frame.go):
//
//	target            source
//	hello         →              versions, pod, shard
//	              ←   hello      version, pod, deadline, items, whether there are live passes
//	pass          →              as often as the target requests it
//	              ←   item …     contents that were not sent yet
//	              ←   removed …  key hashes of items that no longer exist
//	              ←   done
//	finish        →              the source stops its memcached
//	              ←   item …, removed …
//	              ←   state …    what the source's agent knows about the items
//	              ←   done
//	acknowledge   →              the target has applied everything
//	              ←   confirm    from here on the target may serve, and the source may not
//
// The target sends another hello, at any time, when it learns that the source's pod is deleted with a
// shorter grace period.
//
// With Target.Ready, both memcacheds serve before the end, until new connections reach the target:
//
//	follow        →              as often as the target requests it
//	              ←   name …     keys whose item changed in the source
//	              ←   removed …, done  whether new connections reach the target
//	                             after the first of them, the target calls Ready and serves
//	finish        →              the source stops its memcached
//	              ←   name …, removed …, state …, done
//	ask …         →              key hashes of what the clients of the target have stored
//	              ←   removed …  those of them that the source doesn't have
//	acknowledge   →
//	              ←   confirm
//
// The target deletes all these keys and gets no values: it could not know whether its own value is
// newer, or was deleted. So a key that clients change in both is a miss. A change is another content,
// expiry or CAS. What only the target has is deleted at the end, since the source's clients may
// have deleted it, and the deletion of what the source doesn't have leaves no trace. A flush_all of the source
// is repeated in the target.
//
// In both modes, a flush_all whose delay is not over when the source stops deletes all items of the target at that time.
//
// An item travels with the time at which it expires, and not with what it has left to live, which is wrong
// once it has waited. The clocks of nodes may differ: the offer shows the source's. The target's memcached
// has a clock of its own (protocol.Clock).
//
// Both sides send a beat every second. A side that receives nothing for silence closes the
// connection, and so does one whose peer doesn't continue within stepTimeout.
//
// # Failures
//
// Until the source has sent the confirmation, its items remain its own: when the session fails
// after the stop, memcached is started again with them. A target whose Receive failed has an
// unknown part of the items, and must start its memcached without items before it serves or
// tries again. If the confirmation is lost, both sides are without items: the other order could
// have two sides that serve. From the first follow on, each side can have what the other one
// doesn't know: if the session fails then, the source abandons its items, and Receive
// returns ErrDiverged.
//
// The source serves one target at a time. Another pod gets ErrBusy while the first one is connected
// and alive, or has the items; a new connection of the same pod replaces its earlier one.
package handover

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Origin is the memcached whose items a source hands over.
type Origin interface {
	// Scan visits the items of the memory file. After Stop returned nil they can't change any more.
	Scan(ctx context.Context, order Order, visit func(*memfile.Item) error) (memfile.Report, error)
	// Reserve reports whether the container has room for so many bytes more than buffers. Until release is called, they are the
	// session's, or the buffers only.
	Reserve(bytes int64) (release func(), ok bool)
	// Stop makes memcached save its items and exit. After it there are no answers until the target
	// serves. After an error neither Resume nor Complete follows. The context doesn't depend on the
	// target's connection.
	Stop(ctx context.Context) error
	// Resume starts memcached again with its items, since the target doesn't take over after all.
	Resume()
	// Commit is called before the target may serve. Unless Resume follows, a source that starts again afterwards must not
	// serve its items. After an error the target doesn't serve.
	Commit() error
	// Abandon stops memcached, if it runs, for good: a target that was lost may have served, and had newer items.
	Abandon()
	// Complete reports that the target has all items and serves.
	Complete(Result)
	// Release reports that the session is over. If memcached still serves, it keeps its items.
	Release()
	// Within returns the deadline and the limit, as in an Offer, of a source whose pod is deleted with a grace period.
	Within(grace time.Duration) (deadline, limit time.Time)
	// AwaitRouted returns once new connections of clients reach the target, which serves as well, or will never do so.
	AwaitRouted(ctx context.Context)
}

// Order is the order of a scan.
type Order string

const (
	// AnyOrder is the fastest one.
	AnyOrder Order = "any"
	// ColdFirst lets the target evict the least recently used items first.
	ColdFirst Order = "cold first"
	// HotFirst copies the most recently used items, if there is no time for all.
	HotFirst Order = "hot first"
)

// Offer describes what a source hands over.
type Offer struct {
	Origin Origin
	// Pod is the UID of the source's pod, Shard the name that only pods of the same shard have, and
	// Owner what distinguishes it from an earlier shard of that name.
	Pod, Shard, Owner string
	// Version of memcached, such as 1.6.45.
	Version string
	// Items is the current number of items, as in the stat curr_items, Bytes their size, as in bytes.
	Items, Bytes int64
	// Deadline is when the end has to begin: live passes stop then, and have no limit of their rate shortly before.
	Deadline time.Time
	// CAS is whether memcached numbers changes (no -C), which a target that serves during the handover
	// requires.
	CAS bool
	// Limit is when everything has to be sent: after it the target gets no further contents, and
	// loses the items whose content it doesn't have. The zero time is no limit.
	Limit time.Time
	// State, if any, returns what the target's agent gets together with the items: at most maxStates entries of MaxState bytes,
	// of which the source replaces UsesName.
	State func() map[string][]byte
}

// Target describes the pod that receives the items.
type Target struct {
	// Source is the address of the source, a host and a port, DialContext connects to it; nil means over TCP.
	Source      string
	DialContext protocol.DialContext
	// Key of the Memcached, as in its Secret.
	Key []byte
	// Pod is the UID of the target's pod. Shard and Owner must be those of the source.
	Pod, Shard, Owner string
	// Announced returns what is known of the source now. requested is whether this pod was requested to take over: a source
	// whose pod is not being deleted hands over its items to no other target. grace is the grace period with which the source's
	// pod is deleted, if that is shorter than its own; 0 if not. Nil is nothing.
	Announced func() (requested bool, grace time.Duration)
	// Memcached is the target's own, which is empty and has no other client.
	Memcached protocol.Server
	// Scan visits the items of the target's own memory file.
	Scan func(ctx context.Context, visit func(*memfile.Item) error) (memfile.Report, error)
	// Progress, if any, is called a few times a second.
	Progress func(Progress)
	// Ready, if any, is called when the target may serve although the source still does. It isn't called
	// if one of them can't do this; Result.Strict is the reason then.
	Ready func()
	Log   *slog.Logger
}

// Result describes a handover, on both sides.
type Result struct {
	// ItemsBefore is the number of items of the source when its memcached had stopped, Items how many of them the target has.
	ItemsBefore, Items int64
	// Rejected is how many items the target's memcached rejected, for example for their size.
	Rejected int64
	// Bytes of keys and values that were sent, over all passes.
	Bytes int64
	// Passes is the number of live passes.
	Passes int
	// Took is from the connection to the end, Gap from the stop of the source's memcached to the end. Gap is 0
	// if the target served before.
	Took, Gap time.Duration
	// Both is how long both served. Strict is why they didn't, although Ready was set.
	Both   time.Duration
	Strict string
	// State is that of the offer, in the target. It is nil if an agent of release 1.0.0 is the source.
	State map[string][]byte
}

// Progress is published while a handover runs.
type Progress struct {
	// Pass is the number of the live pass, from 1; 0 during the end.
	Pass int
	// Items and Bytes were received so far, over all passes.
	Items, Bytes int64
	// Total is the number of items of the source, as far as known.
	Total int64
}

var (
	// ErrNotStarted is the source's answer while its pod is not being deleted and the target was not requested to take over,
	// while it starts or restarts memcached, or while that has no connection left. The target has received nothing, and may try again.
	ErrNotStarted = errors.New("the other pod of the shard has not started a handover, and keeps its items")
	// ErrBusy is the source's answer while another pod is connected or has the items. The target has received nothing, and may try
	// again. If the source is lost then, the other pod may serve.
	ErrBusy = errors.New("the other pod of the shard is busy, and keeps its items")
	// ErrDiverged means that the source was lost when both served. The target's memcached has items that
	// are older than those of the source had been.
	ErrDiverged = errors.New("the source was lost while both pods served")
	// ErrImpossible is the source's answer when its items can't be handed over, now or later.
	ErrImpossible = errors.New("the items can't be handed over")
)

// IsNotReady returns whether an error of Receive says that the target has received nothing yet, and should try again.
func IsNotReady(err error) bool { return errors.Is(err, ErrNotStarted) || errors.Is(err, ErrBusy) }

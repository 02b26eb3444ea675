// Package handover copies the items of a shard from the pod that is being deleted, the
// source, to its replacement, the target, over one authenticated connection.
//
// The source scans its memory file (internal/memcached/memfile) and sends each item whose content it
// has not sent before. The passes while memcached serves bring the target close; after memcached
// was stopped with a save, the file can't change any more, and the last pass makes the target equal to
// it. Items are compared by their content and not by memcached's CAS, so nothing depends on how a
// version of memcached numbers changes.
package handover

import (
	"context"
	"errors"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
)

// Origin is the memcached whose items a source hands over.
type Origin interface {
	// Scan visits the items of the memory file, in any order; after Stop returned nil these are the last ones.
	Scan(ctx context.Context, visit func(*memfile.Item) error) (memfile.Report, error)
	// Stop makes memcached save its items and exit. After it there are no answers until the target serves.
	Stop(ctx context.Context) error
	// Resume starts memcached again with its items, since the target doesn't take over after all.
	Resume()
	// Complete says that the target has all items and serves.
	Complete(Result)
}

// Result describes a handover, on both sides.
type Result struct {
	// ItemsBefore is the number of items of the source when its memcached had stopped, Items how many of them the target has.
	ItemsBefore, Items int64
	Bytes              int64
	Passes             int
	// Took is from the connection to the end, Gap from the stop of the source's memcached to the end.
	Took, Gap time.Duration
}

// Progress is published while a handover runs.
type Progress struct {
	Pass         int
	Items, Bytes int64 // received so far
	Total        int64 // items of the source, as far as known
}

// ErrNotTerminating is the source's answer while its pod is not being deleted.
var ErrNotTerminating = errors.New("the other pod of the shard is not being deleted")

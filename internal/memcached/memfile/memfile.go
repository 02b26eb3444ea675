// Package memfile reads the items in the memory file (-e) of memcached, while memcached
// runs or after it has saved and exited. It imports the standard library only.
//
// The layout of the file is memcached's own memory: pages of 1 MiB, each divided into
// chunks of its slab class. Sources: memcached.h (item, item_chunk), slabs.c
// (slabs_fixup), restart.c of 1.6.18, 1.6.38 and 1.6.45, in which it is equal.
package memfile

import "errors"

// Item is one item of the file. Its slices are valid until visit returns.
type Item struct {
	Key   []byte
	Value []byte // without the trailing \r\n
	Flags uint32
	// TTL is the remaining time to live in seconds, at least 1; 0 for an item that doesn't expire.
	TTL int64
	// Expires and LastAccess are in seconds of memcached's own clock, 0 if an item doesn't expire.
	Expires, LastAccess uint32
	// CAS is 0 for a memcached with -C.
	CAS uint64
}

// Clock is what memcached knows about time, in seconds of its own clock.
type Clock struct {
	Now uint32
	// OldestLive and OldestCAS are of the last flush_all: items that are not newer are gone.
	OldestLive uint32
	OldestCAS  uint64
}

// Report counts what a scan found.
type Report struct {
	Items int64
	// Bytes of keys and values.
	Bytes int64
	// Skipped is the number of linked items that were left out: expired, flushed, stale.
	Skipped int64
	// Unreadable is the number of chunks and pages that don't have the expected layout, as while
	// memcached changes them.
	Unreadable int64
}

// ErrLayout says that a file doesn't have the layout that this package knows.
var ErrLayout = errors.New("the memory file has an unknown layout")

package main

import (
	"time"
)

// hold keeps a shard from serving while it is filled. memcached runs and takes
// items; only /readyz says that it does not serve, so that no Service leads here.
//
// It begins with the container and ends once: a time that appears later, or again,
// would take a shard away from clients that use it.
type hold struct {
	until time.Time
	over  bool
}

// look takes what the annotation says now, and returns whether anything changed.
// What is no time holds nothing: a shard that serves empty is better than one that
// never serves.
func (h *hold) look(text string, now time.Time) bool {
	if h.over {
		return false
	}
	was := h.until
	until, err := time.Parse(time.RFC3339, text)
	if err != nil || !now.Before(until) {
		h.until, h.over = time.Time{}, true
		return !was.IsZero()
	}
	h.until = until
	return !was.Equal(until)
}

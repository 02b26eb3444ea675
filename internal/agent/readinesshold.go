package agent

import (
	"time"
)

// readinessHold keeps a shard unready while the operator fills it. memcached runs
// and stores items, but no Service leads to it.
//
// It begins with the container and ends once: a hold that appears later, or again,
// would take the shard away from connected clients.
type readinessHold struct {
	until time.Time
	ended bool
}

// update applies the annotation's text and reports whether the hold changed. An
// invalid time ends the hold: an empty shard is better than one that never serves.
func (h *readinessHold) update(text string, now time.Time) bool {
	if h.ended {
		return false
	}
	previous := h.until
	until, err := time.Parse(time.RFC3339, text)
	if err != nil || !now.Before(until) {
		h.until, h.ended = time.Time{}, true
		return !previous.IsZero()
	}
	h.until = until
	return !previous.Equal(until)
}

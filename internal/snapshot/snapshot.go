package snapshot

import (
	"log/slog"
	"time"
)

// Env is what a run has beside its task.
type Env struct {
	// Spool is a folder for the names of keys; empty is the system's for temporary files.
	Spool string
	// Meter counts what is done; nil counts nothing that anyone sees.
	Meter *Meter
	// Patience is how long a server may be away, and 0 is two minutes.
	Patience time.Duration
	// Now is the clock; nil is the system's.
	Now func() time.Time
	// Log is told of what was mended; nil is nobody.
	Log *slog.Logger
}

// InspectOptions of Inspect.
type InspectOptions struct {
	// Chunks lists each chunk.
	Chunks bool
	// Keys lists each item with its size, flags and expiry, but not its value.
	Keys bool
	// Verify reads all chunks and compares their checksums.
	Verify bool
}

func (e Env) withDefaults() Env {
	if e.Meter == nil {
		e.Meter = &Meter{}
	}
	if e.Patience == 0 {
		e.Patience = defaultPatience
	}
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	return e
}

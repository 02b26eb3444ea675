package copy

import (
	"log/slog"
	"time"
)

// defaultShardTimeout: a warm restart takes seconds, a new pod on another node about
// a minute.
const defaultShardTimeout = 2 * time.Minute

// Options of a run.
type Options struct {
	// SpoolDir is a directory for the names of keys; empty means the system's directory
	// for temporary files.
	SpoolDir string
	// Progress counts what is done.
	Progress *Progress
	// ShardTimeout is how long a shard may be unavailable; 0 means two minutes.
	ShardTimeout time.Duration
	// Now is the clock; nil means the system's.
	Now func() time.Time
	// Log gets one line for each problem that was solved.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.ShardTimeout == 0 {
		o.ShardTimeout = defaultShardTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

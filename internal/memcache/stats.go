package memcache

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

// Stats is an answer to "stats" or one of its groups: values by name.
type Stats map[string]string

// ReadStats reads a stats answer up to its END.
func ReadStats(r *bufio.Reader) (Stats, error) {
	stats := Stats{}
	for range MaxStats {
		line, err := readLine(r)
		if err != nil {
			return nil, err
		}
		if line == "END" {
			return stats, nil
		}
		rest, ok := strings.CutPrefix(line, "STAT ")
		if !ok {
			return nil, refusal(line)
		}
		// A value may be empty and may hold spaces, a name neither.
		name, value, _ := strings.Cut(rest, " ")
		if name == "" {
			return nil, fmt.Errorf("%w: a stat without a name", ErrMalformed)
		}
		stats[name] = value
	}
	return nil, fmt.Errorf("more than %d stats: %w", MaxStats, ErrTooLong)
}

// Int returns a stat as a number; 0 when it is missing or not a number, since
// versions add and drop stats.
func (s Stats) Int(name string) int64 {
	n, err := strconv.ParseInt(s[name], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// General is what "stats" says of a server as a whole.
type General struct {
	PID     int
	Version string
	// Uptime is in seconds. It goes on over a warm restart, and starts at 2 or 3
	// in a new server.
	Uptime int64
	// Items is how many items are held now, expired ones that nobody has met included.
	Items int64
	// Bytes are taken by these items; MaxBytes is the limit, -m.
	Bytes    int64
	MaxBytes int64
	// Connections are open now, the caller's included.
	Connections int64
	// Lookups are the keys that were asked for since the start, or since "stats
	// reset": by get, gets, gat, touch and mg. Hits are those of them that were there.
	//
	// They are cmd_get and cmd_touch together. Apart they mislead: a get that sets a
	// new time to live (mg with T) counts as a touch when it hits and as a get when
	// it misses. Measured with 1.6.18, 1.6.38 and 1.6.45.
	Lookups int64
	Hits    int64
}

// ParseGeneral reads the general stats.
func ParseGeneral(s Stats) General {
	return General{
		PID:         int(s.Int("pid")),
		Version:     s["version"],
		Uptime:      s.Int("uptime"),
		Items:       s.Int("curr_items"),
		Bytes:       s.Int("bytes"),
		MaxBytes:    s.Int("limit_maxbytes"),
		Connections: s.Int("curr_connections"),
		Lookups:     s.Int("cmd_get") + s.Int("cmd_touch"),
		Hits:        s.Int("get_hits") + s.Int("touch_hits"),
	}
}

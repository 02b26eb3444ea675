package protocol

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
)

// Stats are the values of an answer to "stats" or one of its groups, by name.
type Stats map[string]string

// ReadStats reads a stats answer up to its END.
func ReadStats(r *bufio.Reader) (Stats, error) {
	stats := Stats{}
	err := eachStat(r, MaxStats, func(name, value []byte) { stats[string(name)] = string(value) })
	if err != nil {
		return nil, err
	}
	return stats, nil
}

// eachStat reads a stats answer of at most so many lines up to its END. The arguments of
// visit are valid until it returns.
func eachStat(r *bufio.Reader, lines int, visit func(name, value []byte)) error {
	for range lines {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		if string(line) == "END" {
			return nil
		}
		rest, ok := bytes.CutPrefix(line, []byte("STAT "))
		// A value may be empty and may contain spaces, a name neither.
		name, value, _ := bytes.Cut(rest, []byte(" "))
		if !ok || len(name) == 0 {
			return answerError(line)
		}
		visit(name, value)
	}
	return fmt.Errorf("more than %d stats: %w", lines, ErrTooLong)
}

// maxStat bounds a stat, so that sums of them don't overflow.
const maxStat = 1 << 53

// int returns a stat as a number, and 0 if it is missing, since versions add and remove stats, or
// isn't a number from 0 to maxStat.
func (s Stats) int(name string) int64 {
	n, err := strconv.ParseInt(s[name], 10, 64)
	if err != nil || n < 0 || n > maxStat {
		return 0
	}
	return n
}

// General are the general stats of a server.
type General struct {
	PID     int
	Version string
	// Uptime is in seconds. A warm restart doesn't reset it, and a new server starts at 2
	// or 3.
	Uptime int64
	// Items is the current number of items, including expired ones that memcached has not
	// noticed yet.
	Items int64
	// Bytes is the memory of these items, MaxBytes the limit, -m.
	Bytes    int64
	MaxBytes int64
	// Connections is the current number, including the caller's.
	Connections int64
	// Lookups is the number of keys that get, gets, gat, touch and mg requested since the
	// start, or since "stats reset". Hits is how many of them were found.
	//
	// Both add up the stats of get and touch, because a get that sets a new time to live
	// (mg with T) counts as a touch if it hits and as a get if it misses. Measured with
	// 1.6.18, 1.6.38 and 1.6.45.
	Lookups int64
	Hits    int64
}

// ParseGeneral parses the general stats.
func ParseGeneral(s Stats) General {
	return General{
		PID:         int(s.int("pid")),
		Version:     s["version"],
		Uptime:      s.int("uptime"),
		Items:       s.int("curr_items"),
		Bytes:       s.int("bytes"),
		MaxBytes:    s.int("limit_maxbytes"),
		Connections: s.int("curr_connections"),
		Lookups:     s.int("cmd_get") + s.int("cmd_touch"),
		Hits:        s.int("get_hits") + s.int("touch_hits"),
	}
}

// ListsKeys returns whether a server with these settings dumps its keys: it has no -X, and its LRU crawler is enabled.
func (s Stats) ListsKeys() bool { return s["dump_enabled"] != "no" && s["lru_crawler"] != "no" }

// Settings are the settings that decide which items a server accepts.
type Settings struct {
	// ItemSizeMax is -I in bytes.
	ItemSizeMax int64
	// CAS is false with -C.
	CAS bool
	// Evictions is false with -M.
	Evictions bool
}

// ParseSettings reads the answer to "stats settings". A setting that is missing or has
// the wrong type is ErrMalformed: every version since 1.6.0 has all of them.
func ParseSettings(s Stats) (settings Settings, err error) {
	malformed := func(name string) error { return fmt.Errorf("%w: setting %s is %.80q", ErrMalformed, name, s[name]) }
	if settings.ItemSizeMax, err = strconv.ParseInt(s["item_size_max"], 10, 64); err != nil {
		return Settings{}, malformed("item_size_max")
	}
	for name, to := range map[string]*bool{"cas_enabled": &settings.CAS, "evictions": &settings.Evictions} {
		switch s[name] {
		case "yes", "on":
			*to = true
		case "no", "off":
		default:
			return Settings{}, malformed(name)
		}
	}
	return settings, nil
}

package memcache

import (
	"fmt"
	"strconv"
)

// Settings are those of "stats settings" that decide what a server can hold and
// whether another can take up its restartable cache.
type Settings struct {
	// MaxBytes is -m in bytes.
	MaxBytes int64
	// MaxConns is -c.
	MaxConns int64
	// Threads is -t.
	Threads int64
	// ItemSizeMax is -I in bytes.
	ItemSizeMax int64
	// ChunkSize is -n in bytes.
	ChunkSize int64
	// SlabChunkMax is the largest chunk of a slab page in bytes.
	SlabChunkMax int64
	// GrowthFactor is -f.
	GrowthFactor float64
	// CAS is false under -C.
	CAS bool
	// Evictions is false under -M.
	Evictions bool
	// SlabReassign is false under -o no_slab_reassign or no_modern.
	SlabReassign bool
	// MemoryFile is -e; empty without it.
	MemoryFile string
}

// ParseSettings reads the answer to "stats settings". A setting that is missing
// or not of its kind is ErrMalformed: all of these are in every version since 1.6.0.
func ParseSettings(s Stats) (Settings, error) {
	var settings Settings
	for name, to := range map[string]*int64{
		"maxbytes":       &settings.MaxBytes,
		"maxconns":       &settings.MaxConns,
		"num_threads":    &settings.Threads,
		"item_size_max":  &settings.ItemSizeMax,
		"chunk_size":     &settings.ChunkSize,
		"slab_chunk_max": &settings.SlabChunkMax,
	} {
		n, err := strconv.ParseInt(s[name], 10, 64)
		if err != nil {
			return Settings{}, malformedSetting(name, s[name])
		}
		*to = n
	}
	for name, to := range map[string]*bool{
		"cas_enabled":   &settings.CAS,
		"evictions":     &settings.Evictions,
		"slab_reassign": &settings.SlabReassign,
	} {
		switch s[name] {
		case "yes", "on":
			*to = true
		case "no", "off":
		default:
			return Settings{}, malformedSetting(name, s[name])
		}
	}
	factor, err := strconv.ParseFloat(s["growth_factor"], 64)
	if err != nil {
		return Settings{}, malformedSetting("growth_factor", s["growth_factor"])
	}
	settings.GrowthFactor = factor
	if file := s["memory_file"]; file != "(null)" {
		settings.MemoryFile = file
	}
	return settings, nil
}

func malformedSetting(name, value string) error {
	return fmt.Errorf("%w: setting %s is %.80q", ErrMalformed, name, value)
}

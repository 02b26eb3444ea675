package geometry

import (
	"fmt"
	"strings"
)

// Geometry is what must be equal for memcached to take up a saved file: the
// checked values of its metadata file. Source: _mc_meta_load_cb in memcached.c.
// Sizes are in bytes.
type Geometry struct {
	MaxBytes     int64
	ChunkSize    int64
	ItemSizeMax  int64
	SlabChunkMax int64
	SlabPage     int64
	// SlabConfig is compared as text: "1.25" is not "1.250".
	SlabConfig   string
	CAS          bool
	SlabReassign bool
	// Extstore has no line in the file: memcached starts clean whenever it is on.
	Extstore bool
}

// Of returns what a version of memcached, such as "1.6.45", makes of its
// argument words. It follows main in memcached.c: later options win, and
// no_modern yields to slab_chunk_max. Words that memcached would refuse have a
// geometry too, of no meaning.
func Of(words []string, version string) Geometry {
	g := Geometry{
		MaxBytes: 64 << 20, ChunkSize: 48, ItemSizeMax: 1 << 20, SlabChunkMax: 512 << 10, SlabPage: 1 << 20,
		SlabConfig: "1.25", CAS: true, SlabReassign: true,
	}
	var slabSizes string
	var chunkMaxGiven bool
	for _, option := range Options(words) {
		switch option.Letter {
		case 'm':
			g.MaxBytes = number(option.Value) << 20
		case 'I':
			g.ItemSizeMax = number(option.Value) * unit(option.Value)
		case 'f':
			g.SlabConfig = option.Value
		case 'n':
			g.ChunkSize = number(option.Value)
		case 'C':
			g.CAS = false
		case 'o':
			for _, sub := range suboptions(option.Value) {
				switch name, value := sub[0], sub[1]; name {
				case "slab_sizes":
					slabSizes = value
				case "slab_chunk_max":
					g.SlabChunkMax = number(value) << 10
					if older(version, 1, 6, 24) {
						// The help said KiB always, the program took bytes.
						g.SlabChunkMax = number(value)
					}
					chunkMaxGiven = true
				case "no_chunked_items":
					g.SlabChunkMax = g.SlabPage
				case "slab_reassign":
					g.SlabReassign = true
				case "no_slab_reassign":
					g.SlabReassign = false
				case "no_modern":
					g.SlabReassign = false
					if !chunkMaxGiven {
						g.SlabChunkMax = g.SlabPage
					}
				case "ext_path":
					g.Extstore = true
				}
			}
		}
	}
	if slabSizes != "" {
		g.SlabConfig = slabSizes
	}
	if g.ItemSizeMax > 1<<20 && !chunkMaxGiven {
		g.SlabChunkMax = g.SlabPage / 2
	}
	return g
}

// older reports whether a version such as "1.6.18" is below another.
func older(version string, than ...int64) bool {
	for i, part := range strings.SplitN(version, ".", len(than)) {
		if n := number(part); n != than[i] {
			return n < than[i]
		}
	}
	return false
}

// unit is the factor of -I's last letter.
func unit(value string) int64 {
	switch {
	case strings.HasSuffix(value, "k"), strings.HasSuffix(value, "K"):
		return 1 << 10
	case strings.HasSuffix(value, "m"), strings.HasSuffix(value, "M"):
		return 1 << 20
	}
	return 1
}

// Difference names the first value in which two geometries differ, with the
// option that sets it, for a person; empty when a file of one can be taken up by
// the other.
func (g Geometry) Difference(to Geometry) string {
	if g.Extstore || to.Extstore {
		return "extstore (-o ext_path), with which memcached keeps no items over a restart"
	}
	for _, v := range []struct {
		option   string
		from, to any
	}{
		{"the memory limit (-m)", g.MaxBytes, to.MaxBytes},
		{"the largest item (-I)", g.ItemSizeMax, to.ItemSizeMax},
		{"the slab sizes (-f or -o slab_sizes)", g.SlabConfig, to.SlabConfig},
		{"the smallest item (-n)", g.ChunkSize, to.ChunkSize},
		{"CAS (-C)", g.CAS, to.CAS},
		{"slab reassignment (-o slab_reassign or no_modern)", g.SlabReassign, to.SlabReassign},
		{"the largest chunk (-o slab_chunk_max, no_chunked_items or no_modern)", g.SlabChunkMax, to.SlabChunkMax},
		{"the slab page", g.SlabPage, to.SlabPage},
	} {
		if v.from != v.to {
			return fmt.Sprintf("%s, %v before and now %v", v.option, v.from, v.to)
		}
	}
	return ""
}

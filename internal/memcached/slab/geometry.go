package slab

import (
	"fmt"
	"strings"

	"github.com/memcached-operator/memcached-operator/internal/memcached/args"
)

// Geometry contains the settings that must be equal for memcached to reload saved
// items. Sizes are in bytes. Source: _mc_meta_load_cb in memcached.c.
type Geometry struct {
	MaxBytes     int64
	ChunkSize    int64
	ItemSizeMax  int64
	SlabChunkMax int64
	SlabPage     int64
	// SlabConfig is compared as text: "1.25" differs from "1.250".
	SlabConfig string
	// hasSizes is whether SlabConfig contains sizes instead of a factor. memcached doesn't compare it.
	hasSizes     bool
	CAS          bool
	SlabReassign bool
	// Extstore is not in the metadata file: with it memcached always starts empty.
	Extstore bool
}

// Of returns the geometry of a memcached version, such as "1.6.45", with these
// arguments. An empty version is a recent one. It follows main in memcached.c: later options override earlier ones, and
// slab_chunk_max overrides no_modern. For arguments that memcached rejects the result
// is meaningless.
func Of(arguments []string, version string) Geometry {
	g := Geometry{
		MaxBytes: 64 << 20, ChunkSize: 48, ItemSizeMax: 1 << 20, SlabChunkMax: 512 << 10, SlabPage: 1 << 20,
		SlabConfig: "1.25", CAS: true, SlabReassign: true,
	}
	// The help always said KiB, but the program read bytes.
	chunkMaxInBytes := version != "" && IsBefore(version, 1, 6, 24)
	var slabSizes string
	var chunkMaxGiven bool
	for _, option := range args.Options(arguments) {
		switch option.Letter {
		case 'm':
			g.MaxBytes = args.Number(option.Value) << 20
		case 'I':
			g.ItemSizeMax = args.Bytes(option.Value)
		case 'f':
			g.SlabConfig = option.Value
		case 'n':
			g.ChunkSize = args.Number(option.Value)
		case 'C':
			g.CAS = false
		case 'o':
			for _, sub := range args.Suboptions(option.Value) {
				switch name, value := sub[0], sub[1]; name {
				case "slab_sizes":
					slabSizes = value
				case "slab_chunk_max":
					g.SlabChunkMax = args.Number(value) << 10
					if chunkMaxInBytes {
						g.SlabChunkMax = args.Number(value)
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
		g.SlabConfig, g.hasSizes = slabSizes, true
	}
	if g.ItemSizeMax > 1<<20 && !chunkMaxGiven {
		g.SlabChunkMax = g.SlabPage / 2
	}
	return g
}

// IsBefore reports whether a version such as "1.6.45" is older than one given by its numbers.
func IsBefore(version string, than ...int64) bool {
	for i, part := range strings.SplitN(version, ".", len(than)) {
		if n := args.Number(part); n != than[i] {
			return n < than[i]
		}
	}
	return false
}

// Difference describes for the user the first setting in which two geometries differ,
// and returns "" if memcached can reload the items of one with the other.
func (g Geometry) Difference(to Geometry) string {
	if g.Extstore || to.Extstore {
		return "extstore (-o ext_path), with which memcached keeps no items across a restart"
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
			return fmt.Sprintf("%s, which changed from %v to %v", v.option, v.from, v.to)
		}
	}
	return ""
}

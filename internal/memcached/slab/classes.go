package slab

import (
	"strconv"
	"strings"
)

const (
	// itemHeader is the size of memcached's item structure, in bytes, with every 64-bit
	// processor.
	itemHeader = 48
	chunkAlign = 8
	// maxClasses is the number of slab classes that memcached has at most.
	maxClasses = 63
)

// Classes returns the number of slab classes. To each of them, memcached with a memory
// file (-e) assigns a page when it starts empty. Source: slabs_init in slabs.c.
//
// A single slab size (-o slab_sizes=512) is counted as a growth factor, which gives the
// same number or one more.
func (g Geometry) Classes() int {
	if strings.Contains(g.SlabConfig, "-") {
		// One more for the largest chunk.
		return min(strings.Count(g.SlabConfig, "-")+2, maxClasses)
	}
	factor, err := strconv.ParseFloat(g.SlabConfig, 64)
	if err != nil || factor <= 1 {
		return maxClasses
	}
	classes := 1
	for size := itemHeader + g.ChunkSize; classes < maxClasses && float64(size) < float64(g.SlabChunkMax)/factor; classes++ {
		size = (size + chunkAlign - 1) / chunkAlign * chunkAlign
		size = int64(float64(size) * factor)
	}
	return classes
}

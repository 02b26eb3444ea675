package slab

import (
	"strconv"
	"strings"

	"github.com/memcached-operator/memcached-operator/internal/memcached/args"
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
// file (-e) assigns a page when it starts empty.
func (g Geometry) Classes() int { return len(g.ChunkSizes()) }

// ChunkSizes returns the sizes of the chunks of all slab classes in bytes, of class 1
// first. Source: slabs_init in slabs.c.
func (g Geometry) ChunkSizes() []int64 {
	var sizes []int64
	if g.hasSizes {
		for _, word := range strings.Split(g.SlabConfig, "-") {
			if word != "" && len(sizes) < maxClasses-1 {
				sizes = append(sizes, align(args.Number(word)))
			}
		}
		return append(sizes, g.SlabChunkMax)
	}
	factor, err := strconv.ParseFloat(g.SlabConfig, 64)
	if err != nil {
		factor = 1 // which memcached rejects
	}
	for size := itemHeader + g.ChunkSize; len(sizes) < maxClasses-1 && float64(size) < float64(g.SlabChunkMax)/factor; {
		size = align(size)
		sizes = append(sizes, size)
		size = int64(float64(size) * factor)
	}
	return append(sizes, g.SlabChunkMax)
}

func align(size int64) int64 { return (size + chunkAlign - 1) / chunkAlign * chunkAlign }

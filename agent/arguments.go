package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// parseArguments reads the JSON array of memcached's argument words. No text is
// no arguments: memcached's defaults.
func parseArguments(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var words []string
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	err := decoder.Decode(&words)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the array")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the arguments are not a JSON array of strings: %w", err)
	}
	for _, word := range words {
		if strings.ContainsRune(word, 0) {
			return nil, fmt.Errorf("the argument %q holds a NUL byte", word)
		}
	}
	for _, option := range parseOptions(words) {
		if why, refused := ownOptions[option.letter]; refused {
			return nil, fmt.Errorf("the option -%c is not possible here: %s", option.letter, why)
		}
	}
	return words, nil
}

// ownOptions are those that would take memcached out of the agent's hands.
var ownOptions = map[byte]string{
	'e': "the agent gives the file of the restartable cache",
	'd': "the agent must stay memcached's parent",
	'h': "memcached would print and end",
	'i': "memcached would print and end",
	'V': "memcached would print and end",
}

// geometry is what must be equal for memcached to take up a saved file: the
// checked values of its metadata file. Source: _mc_meta_load_cb in memcached.c.
type geometry struct {
	maxBytes     int64
	chunkSize    int64
	itemSizeMax  int64
	slabChunkMax int64
	slabPage     int64
	// slabConfig is compared as text: "1.25" is not "1.250".
	slabConfig   string
	cas          bool
	slabReassign bool
	// extstore has no line in the file: memcached starts clean whenever it is on.
	extstore bool
}

// geometryOf returns what a version of memcached makes of its arguments. It
// follows main in memcached.c: later options win, and no_modern yields to
// slab_chunk_max.
func geometryOf(words []string, version string) geometry {
	g := geometry{
		maxBytes: 64 << 20, chunkSize: 48, itemSizeMax: 1 << 20, slabChunkMax: 512 << 10, slabPage: 1 << 20,
		slabConfig: "1.25", cas: true, slabReassign: true,
	}
	var slabSizes string
	var chunkMaxGiven bool
	for _, option := range parseOptions(words) {
		switch option.letter {
		case 'm':
			g.maxBytes = number(option.value) << 20
		case 'I':
			g.itemSizeMax = number(option.value) * unit(option.value)
		case 'f':
			g.slabConfig = option.value
		case 'n':
			g.chunkSize = number(option.value)
		case 'C':
			g.cas = false
		case 'o':
			for _, sub := range suboptions(option.value) {
				switch name, value := sub[0], sub[1]; name {
				case "slab_sizes":
					slabSizes = value
				case "slab_chunk_max":
					g.slabChunkMax = number(value) << 10
					if older(version, 1, 6, 24) {
						// The help said KiB always, the program took bytes.
						g.slabChunkMax = number(value)
					}
					chunkMaxGiven = true
				case "no_chunked_items":
					g.slabChunkMax = g.slabPage
				case "slab_reassign":
					g.slabReassign = true
				case "no_slab_reassign":
					g.slabReassign = false
				case "no_modern":
					g.slabReassign = false
					if !chunkMaxGiven {
						g.slabChunkMax = g.slabPage
					}
				case "ext_path":
					g.extstore = true
				}
			}
		}
	}
	if slabSizes != "" {
		g.slabConfig = slabSizes
	}
	if g.itemSizeMax > 1<<20 && !chunkMaxGiven {
		g.slabChunkMax = g.slabPage / 2
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

// difference names the first value in which two geometries differ, with the
// option that sets it; empty when a file of one can be taken up by the other.
func (g geometry) difference(to geometry) string {
	if g.extstore || to.extstore {
		return "extstore (-o ext_path), with which memcached keeps no items over a restart"
	}
	for _, v := range []struct {
		option   string
		from, to any
	}{
		{"the memory limit (-m)", g.maxBytes, to.maxBytes},
		{"the largest item (-I)", g.itemSizeMax, to.itemSizeMax},
		{"the slab sizes (-f or -o slab_sizes)", g.slabConfig, to.slabConfig},
		{"the smallest item (-n)", g.chunkSize, to.chunkSize},
		{"CAS (-C)", g.cas, to.cas},
		{"slab reassignment (-o slab_reassign or no_modern)", g.slabReassign, to.slabReassign},
		{"the largest chunk (-o slab_chunk_max, no_chunked_items or no_modern)", g.slabChunkMax, to.slabChunkMax},
		{"the slab page", g.slabPage, to.slabPage},
	} {
		if v.from != v.to {
			return fmt.Sprintf("%s, %v before and now %v", v.option, v.from, v.to)
		}
	}
	return ""
}

package screen

import (
	"math"
	"slices"
)

const (
	// siblingWindows are those in all of which a shard has to deviate.
	siblingWindows = 3
	// siblingShare of the median, and siblingSpreads times the median of all deviations, is how far a shard has to be off.
	siblingShare, siblingSpreads = 0.2, 5
)

// Deviating returns how far each shard is off the median of the shards in the last window, relative to it, if it deviates in each of the
// last three windows: by more than 20% of the median and more than five median absolute deviations. It is 0 for the others. A window has
// a value of each shard, which is not a number if it isn't known. The alert MemcachedShardDeviates has the same definition. Of two shards,
// none deviates: both are equally far off.
func Deviating(windows [][]float64) []float64 {
	if len(windows) == 0 {
		return nil
	}
	result := make([]float64, len(windows[0]))
	if len(windows) < siblingWindows {
		return result
	}
	for at, window := range windows[len(windows)-siblingWindows:] {
		off := deviations(window)
		for i := range result {
			if at == 0 || result[i] != 0 {
				result[i] = off[i]
			}
		}
	}
	return result
}

// deviations returns those of one window.
func deviations(values []float64) []float64 {
	result := make([]float64, len(values))
	middle := median(values)
	if !(middle > 0) { // or not a number
		return result
	}
	off := make([]float64, len(values))
	for i, x := range values {
		off[i] = math.Abs(x/middle - 1)
	}
	// Most shards may be equal, so that the spread is 0. Their share of the median decides alone then.
	limit := max(siblingShare, siblingSpreads*median(off))
	for i, x := range values {
		if off[i] > limit {
			result[i] = x/middle - 1
		}
	}
	return result
}

// median returns that of the values that are numbers; it isn't a number if there are none.
func median(values []float64) float64 {
	known := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(known) == 0 {
		return math.NaN()
	}
	slices.Sort(known)
	return (known[(len(known)-1)/2] + known[len(known)/2]) / 2
}

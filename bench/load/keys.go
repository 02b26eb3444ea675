package load

import (
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"sort"
)

// exponent of Zipf's law, as in the YCSB benchmark.
const exponent = 0.99

// keys are all keys by rank.
type keys struct {
	names []string
	shard []int
	// upTo is the probability of this rank or a lower one.
	upTo []float64
}

func newKeys(count, shards int) keys {
	k := keys{names: make([]string, count), shard: make([]int, count), upTo: make([]float64, count)}
	sum := 0.0
	for i := range count {
		k.names[i] = fmt.Sprintf("load-%07d", i)
		k.shard[i] = int(crc32.ChecksumIEEE([]byte(k.names[i])) % uint32(shards))
		sum += math.Pow(float64(i+1), -exponent)
		k.upTo[i] = sum
	}
	for i := range k.upTo {
		k.upTo[i] /= sum
	}
	return k
}

func (k keys) pick(r *rand.Rand) int {
	// the last of upTo may round to less than 1
	return min(sort.SearchFloat64s(k.upTo, r.Float64()), len(k.upTo)-1)
}

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
	names    []string
	versions []versions
	// upTo is the probability of this rank or a lower one.
	upTo []float64
}

func newKeys(count int) keys {
	k := keys{names: make([]string, count), versions: make([]versions, count), upTo: make([]float64, count)}
	sum := 0.0
	for i := range count {
		k.names[i] = fmt.Sprintf("load-%07d", i)
		sum += math.Pow(float64(i+1), -exponent)
		k.upTo[i] = sum
	}
	for i := range k.upTo {
		k.upTo[i] /= sum
	}
	return k
}

// modulo returns the shard of a key as gomemcache selects it.
func modulo(key string, shards int) int { return int(crc32.ChecksumIEEE([]byte(key)) % uint32(shards)) }

func (k keys) pick(r *rand.Rand) int {
	// the last of upTo may round to less than 1
	return min(sort.SearchFloat64s(k.upTo, r.Float64()), len(k.upTo)-1)
}

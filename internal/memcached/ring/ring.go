package ring

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// Ring maps keys to shards. It is safe for concurrent use.
type Ring interface {
	// Shard returns the ordinal of the key's shard, which is the index of its server in
	// the list that New got. It doesn't allocate.
	Shard(key []byte) int
}

// Names of the rings, which are those of the API.
const (
	Ketama     = "Ketama"
	Jump       = "Jump"
	Rendezvous = "Rendezvous"
	Modulo     = "Modulo"
)

// New returns a ring over servers, by ordinal, as the clients name them. The default
// port is 11211.
func New(name string, servers []string) (Ring, error) {
	if len(servers) == 0 {
		return nil, errors.New("a ring needs at least one server")
	}
	if err := checkUnique(servers); err != nil {
		return nil, err
	}
	switch name {
	case Modulo:
		return modulo(len(servers)), nil
	case Jump:
		return newJump(servers), nil
	case Rendezvous:
		return newRendezvous(servers), nil
	case Ketama:
		return newKetama(servers), nil
	default:
		return nil, fmt.Errorf("ring %q is not one of Ketama, Jump, Rendezvous and Modulo", name)
	}
}

// Reshuffles reports whether shards that stay exchange keys with each other when the number of servers changes, and do not only get keys
// of those that leave, or lose some to new ones. Ketama has fewer points a server for some numbers.
func Reshuffles(name string, from, to int) bool {
	switch name {
	case Ketama:
		return from > 1 && to > 1 && hashesPerServer(from) != hashesPerServer(to)
	case Modulo:
		return max(from, to)%max(min(from, to), 1) != 0
	}
	return false
}

// Sources returns the ordinals of the shards from which keys come to another one when the number of servers changes; none for one that gets no
// keys.
func Sources(name string, from, to, target int) (found []int) {
	for ordinal := range from {
		none := ordinal < to && target < from || // both stay
			name == Modulo && (ordinal-target)%min(from, to) != 0 // of a multiple
		if ordinal != target && (!none || Reshuffles(name, from, to)) {
			found = append(found, ordinal)
		}
	}
	return found
}

// checkUnique returns an error if two servers have the same name, because clients could
// not distinguish their shards.
func checkUnique(servers []string) error {
	names := make(map[string]int, len(servers))
	for i, server := range servers {
		if first, taken := names[server]; taken {
			return fmt.Errorf("shards %d and %d have the same name %q: the server name must differ from shard to shard", first, i, server)
		}
		names[server] = i
	}
	return nil
}

func hostPort(server string) (host, port string) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return server, defaultPort
	}
	return host, port
}

const defaultPort = "11211"

type modulo uint32

func (m modulo) Shard(key []byte) int {
	return int(crc32.ChecksumIEEE(key) % uint32(m))
}

// jump are the ordinals in the natural order of the servers' names.
type jump []int

func newJump(servers []string) jump {
	named := slices.Clone(servers) // sorting numbers by a function would make the agent larger
	slices.SortFunc(named, compareNatural)
	ordinals := make(jump, len(servers))
	for i, name := range named {
		ordinals[i] = slices.Index(servers, name)
	}
	return ordinals
}

func (j jump) Shard(key []byte) int {
	return j[jumpHash(xxhash.Sum64(key), len(j))]
}

// jumpHash returns a bucket in [0, n). Source: Lamping and Veach, "A Fast,
// Minimal Memory, Consistent Hash Algorithm", 2014.
func jumpHash(key uint64, n int) int64 {
	bucket, next := int64(-1), int64(0)
	for next < int64(n) {
		bucket = next
		key = key*2862933555777941757 + 1
		next = int64(float64(bucket+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return bucket
}

// compareNatural orders names with numbers by the value of the numbers, so that cache-2
// precedes cache-10. It compares runs of digits and runs of other characters; a prefix
// of a name precedes the name.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		var runA, runB string
		runA, a = cutRun(a)
		runB, b = cutRun(b)
		if order := compareRuns(runA, runB); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareRuns(a, b string) int {
	numberA, errA := strconv.Atoi(a)
	numberB, errB := strconv.Atoi(b)
	if errA == nil && errB == nil {
		return cmp.Compare(numberA, numberB)
	}
	return cmp.Compare(a, b)
}

func cutRun(name string) (run, rest string) {
	end := 1
	for end < len(name) && isDigit(name[end]) == isDigit(name[0]) {
		end++
	}
	return name[:end], name[end:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

package ring

import (
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"slices"

	"github.com/cespare/xxhash/v2"

	cachev1alpha1 "github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// Ring tells which shard a key belongs to. It may be used by several goroutines.
type Ring interface {
	// Shard returns the ordinal of the key's shard: the place of its server in the
	// list that New was given. It allocates nothing.
	Shard(key []byte) int
}

// New returns the ring of a name, which is a v1alpha1.Ring, over servers as the
// clients spell them, by ordinal. A server without a port has 11211.
func New(name string, servers []string) (Ring, error) {
	if len(servers) == 0 {
		return nil, errors.New("a ring needs a server at least")
	}
	if err := different(servers); err != nil {
		return nil, err
	}
	switch cachev1alpha1.Ring(name) {
	case cachev1alpha1.RingModulo:
		return modulo(len(servers)), nil
	case cachev1alpha1.RingJump:
		return newJump(servers), nil
	case cachev1alpha1.RingRendezvous:
		return newRendezvous(servers), nil
	case cachev1alpha1.RingKetama:
		return newKetama(servers), nil
	default:
		return nil, fmt.Errorf("ring %q: not one of Ketama, Jump, Rendezvous and Modulo", name)
	}
}

// different returns an error if two servers have one name: their shards would be
// one to the clients.
func different(servers []string) error {
	names := make(map[string]int, len(servers))
	for i, server := range servers {
		if first, taken := names[server]; taken {
			return fmt.Errorf("shards %d and %d have the same name %q: the server name must differ from shard to shard", first, i, server)
		}
		names[server] = i
	}
	return nil
}

// hostPort splits a server's name.
func hostPort(server string) (host, port string) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return server, defaultPort
	}
	return host, port
}

const defaultPort = "11211"

// modulo is a number of servers.
type modulo uint32

func (m modulo) Shard(key []byte) int {
	return int(crc32.ChecksumIEEE(key) % uint32(m))
}

// jump holds the ordinals in the natural order of the servers' names.
type jump []int

func newJump(servers []string) jump {
	ordinals := make(jump, len(servers))
	for i := range ordinals {
		ordinals[i] = i
	}
	slices.SortFunc(ordinals, func(a, b int) int { return compareNaturally(servers[a], servers[b]) })
	return ordinals
}

func (j jump) Shard(key []byte) int {
	return j[jumpHash(xxhash.Sum64(key), len(j))]
}

// jumpHash returns a bucket from 0 up to n. Source: Lamping and Veach, "A Fast,
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

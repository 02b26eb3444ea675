package ring

import (
	"crypto/md5"
	"encoding/binary"
	"slices"
	"strconv"
)

// ketama are the points of the circle, in their order: the place in the upper 32 bits, the shard in the lower ones. Sorting a type
// of its own would make the agent 8 kB larger.
type ketama []uint64

// Points of one MD5, and of one server before rounding.
const (
	pointsPerHash   = md5.Size / 4
	pointsPerServer = 160
)

func newKetama(servers []string) ketama {
	if len(servers) == 1 {
		return ketama{0}
	}
	hashes := hashesPerServer(len(servers))
	points := make(ketama, 0, len(servers)*hashes*pointsPerHash)
	for shard, server := range servers {
		host, port := hostPort(server)
		if port != defaultPort {
			host += ":" + port
		}
		for i := range hashes {
			sum := md5.Sum([]byte(host + "-" + strconv.Itoa(i)))
			for word := range pointsPerHash {
				points = append(points, uint64(binary.LittleEndian.Uint32(sum[4*word:]))<<32|uint64(shard))
			}
		}
	}
	slices.Sort(points)
	return points
}

// hashesPerServer returns 40, or 39 if libmemcached's computation with 32-bit floats
// rounds down. The conversions prevent the compiler from fusing two steps, which rounds
// differently.
func hashesPerServer(servers int) int {
	share := float32(1) / float32(servers)
	share = float32(share * pointsPerServer)
	share = float32(share / pointsPerHash)
	share = float32(share * float32(servers))
	return int(float32(share + 1e-10))
}

func (k ketama) Shard(key []byte) int {
	sum := md5.Sum(key)
	i, _ := slices.BinarySearch(k, uint64(binary.LittleEndian.Uint32(sum[:]))<<32)
	if i == len(k) {
		i = 0 // the circle wraps around
	}
	return int(uint32(k[i]))
}

package ring

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"slices"
	"sort"
	"strconv"
)

type point struct {
	at    uint32
	shard int
}

type ketama []point

// Points of one MD5, and of one server before rounding.
const (
	pointsPerHash   = md5.Size / 4
	pointsPerServer = 160
)

func newKetama(servers []string) ketama {
	if len(servers) == 1 {
		return ketama{{shard: 0}}
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
				points = append(points, point{at: binary.LittleEndian.Uint32(sum[4*word:]), shard: shard})
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.shard, b.shard))
	})
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
	at := binary.LittleEndian.Uint32(sum[:])
	i := sort.Search(len(k), func(i int) bool { return k[i].at >= at })
	if i == len(k) {
		i = 0 // the circle wraps around
	}
	return k[i].shard
}

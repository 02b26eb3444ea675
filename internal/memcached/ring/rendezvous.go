package ring

import (
	"unicode/utf8"
)

type rendezvous []candidate

type candidate struct {
	name string
	// prefix is the hash of "name-", which the key continues.
	prefix murmur
}

func newRendezvous(servers []string) rendezvous {
	candidates := make(rendezvous, len(servers))
	for i, server := range servers {
		host, port := hostPort(server)
		c := candidate{name: host + ":" + port}
		c.prefix.write([]byte(c.name + "-"))
		candidates[i] = c
	}
	return candidates
}

// maxKey is the longest key in bytes (KEY_MAX_LENGTH in memcached.h).
const maxKey = 250

func (r rendezvous) Shard(key []byte) int {
	var buffer [maxKey]byte
	key = hashedForm(key, buffer[:0])
	winner, high := 0, uint32(0)
	for i := range r {
		hash := r[i].prefix
		hash.write(key)
		score := hash.sum()
		if i == 0 || score > high || score == high && r[i].name > r[winner].name {
			winner, high = i, score
		}
	}
	return winner
}

// hashedForm returns the bytes that pymemcache hashes: the lowest eight bits of each
// character of the key, in buffer's memory.
func hashedForm(key, buffer []byte) []byte {
	ascii := true
	for _, b := range key {
		ascii = ascii && b < utf8.RuneSelf
	}
	if ascii || !utf8.Valid(key) {
		return key
	}
	for len(key) > 0 {
		character, size := utf8.DecodeRune(key)
		buffer = append(buffer, byte(character))
		key = key[size:]
	}
	return buffer
}

package ring

import (
	"unicode/utf8"
)

// rendezvous holds what is hashed of each server, by ordinal.
type rendezvous []candidate

type candidate struct {
	name string
	// begun is the hash of "name-", which each key goes on with.
	begun murmur
}

func newRendezvous(servers []string) rendezvous {
	candidates := make(rendezvous, len(servers))
	for i, server := range servers {
		host, port := hostPort(server)
		c := candidate{name: host + ":" + port}
		c.begun.write([]byte(c.name + "-"))
		candidates[i] = c
	}
	return candidates
}

// longestKey that memcached takes, in bytes.
const longestKey = 250

func (r rendezvous) Shard(key []byte) int {
	var room [longestKey]byte
	key = asHashed(key, room[:0])
	winner, high := 0, uint32(0)
	for i := range r {
		hash := r[i].begun
		hash.write(key)
		score := hash.sum()
		if i == 0 || score > high || score == high && r[i].name > r[winner].name {
			winner, high = i, score
		}
	}
	return winner
}

// asHashed returns what pymemcache hashes of a key: it takes text by characters,
// and of each character the lowest eight bits.
func asHashed(key, room []byte) []byte {
	ascii := true
	for _, b := range key {
		ascii = ascii && b < utf8.RuneSelf
	}
	if ascii || !utf8.Valid(key) {
		return key
	}
	for len(key) > 0 {
		character, size := utf8.DecodeRune(key)
		room = append(room, byte(character))
		key = key[size:]
	}
	return room
}

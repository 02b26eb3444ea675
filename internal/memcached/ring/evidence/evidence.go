// Package evidence finds which ring and which names of the servers the clients of a cache use, by the shards that keys are on.
//
// A client that uses a ring looks for all its keys where the ring says. By chance, a key is there with a probability of one in the
// number of shards. What is on another shard was stored by a client that uses another ring or other names, or before the number of
// shards changed.
package evidence

import (
	"context"
	"math"
	"net"
	"slices"
	"strings"

	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
)

const (
	// leastPlaced is the least share of all keys that the first group has placed, and leastOther that of a second one.
	leastPlaced, leastOther = 0.2, 0.05
	// leastExplained is the least share that a second group has of the keys that the first one doesn't explain. By chance, it is
	// within 0.05 of 0, also where these keys are those of a former list of servers.
	leastExplained = 0.2
	// mostKeys bounds how many keys are compared. What is found depends on how many there are, and not on the number of shards, by which
	// the time for a key increases.
	mostKeys = 16_000
	// mostFormer bounds how many former lists of servers are compared.
	mostFormer = 8
	// significance is how many standard deviations a group is above chance.
	significance = 5
)

// Rings are those that are compared.
var Rings = []string{ring.Ketama, ring.Rendezvous, ring.Jump, ring.Modulo}

// StatusServers is the name of the spelling of the status.
const StatusServers = "status.servers"

// Spelling is how clients may name the servers.
type Spelling struct {
	Name string
	// Template is what serverNameTemplate has to be for it; empty if it is the default, or if no template says it.
	Template string
	// Servers by ordinal.
	Servers []string
}

// Spellings returns the names of the servers that clients in the cluster can resolve, from those of the status.
func Spellings(memcached, namespace string, servers []string) []Spelling {
	all := []Spelling{{Name: StatusServers, Servers: servers}}
	for _, c := range []struct{ name, template string }{
		{"without the domain of the cluster", "{shard}.{namespace}.svc"},
		{"with the namespace only", "{shard}.{namespace}"},
		{"without the namespace", "{shard}"},
		{"SRV records", "{shard}.{memcached}.{rest}"},
	} {
		s := Spelling{Name: c.name}
		for _, server := range servers {
			host, port, err := net.SplitHostPort(server)
			shard, rest, ok := strings.Cut(host, ".")
			if err != nil || !ok {
				break
			}
			s.Template = net.JoinHostPort(strings.NewReplacer("{memcached}", memcached, "{rest}", rest).Replace(c.template), port)
			s.Servers = append(s.Servers, strings.NewReplacer("{shard}", shard, "{namespace}", namespace).Replace(s.Template))
		}
		all = append(all, s)
	}
	return all
}

// Group is clients that use the same ring over the same names.
type Group struct {
	Ring string `json:"ring"`
	// Spellings are all that place the keys in the same way.
	Spellings []string `json:"spellings"`
	// Found is the share of the keys that are where these clients look for them.
	Found float64 `json:"found"`
	// Placed estimates the share that is there for this reason, and not by chance.
	Placed float64 `json:"placed"`
}

// Answer is what the keys show.
type Answer struct {
	// Keys is how many were compared.
	Keys int `json:"keys"`
	// Groups of clients, the largest one first. None means that it is unclear, and two that they disagree.
	Groups []Group `json:"groups,omitempty"`
}

// candidate is a ring over the servers in some spellings.
type candidate struct {
	ring      string
	servers   []string
	spellings []string
	// shards are those of the keys.
	shards []int32
}

// Find returns which groups of clients have placed the keys of the shards, which are by ordinal. The error is that of the context.
func Find(ctx context.Context, keys [][][]byte, spellings []Spelling) (Answer, error) {
	all := &sample{keys: make([][][]byte, len(keys))}
	for shard, of := range keys {
		all.keys[shard] = spread(of, mostKeys/len(keys))
		all.actual = append(all.actual, slices.Repeat([]int32{int32(shard)}, len(all.keys[shard]))...)
	}
	answer := Answer{Keys: len(all.actual)}
	candidates := all.candidates(ctx, spellings)
	left := make([]int, answer.Keys)
	for i := range left {
		left[i] = i
	}
	first, placed, clear := all.best(candidates, left)
	if !clear || placed < leastPlaced {
		return answer, ctx.Err()
	}
	answer.add(all, first, placed)
	left = all.not(left, first)
	explained := []*candidate{first}
	if former, share, clear := all.best(all.former(ctx, first), left, explained...); clear && share >= leastExplained {
		left, explained = all.not(left, former), append(explained, former)
	}
	second, share, clear := all.best(candidates, left, explained...)
	if placed := share * float64(len(left)) / float64(answer.Keys); clear && share >= leastExplained && placed >= leastOther {
		answer.add(all, second, placed/math.Pow(1-1/float64(len(keys)), float64(len(explained))))
	}
	return answer, ctx.Err()
}

// spread returns at most so many of some keys, evenly spaced.
func spread(keys [][]byte, most int) [][]byte {
	if len(keys) <= most {
		return keys
	}
	some := make([][]byte, most)
	for i := range some {
		some[i] = keys[i*len(keys)/most]
	}
	return some
}

func (a *Answer) add(s *sample, c *candidate, placed float64) {
	found := 0
	for i, shard := range c.shards {
		if shard == s.actual[i] {
			found++
		}
	}
	a.Groups = append(a.Groups, Group{Ring: c.ring, Spellings: c.spellings, Found: float64(found) / float64(len(s.actual)), Placed: min(placed, 1)})
}

// sample is the keys of all shards, and the shard that each is on.
type sample struct {
	keys   [][][]byte
	actual []int32
}

// not returns those of some keys that are on another shard than a candidate says.
func (s *sample) not(keys []int, c *candidate) (left []int) {
	for _, i := range keys {
		if c.shards[i] != s.actual[i] {
			left = append(left, i)
		}
	}
	return left
}

// candidates returns those that place a key differently; fewer if the context is done.
func (s *sample) candidates(ctx context.Context, spellings []Spelling) (all []*candidate) {
	for _, name := range Rings {
		for _, spelling := range spellings {
			if len(spelling.Servers) != len(s.keys) || ctx.Err() != nil {
				continue
			}
			if c := s.candidate(name, spelling); c != nil && !c.isAmong(all) {
				all = append(all, c)
			}
		}
	}
	return all
}

// candidate returns nil if there is no such ring.
func (s *sample) candidate(name string, spelling Spelling) *candidate {
	r, err := ring.New(name, spelling.Servers)
	if err != nil {
		return nil
	}
	c := &candidate{ring: name, servers: spelling.Servers, spellings: []string{spelling.Name}, shards: make([]int32, 0, len(s.actual))}
	for _, of := range s.keys {
		for _, key := range of {
			c.shards = append(c.shards, int32(r.Shard(key)))
		}
	}
	return c
}

// former returns the ring of a candidate over the first servers only, with which clients placed keys before shards were added.
func (s *sample) former(ctx context.Context, c *candidate) (all []*candidate) {
	for n := len(c.servers) - 1; n > max(0, len(c.servers)-mostFormer) && ctx.Err() == nil; n-- {
		all = append(all, s.candidate(c.ring, Spelling{Servers: c.servers[:n]}))
	}
	return all
}

// isAmong adds the spelling to an earlier candidate that places all keys in the same way, if there is one.
func (c *candidate) isAmong(earlier []*candidate) bool {
	for _, e := range earlier {
		if e.ring == c.ring && slices.Equal(e.shards, c.shards) {
			e.spellings = append(e.spellings, c.spellings...)
			return true
		}
	}
	return false
}

// best returns the candidate that explains the largest share of some keys beyond chance, and whether that can't be chance. None of the
// keys is where those say that are excluded.
func (s *sample) best(all []*candidate, keys []int, excluded ...*candidate) (found *candidate, explained float64, clear bool) {
	n := float64(len(keys))
	loads := make([]float64, len(s.keys)) // the share of these keys on each shard
	for _, i := range keys {
		loads[s.actual[i]] += 1 / n
	}
	for _, c := range all {
		hits, chance := 0.0, 0.0
		var apart []float64
		if len(s.keys) == 2 && len(excluded) > 0 {
			apart = c.apart(excluded[0])
		}
		for _, i := range keys {
			if c.shards[i] == s.actual[i] {
				hits++
			}
			if apart != nil {
				chance += apart[excluded[0].shards[i]]
			} else {
				chance += c.chance(i, loads, excluded)
			}
		}
		if chance >= n {
			continue // all keys are on one shard
		}
		if share := (hits - chance) / (n - chance); found == nil || share > explained {
			found, explained = c, share
			clear = hits-chance > significance*math.Sqrt(chance*(1-chance/n))
		}
	}
	return found, explained, clear
}

// chance returns the probability that a key is where a candidate says, if its shard only depends on the loads.
func (c *candidate) chance(key int, loads []float64, excluded []*candidate) float64 {
	possible := 1.0
	for i, e := range excluded {
		at := e.shards[key]
		if at == c.shards[key] {
			return 0
		}
		if i == 0 || at != excluded[0].shards[key] {
			possible -= loads[at]
		}
	}
	return min(loads[c.shards[key]]/max(possible, loads[c.shards[key]]), 1)
}

// apart returns the share of the keys of each of two shards that are on the other one according to a candidate. Of two shards, a key
// that isn't on one is on the other: a group is found by which keys these are.
func (c *candidate) apart(from *candidate) []float64 {
	var all, other [2]float64
	for i, shard := range from.shards {
		all[shard]++
		if c.shards[i] != shard {
			other[shard]++
		}
	}
	return []float64{other[0] / max(all[0], 1), other[1] / max(all[1], 1)}
}

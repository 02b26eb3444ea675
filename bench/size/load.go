package size

import (
	"math"
	"math/rand/v2"
	"sort"
)

const (
	minute = 60
	day    = 24 * 3600
)

// load generates the requests of clients. Two with the same seed are equal.
type load struct {
	kind    int
	random  *rand.Rand
	shape   []float64 // the cumulated popularity
	keys    int       // that clients read again
	rate    float64   // requests a minute
	ttl     int32
	scan    int // keys of a nightly scan
	repeats bool
	swing   float64
	fresh   int
	all     int
}

var kinds = [...]string{"Zipf", "nightly scans", "daily waves", "bimodal weeks", "bound by a TTL", "growing"}

const (
	kindZipf = iota
	kindScan
	kindDaily
	kindWeek
	kindTTL
	kindGrowing
)

const maxDays = 7*atMost + 1

func newLoad(kind int, seed uint64) *load {
	r := rand.New(rand.NewPCG(seed, uint64(kind))) //nolint:gosec // runs are repeatable
	l := &load{kind: kind, random: r, keys: 3000 + r.IntN(7000), rate: 80 + 120*r.Float64()}
	exponent := 0.7 + 0.5*r.Float64()
	l.shape = make([]float64, l.keys)
	sum := 0.0
	for i := range l.shape {
		sum += math.Pow(float64(i+1), -exponent)
		l.shape[i] = sum
	}
	l.all = l.keys
	switch kind {
	case kindScan:
		l.scan, l.repeats = l.keys/5+r.IntN(l.keys/2), r.IntN(2) == 0
		l.all += l.scan * maxDays
	case kindDaily:
		l.swing = 0.5 + 0.4*r.Float64()
		l.all = 2 * l.keys
	case kindWeek:
		l.all = 2 * l.keys
	case kindTTL:
		l.ttl = int32(600 * math.Exp(r.Float64()*math.Log(36)))
	case kindGrowing:
		l.fresh = l.keys / (10 + r.IntN(40)) // new keys a day
		l.all += l.fresh * maxDays
	}
	return l
}

func (l *load) draw() int {
	return min(sort.SearchFloat64s(l.shape, l.random.Float64()*l.shape[len(l.shape)-1]), l.keys-1)
}

// minute appends the keys that clients request in a minute.
func (l *load) minute(at int32, to []int32) []int32 {
	today, second := int(at/day), int(at%day)
	rate := l.rate
	wave := math.Sin(2 * math.Pi * float64(second) / day)
	if l.kind == kindDaily {
		rate *= 1 + l.swing*wave
	}
	for range int(rate + l.random.Float64()) {
		key := l.draw()
		switch l.kind {
		case kindDaily: // half of the requests are for keys of the day or of the night
			if key%2 == 0 && wave < 0 {
				key += l.keys
			}
		case kindWeek:
			if key%3 > 0 && today%7 >= 5 {
				key += l.keys
			}
		case kindGrowing: // the newest keys are read most, and the catalog grows
			count := l.keys + l.fresh*today + int(float64(l.fresh)*float64(second)/day)
			key = count - 1 - key*count/l.keys
		}
		to = append(to, int32(key))
	}
	if from := 2 * 3600; l.kind == kindScan && second >= from && second < from+3600 {
		n := (second - from) / minute
		first := l.keys
		if !l.repeats {
			first += today * l.scan
		}
		for key := n * l.scan / 60; key < (n+1)*l.scan/60; key++ {
			to = append(to, int32(first+key))
		}
	}
	return to
}

// stack measures the hit ratio of an exact LRU of every size at once, by the distances of its stack.
type stack struct {
	tree    []int32 // how many keys were used last at each place
	last    []int32
	expires []int32
	keyAt   []int32
	at      int32
	live    int32
	hits    []float64 // by distance
	total   float64
	keys    []int32
}

func newStack(keys int) *stack {
	n := 1 << 18
	for n < 4*keys {
		n *= 2
	}
	return &stack{tree: make([]int32, n+1), last: make([]int32, keys), expires: make([]int32, keys), keyAt: make([]int32, n+1), hits: make([]float64, keys+2)}
}

func (s *stack) add(place, by int32) {
	for ; place < int32(len(s.tree)); place += place & -place {
		s.tree[place] += by
	}
	s.live += by
}

func (s *stack) until(place int32) (n int32) {
	for ; place > 0; place -= place & -place {
		n += s.tree[place]
	}
	return n
}

func (s *stack) compact() {
	n := int32(0)
	for place := int32(1); place <= s.at; place++ {
		if key := s.keyAt[place]; key != 0 && s.last[key-1] == place {
			n++
			s.keyAt[n] = key
			s.last[key-1] = n
		}
	}
	clear(s.tree)
	clear(s.keyAt[n+1:])
	s.at, s.live = n, 0
	for place := int32(1); place <= n; place++ {
		s.add(place, 1)
	}
}

// expire forgets what has expired.
func (s *stack) expire(now int32) {
	for key, place := range s.last {
		if place != 0 && s.expires[key] != 0 && s.expires[key] <= now {
			s.add(place, -1)
			s.keyAt[place], s.last[key] = 0, 0
		}
	}
}

func (s *stack) request(key, now, ttl int32, counts bool) {
	if int(s.at) >= len(s.tree)-2 {
		s.compact()
	}
	place := s.last[key]
	hit := place != 0 && (s.expires[key] == 0 || s.expires[key] > now)
	if place != 0 {
		if counts && hit {
			s.hits[s.live-s.until(place)+1]++
		}
		s.add(place, -1)
		s.keyAt[place] = 0
	}
	if counts && hit {
		s.total++
	}
	if !hit && ttl > 0 {
		s.expires[key] = now + ttl
	}
	s.at++
	s.last[key], s.keyAt[s.at] = s.at, key+1
	s.add(s.at, 1)
}

// minute requests the keys of a minute, and returns them until its next call.
func (s *stack) minute(l *load, now int32, counts bool) []int32 {
	if l.ttl > 0 {
		s.expire(now)
	}
	s.keys = l.minute(now, s.keys[:0])
	for _, key := range s.keys {
		s.request(key, now, l.ttl, counts)
	}
	return s.keys
}

// lost returns the share of the hits that a number of items doesn't have.
func (s *stack) lost(items int) float64 {
	sum := 0.0
	for _, hits := range s.hits[:min(items+1, len(s.hits))] {
		sum += hits
	}
	return 1 - sum/s.total
}

// needed returns the least number of items with most of the hits.
func (s *stack) needed() int {
	sum := 0.0
	for n, hits := range s.hits {
		if sum += hits; sum >= kept*s.total {
			return n
		}
	}
	return len(s.hits)
}

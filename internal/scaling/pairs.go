package scaling

import (
	"encoding/binary"

	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// side is one of the two owners of a key.
type side int

const (
	theirs side = iota // the source's
	ours               // the target's
)

func (s side) other() side { return 1 - s }

// state is what the last scan of one side has shown of a key, compared with its pair. Without a pair, what is there is changed.
type state uint32

const (
	gone state = iota
	same
	changed
)

// pair is what a target knows about a key that it shares with a source: CAS and expiry of the items when they were equal, by side, each
// in what its memcached uses. Without a pair, the own CAS is 0. That of the source is then 0 too, or of what can't be copied.
type pair struct {
	cas     [2]uint64
	expires [2]uint32
	state   [2]state
	// seen is whether the scan that runs has shown the key.
	seen [2]bool
}

func (p pair) exists() bool { return p.cas[ours] != 0 }

// shown is the pair after a scan has shown this.
func (p pair) shown(at side, cas uint64, expires uint32) pair {
	p.seen[at], p.state[at] = true, same
	if p.cas[at] != cas || differ(p.expires[at], min(expires, longestExpiry)) {
		p.state[at] = changed
	}
	return p
}

// tolerance is the difference between two readings of an expiry, in seconds.
const tolerance = 2

// differ compares two expiries of the same memcached.
func differ(a, b uint32) bool {
	return (a == 0) != (b == 0) || max(a, b)-min(a, b) > tolerance
}

const (
	slotSize = 8 + 2*8 + 2*4
	// The expiries are seconds since the start of memcached. Their highest bits are the state, and whether the key is seen.
	longestExpiry = 1<<29 - 1
	stateShift    = 29
	bitSeen       = 1 << 31
)

// pairs are those with one source. Each key that a scan of the source has shown has a slot.
type pairs struct{ *peerlink.Table }

// pairsSize includes the second table of compact.
func pairsSize(items int64) int64 { return 2 * peerlink.TableSize(items, slotSize) }

func newPairs(size int64) (*pairs, error) {
	table, err := peerlink.NewTable(size/2, slotSize)
	if err != nil {
		return nil, err
	}
	return &pairs{table}, nil
}

func (t *pairs) get(at peerlink.Slot) (p pair) {
	slot := t.Memory[at+8 : at+slotSize]
	for side := range p.cas {
		p.cas[side] = binary.NativeEndian.Uint64(slot[8*side:])
		bits := binary.NativeEndian.Uint32(slot[16+4*side:])
		p.expires[side], p.state[side], p.seen[side] = bits&longestExpiry, state(bits&^bitSeen>>stateShift), bits&bitSeen != 0
	}
	return p
}

func (t *pairs) put(at peerlink.Slot, p pair) {
	slot := t.Memory[at+8 : at+slotSize]
	for side := range p.cas {
		bits := min(p.expires[side], longestExpiry) | uint32(p.state[side])<<stateShift
		if p.seen[side] {
			bits |= bitSeen
		}
		binary.NativeEndian.PutUint64(slot[8*side:], p.cas[side])
		binary.NativeEndian.PutUint32(slot[16+4*side:], bits)
	}
}

// find returns what is known about a key, and false for a key without a slot.
func (t *pairs) find(hash uint64) (p pair, found bool) {
	at, found := t.Find(hash)
	if found {
		p = t.get(at)
	}
	return p, found
}

// set changes what is known about a key. It returns false if there is no slot for another one.
func (t *pairs) set(hash uint64, p pair) bool {
	at, found := t.Find(hash)
	if !found && !t.Take(at, hash) {
		return false
	}
	t.put(at, p)
	return true
}

// each visits what is known about each key, and notes what visit returns.
func (t *pairs) each(visit func(hash uint64, p pair) pair) {
	for at := peerlink.Slot(0); int(at) < len(t.Memory); at += slotSize {
		if hash := t.Hash(at); hash != 0 {
			t.put(at, visit(hash, t.get(at)))
		}
	}
}

// end notes at the end of a scan of one side that it doesn't have what the scan hasn't shown. With forget, such keys are no pairs. It
// returns the number of pairs.
func (t *pairs) end(at side, forget bool) (n int64) {
	t.each(func(_ uint64, p pair) pair {
		if !p.seen[at] {
			p.state[at] = gone
		}
		p.seen[at] = false
		switch {
		case p.state == [2]state{gone, gone}:
			p = pair{}
		case p.state[at] == gone && forget:
			p.cas[ours] = 0
		}
		if p.exists() {
			n++
		}
		return p
	})
	return n
}

// compact makes room in a table that is full of keys that neither side has any more.
func (t *pairs) compact() error {
	if !t.Full() {
		return nil
	}
	former := *t
	table, err := peerlink.NewTable(int64(len(t.Memory)), slotSize)
	if err != nil {
		return err
	}
	t.Table = table
	former.each(func(hash uint64, p pair) pair {
		if p != (pair{}) {
			t.set(hash, p)
		}
		return p
	})
	return former.Close()
}

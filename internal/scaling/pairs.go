package scaling

import (
	"encoding/binary"

	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// pair is what a target knows about a key that it shares with a source. Without a pair, the CASes are 0.
type pair struct {
	// CAS and expiry of the items when they were equal, each in what its memcached uses.
	source, target               uint64
	sourceExpires, targetExpires uint32
	// shown is whether the sweep has shown the source's item, changed whether that isn't the one of the pair, seen whether
	// the target has an item.
	shown, changed, seen bool
}

const (
	slotSize = 8 + 8 + 8 + 4 + 4
	// Bits of the expiries, which are seconds since the start of memcached.
	bitShown, bitChanged = 1 << 31, 1 << 30
	bitSeen              = 1 << 31
	expiryBits           = 1<<30 - 1
)

// pairs are those with one source.
type pairs struct{ *peerlink.Table }

// pairsSize includes the second table of compact.
func pairsSize(items int64) int64 { return 2 * peerlink.TableSize(items, slotSize) }

func newPairs(size int64) (*pairs, error) {
	table, err := peerlink.NewTable(size/2, slotSize)
	return &pairs{table}, err
}

func (t *pairs) get(at peerlink.Slot) pair {
	slot := t.Memory[at+8 : at+slotSize]
	of, to := binary.NativeEndian.Uint32(slot[16:]), binary.NativeEndian.Uint32(slot[20:])
	return pair{binary.NativeEndian.Uint64(slot), binary.NativeEndian.Uint64(slot[8:]), of & expiryBits, to & expiryBits,
		of&bitShown != 0, of&bitChanged != 0, to&bitSeen != 0}
}

func (t *pairs) put(at peerlink.Slot, p pair) {
	of, to := p.sourceExpires&expiryBits, p.targetExpires&expiryBits
	for bit, set := range map[uint32]bool{bitShown: p.shown, bitChanged: p.changed} {
		if set {
			of |= bit
		}
	}
	if p.seen {
		to |= bitSeen
	}
	slot := t.Memory[at+8 : at+slotSize]
	binary.NativeEndian.PutUint64(slot, p.source)
	binary.NativeEndian.PutUint64(slot[8:], p.target)
	binary.NativeEndian.PutUint32(slot[16:], of)
	binary.NativeEndian.PutUint32(slot[20:], to)
}

// find returns the slot of a key, also if it is new. It returns false if there is no room for it.
func (t *pairs) find(hash uint64) (at peerlink.Slot, ok bool) {
	at, found := t.Find(hash)
	return at, found || t.Take(at, hash)
}

// update changes what is known about a key that has a slot.
func (t *pairs) update(hash uint64, change func(*pair)) {
	if at, found := t.Find(hash); found {
		p := t.get(at)
		change(&p)
		t.put(at, p)
	}
}

// sweep calls visit for each key, after which all marks are removed, and returns the number of pairs.
func (t *pairs) sweep(visit func(hash uint64, p *pair)) (n int64) {
	for at := peerlink.Slot(0); at < peerlink.Slot(len(t.Memory)); at += slotSize {
		hash := t.Hash(at)
		if hash == 0 {
			continue
		}
		p := t.get(at)
		visit(hash, &p)
		if p.shown, p.changed, p.seen = false, false, false; p.target != 0 {
			n++
		}
		t.put(at, p)
	}
	return n
}

// clear forgets all pairs and marks.
func (t *pairs) clear() { t.sweep(func(_ uint64, p *pair) { *p = pair{} }) }

// compact makes room in a table that is full of keys that are no pairs any more. No marks remain.
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
	former.sweep(func(hash uint64, p *pair) {
		if p.target == 0 {
			return
		}
		if at, ok := t.find(hash); ok {
			t.put(at, *p)
		}
	})
	return former.Close()
}

package handover

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"
	"syscall"

	"github.com/cespare/xxhash/v2"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
)

// keyHash is computed by both sides.
func keyHash(seed uint64, key []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	_, _ = d.Write(key)
	return max(d.Sum64(), 1) // 0 is a free slot
}

// hasher computes hashes of contents. They have a random key, so that no client can
// construct two contents with the same hash. They never leave the process.
type hasher struct {
	h maphash.Hash
	// cas lets a write of an equal value be a change.
	cas bool
}

func newHasher() *hasher {
	h := &hasher{}
	h.h.SetSeed(maphash.MakeSeed())
	return h
}

func (h *hasher) content(item *memfile.Item) uint64 {
	var head [10]byte
	binary.NativeEndian.PutUint32(head[:], item.Flags)
	binary.NativeEndian.PutUint32(head[4:], item.Expires)
	head[8] = byte(len(item.Key))
	if item.Binary {
		head[9] = 1
	}
	h.h.Reset()
	_, _ = h.h.Write(head[:])
	_, _ = h.h.Write(item.Key)
	_, _ = h.h.Write(item.Value)
	if h.cas {
		_, _ = h.h.Write(binary.NativeEndian.AppendUint64(nil, item.CAS))
	}
	return h.h.Sum64()
}

const (
	slotSize = 16
	// maxLoad is the fraction of slots that are used, at most.
	maxLoad = 0.75
	// spareItems are slots for items that appear during the handover, as a fraction.
	spareItems = 0.25
	minItems   = 1 << 10

	// marked is the bit of a content hash that is set once the current pass has visited
	// its key.
	marked = 1
	// absent is the content of a key that the target does not have anymore.
	absent = 0
)

// tableSize returns the bytes of a table for so many items, and for some that are created later.
func tableSize(items int64) int64 {
	return slotSize * int64(float64(max(items, minItems))*(1+spareItems)/maxLoad)
}

// table maps key hashes to the hashes of the contents that the target has. It is flat
// and doesn't grow: a key for which there is no slot is sent in the end only. Its memory is outside of
// Go's heap, which the garbage collector would let grow to twice its size.
type table struct {
	memory []byte
	slots  uint64
	free   int64 // slots that may still be used
}

func newTable(size int64) (*table, error) {
	slots := uint64(size / slotSize)
	memory, err := syscall.Mmap(-1, 0, int(slots*slotSize), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("allocating %d bytes for hashes: %w", size, err)
	}
	return &table{memory: memory, slots: slots, free: int64(float64(slots) * maxLoad)}, nil
}

func (t *table) close() error { return syscall.Munmap(t.memory) }

// slot is the position of a key in the memory.
type slot uint64

// find returns the slot of a key hash, or the free one that it would get.
func (t *table) find(hash uint64) (at slot, found bool) {
	for i, _ := bits.Mul64(hash, t.slots); ; {
		at = slot(i * slotSize)
		switch binary.NativeEndian.Uint64(t.memory[at:]) {
		case hash:
			return at, true
		case 0:
			return at, false
		}
		if i++; i == t.slots {
			i = 0
		}
	}
}

func (t *table) content(at slot) uint64 { return binary.NativeEndian.Uint64(t.memory[at+8:]) }
func (t *table) setContent(at slot, content uint64) {
	binary.NativeEndian.PutUint64(t.memory[at+8:], content)
}

// stored is the form in which a content hash is stored: marked, and not absent.
func stored(content uint64) uint64 { return content | marked | 2 }

// unchanged marks the key of a slot if the target has this content.
func (t *table) unchanged(at slot, content uint64) bool {
	if t.content(at)|marked != stored(content) {
		return false
	}
	t.setContent(at, stored(content))
	return true
}

// put stores and marks the content that the target gets. It returns false if there is no
// room for another key.
func (t *table) put(at slot, found bool, hash, content uint64) bool {
	if !found {
		if t.free == 0 {
			return false
		}
		t.free--
		binary.NativeEndian.PutUint64(t.memory[at:], hash)
	}
	t.setContent(at, stored(content))
	return true
}

// sweep removes all marks. With removed, it calls that for each key that the target has and that
// was not marked, after which the key is absent.
func (t *table) sweep(removed func(hash uint64) error) error {
	for at := slot(0); at < slot(len(t.memory)); at += slotSize {
		switch content := t.content(at); {
		case content == absent:
		case content&marked != 0:
			t.setContent(at, content&^marked)
		case removed != nil:
			t.setContent(at, absent)
			if err := removed(binary.NativeEndian.Uint64(t.memory[at:])); err != nil {
				return err
			}
		}
	}
	return nil
}

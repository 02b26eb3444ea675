package peerlink

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"syscall"

	"github.com/cespare/xxhash/v2"
)

// KeyHash is computed by both sides. It is never 0.
func KeyHash(seed uint64, key []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	_, _ = d.Write(key)
	return max(d.Sum64(), 1) // 0 is a free slot
}

const (
	// maxLoad is the fraction of slots that are used, at most.
	maxLoad = 0.85
	// spareItems are slots for items that appear later, as a fraction.
	spareItems = 0.25
	minItems   = 1 << 10
)

// TableSize returns the bytes of a table for so many items, and for some that are created later.
func TableSize(items, slotSize int64) int64 {
	return slotSize * int64(float64(max(items, minItems))*(1+spareItems)/maxLoad)
}

// Table has a slot for each key hash, which is its first 8 bytes. It is flat and doesn't grow. Its memory is outside of
// Go's heap, which the garbage collector would let grow to twice its size.
type Table struct {
	// Memory has the slots, one after the other.
	Memory          []byte
	slots, slotSize uint64
	free            int64 // slots that may still be used
}

// NewTable returns an empty table. All its memory counts as used from then on, so that another one does not get it.
func NewTable(size, slotSize int64) (*Table, error) {
	slots := size / slotSize
	memory, err := syscall.Mmap(-1, 0, int(slots*slotSize), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("allocating %d bytes for hashes: %w", size, err)
	}
	return &Table{Memory: memory, slots: uint64(slots), slotSize: uint64(slotSize), free: int64(float64(slots) * maxLoad)}, nil
}

// Close frees the memory.
func (t *Table) Close() error { return syscall.Munmap(t.Memory) }

// Slot is the position of a key in the memory.
type Slot uint64

// Find returns the slot of a key hash, or the free one that it would get.
func (t *Table) Find(hash uint64) (at Slot, found bool) {
	for i, _ := bits.Mul64(hash, t.slots); ; {
		at = Slot(i * t.slotSize)
		switch t.Hash(at) {
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

// Hash returns the key hash of a slot, 0 of a free one.
func (t *Table) Hash(at Slot) uint64 { return binary.NativeEndian.Uint64(t.Memory[at:]) }

// Full returns whether there is no room for another key.
func (t *Table) Full() bool { return t.free == 0 }

// Take lets a key hash have the free slot that Find returned. It returns false if there is no room for another key.
func (t *Table) Take(at Slot, hash uint64) bool {
	if t.Full() {
		return false
	}
	t.free--
	binary.NativeEndian.PutUint64(t.Memory[at:], hash)
	return true
}

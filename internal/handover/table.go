package handover

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

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

// content returns an error for an item that memcached changes at the same time.
func (h *hasher) content(item *memfile.Item) (uint64, error) {
	h.begin(item)
	err := item.EachPart(func(part []byte) error {
		_, err := h.h.Write(part)
		return err
	})
	return h.h.Sum64(), err
}

// begin adds all but the value.
func (h *hasher) begin(item *memfile.Item) {
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
	if h.cas {
		_, _ = h.h.Write(binary.NativeEndian.AppendUint64(nil, item.CAS))
	}
}

const (
	slotSize = 16

	// marked is the bit of a content hash that is set once the current pass has visited
	// its key.
	marked = 1
	// absent is the content of a key that the target does not have anymore.
	absent = 0
)

// tableSize returns the bytes of a table for so many items, and for some that are created later.
func tableSize(items int64) int64 { return peerlink.TableSize(items, slotSize) }

// table maps key hashes to the hashes of the contents that the target has. A key for which there is no slot is sent in the end only.
type table struct{ *peerlink.Table }

func newTable(size int64) (*table, error) {
	slots, err := peerlink.NewTable(size, slotSize)
	if err != nil {
		return nil, err
	}
	return &table{slots}, nil
}

type slot = peerlink.Slot

func (t *table) content(at slot) uint64 { return binary.NativeEndian.Uint64(t.Memory[at+8:]) }
func (t *table) setContent(at slot, content uint64) {
	binary.NativeEndian.PutUint64(t.Memory[at+8:], content)
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
	if !found && !t.Take(at, hash) {
		return false
	}
	t.setContent(at, stored(content))
	return true
}

// sweep removes all marks. With removed, it calls that for each key that the target has and that
// was not marked, after which the key is absent.
func (t *table) sweep(removed func(hash uint64) error) error {
	for at := slot(0); at < slot(len(t.Memory)); at += slotSize {
		switch content := t.content(at); {
		case content == absent:
		case content&marked != 0:
			t.setContent(at, content&^marked)
		case removed != nil:
			t.setContent(at, absent)
			if err := removed(t.Hash(at)); err != nil {
				return err
			}
		}
	}
	return nil
}

package ring

import (
	"encoding/binary"
	"math/bits"
)

// murmur is the 32-bit MurmurHash3 with seed 0 of the bytes written so far. A copy is
// independent. Source: Austin Appleby's MurmurHash3_x86_32.
type murmur struct {
	state  uint32
	length uint32
	// tail contains the last length%4 bytes, the first one in the lowest bits.
	tail uint32
}

func (m *murmur) write(b []byte) {
	shift := m.length % 4 * 8
	m.length += uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		word := binary.LittleEndian.Uint32(b)
		m.mix(m.tail | word<<shift)
		m.tail = word >> (32 - shift) // 0 for a shift of 32
	}
	for _, c := range b {
		m.tail |= uint32(c) << shift
		if shift += 8; shift == 32 {
			m.mix(m.tail)
			m.tail, shift = 0, 0
		}
	}
}

func (m *murmur) mix(word uint32) {
	m.state ^= scramble(word)
	m.state = bits.RotateLeft32(m.state, 13)*5 + 0xe6546b64
}

func scramble(word uint32) uint32 {
	return bits.RotateLeft32(word*0xcc9e2d51, 15) * 0x1b873593
}

func (m *murmur) sum() uint32 {
	h := m.state ^ scramble(m.tail) ^ m.length
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

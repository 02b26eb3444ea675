package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

// The bounds of format version 1. Who reads believes nothing beyond them.
const (
	// MaxChunk is the most bytes of a chunk, uncompressed.
	MaxChunk = 4 << 20
	// filled is when a chunk is written. Smaller ones would be more objects, larger ones
	// more memory: each shard that is on its way has some three.
	filled = 2 << 20
	// maxStored is the most that compression makes of it: zstd adds three bytes to
	// each block of 128 KiB that it cannot compress, and a head and an end.
	maxStored = MaxChunk + MaxChunk/256 + 1<<10
	// MaxWhole is the largest value in bytes that is never divided between chunks.
	MaxWhole = 1 << 20
	// maxHead is the most bytes of a record before its value.
	maxHead = 4*binary.MaxVarintLen64 + memcache.MaxKey
)

// record is the head of an item's record, after which its value follows.
type record struct {
	// key is a part of the chunk.
	key []byte
	// flags are the client's.
	flags uint64
	// expires is a Unix time in seconds, 0 for never.
	expires int64
	// size of the value in bytes.
	size int
}

// append writes the record's head.
func (r record) append(dst []byte) []byte {
	dst = append(dst, byte(len(r.key)))
	dst = append(dst, r.key...)
	dst = binary.AppendUvarint(dst, r.flags)
	dst = binary.AppendUvarint(dst, uint64(r.expires))
	return binary.AppendUvarint(dst, uint64(r.size))
}

// errRecord is a chunk that has its checksum and is yet no chunk.
var errRecord = errors.New("a record is not as the format says")

// parseRecord reads the head at the begin of a chunk's rest, and returns what follows it.
func parseRecord(data []byte) (r record, rest []byte, err error) {
	if len(data) == 0 || data[0] == 0 || data[0] > memcache.MaxKey || len(data) < 1+int(data[0]) {
		return r, nil, errRecord
	}
	end := 1 + int(data[0])
	r.key, data = data[1:end], data[end:]
	var numbers [3]uint64
	for i := range numbers {
		n, length := binary.Uvarint(data)
		if length <= 0 {
			return r, nil, errRecord
		}
		numbers[i], data = n, data[length:]
	}
	if numbers[1] > 1<<62 || numbers[2] > memcache.MaxValue {
		return r, nil, errRecord
	}
	r.flags, r.expires, r.size = numbers[0], int64(numbers[1]), int(numbers[2])
	if r.size <= MaxWhole && r.size > len(data) {
		return r, nil, errRecord
	}
	return r, data, nil
}

// newEncoder returns an encoder of small memory whose result anyone's zstd reads.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(512<<10),
		zstd.WithLowerEncoderMem(true),
		// The manifest has one.
		zstd.WithEncoderCRC(false),
	)
}

// newDecoder returns a decoder that makes no more than a chunk of anything.
func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxChunk),
		zstd.WithDecoderMaxWindow(MaxChunk),
	)
}

// decode returns the content of a chunk in raw's memory. It trusts nothing: stored
// may be anything, and has been checked for no more than its length.
func decode(decoder *zstd.Decoder, stored, raw []byte, want Chunk) ([]byte, error) {
	if sum := checksum(stored); sum != want.Checksum {
		return nil, fmt.Errorf("its checksum is %s, the manifest's %s", sum, want.Checksum)
	}
	raw, err := decoder.DecodeAll(stored, raw[:0])
	if err != nil {
		return nil, fmt.Errorf("decompressing it: %w", err)
	}
	if len(raw) != want.Bytes {
		return nil, fmt.Errorf("it holds %d bytes, the manifest says %d", len(raw), want.Bytes)
	}
	return raw, nil
}

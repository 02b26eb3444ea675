package format

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Bounds of format version 1, in bytes. A reader rejects anything beyond them.
const (
	// maxChunk is the largest chunk, uncompressed.
	maxChunk = 4 << 20
	// chunkTarget is the size at which a chunk is stored. Smaller chunks mean more
	// objects, larger ones more memory: each shard in progress holds about three.
	chunkTarget = 2 << 20
	// maxStored is the largest chunk as stored: zstd adds three bytes to each block of
	// 128 KiB that it can't compress, a header and a trailer.
	maxStored = maxChunk + maxChunk/256 + 1<<10
	// maxUndivided is the largest value that is in one chunk.
	maxUndivided = 1 << 20
	// maxRecordHead is the longest record without its value.
	maxRecordHead = 4*binary.MaxVarintLen64 + protocol.MaxKey
)

// Record describes an item. In a chunk its value follows.
type Record struct {
	Key []byte
	// Flags are the client's.
	Flags uint64
	// Expires is a Unix time in seconds, 0 for never.
	Expires int64
	// Size of the value in bytes.
	Size int
}

func (r Record) append(dst []byte) []byte {
	dst = append(dst, byte(len(r.Key)))
	dst = append(dst, r.Key...)
	dst = binary.AppendUvarint(dst, r.Flags)
	dst = binary.AppendUvarint(dst, uint64(r.Expires))
	return binary.AppendUvarint(dst, uint64(r.Size))
}

// errRecord is a chunk whose checksum matches and whose content violates the format.
var errRecord = errors.New("a record violates the format")

// parseRecord reads the record at the start of data and returns what follows it. The
// key is a part of data.
func parseRecord(data []byte) (r Record, rest []byte, err error) {
	if len(data) == 0 || data[0] == 0 || data[0] > protocol.MaxKey || len(data) < 1+int(data[0]) {
		return r, nil, errRecord
	}
	end := 1 + int(data[0])
	r.Key, data = data[1:end], data[end:]
	var numbers [3]uint64
	for i := range numbers {
		n, length := binary.Uvarint(data)
		if length <= 0 {
			return r, nil, errRecord
		}
		numbers[i], data = n, data[length:]
	}
	if numbers[1] > 1<<62 || numbers[2] > protocol.MaxValue {
		return r, nil, errRecord
	}
	r.Flags, r.Expires, r.Size = numbers[0], int64(numbers[1]), int(numbers[2])
	if r.Size <= maxUndivided && r.Size > len(data) {
		return r, nil, errRecord
	}
	return r, data, nil
}

// newEncoder returns an encoder that needs little memory and writes standard zstd.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(512<<10),
		zstd.WithLowerEncoderMem(true),
		// The manifest contains a checksum.
		zstd.WithEncoderCRC(false),
	)
}

// newDecoder returns a decoder that never produces more than the largest chunk.
func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxChunk),
		zstd.WithDecoderMaxWindow(maxChunk),
	)
}

// decode verifies a stored chunk and returns its content in raw's memory.
func decode(decoder *zstd.Decoder, stored, raw []byte, want Chunk) ([]byte, error) {
	if sum := checksum(stored); sum != want.Checksum {
		return nil, fmt.Errorf("its checksum is %s, but the manifest says %s", sum, want.Checksum)
	}
	raw, err := decoder.DecodeAll(stored, raw[:0])
	if err != nil {
		return nil, fmt.Errorf("decompressing it: %w", err)
	}
	if len(raw) != want.Bytes {
		return nil, fmt.Errorf("it contains %d bytes, but the manifest says %d", len(raw), want.Bytes)
	}
	return raw, nil
}

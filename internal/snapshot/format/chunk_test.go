package format

import (
	"bufio"
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// encodeChunk returns a chunk as stored, and its entry of the manifest.
func encodeChunk(t testing.TB, raw []byte, items int) ([]byte, Chunk) {
	t.Helper()
	encoder, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	stored := encoder.EncodeAll(raw, nil)
	return stored, Chunk{Items: items, Bytes: len(raw), Stored: len(stored), Checksum: checksum(stored)}
}

func TestRecordRoundTrip(t *testing.T) {
	value := strings.Repeat("v", 100)
	for name, want := range map[string]Record{
		"small":               {Key: []byte("k"), Size: 0},
		"all fields":          {Key: []byte("key"), Flags: 1<<64 - 1, Expires: 1 << 40, Size: 100},
		"the longest key":     {Key: bytes.Repeat([]byte{0}, protocol.MaxKey), Size: 7},
		"larger than a chunk": {Key: []byte("large"), Size: protocol.MaxValue},
	} {
		t.Run(name, func(t *testing.T) {
			data := append(want.append(nil), value...)
			if head := len(data) - len(value); head > maxRecordHead {
				t.Errorf("the head has %d bytes", head)
			}
			got, rest, err := parseRecord(data)
			if err != nil || !bytes.Equal(got.Key, want.Key) || got.Flags != want.Flags || got.Expires != want.Expires || got.Size != want.Size || string(rest) != value {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		})
	}
	for name, data := range map[string][]byte{
		"nothing":                              {},
		"no key":                               {0, 0, 0, 0},
		"a truncated key":                      {3, 'k', 'e'},
		"a key that is too long":               append([]byte{251}, make([]byte, 400)...),
		"no numbers":                           {1, 'k'},
		"a truncated number":                   {1, 'k', 0, 0x80},
		"an endless number":                    append([]byte{1, 'k'}, bytes.Repeat([]byte{0x80}, 20)...),
		"a truncated value":                    {1, 'k', 0, 0, 5, 'v'},
		"a value larger than memcached allows": Record{Key: []byte("k"), Size: protocol.MaxValue + 1}.append(nil),
		"a time out of range":                  Record{Key: []byte("k"), Expires: 1<<62 + 1}.append(nil),
	} {
		if _, _, err := parseRecord(data); !errors.Is(err, errRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDamagedChunksAreRejected(t *testing.T) {
	decoder, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	raw := Record{Key: []byte("k"), Size: 1000}.append(nil)
	raw = append(raw, make([]byte, 1000)...)
	stored, chunk := encodeChunk(t, raw, 1)
	if got, err := decode(decoder, stored, nil, chunk); err != nil || !bytes.Equal(got, raw) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for at := range stored {
		for bit := range 8 {
			damaged := bytes.Clone(stored)
			damaged[at] ^= 1 << bit
			if _, err := decode(decoder, damaged, nil, chunk); err == nil {
				t.Fatalf("bit %d of byte %d is not detected", bit, at)
			}
		}
	}
	// A matching checksum, but a content that is larger than any chunk.
	bomb, huge := encodeChunk(t, make([]byte, 64<<20), 1)
	huge.Bytes = maxChunk
	if got, err := decode(decoder, bomb, nil, huge); err == nil || cap(got) > 2*maxChunk {
		t.Errorf("a chunk of 64 MiB: %v, %d bytes of memory", err, cap(got))
	}
	longer := chunk
	longer.Bytes++
	if _, err := decode(decoder, stored, nil, longer); err == nil {
		t.Error("a chunk with less than the manifest says is accepted")
	}
}

// With one processor, the goroutine that stores a chunk starts after the next chunk is stored: a variable that they share is
// found by the race detector.
func TestChunksOfALargeValueAreStored(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w, err := NewChunkWriter(t.Context(), memblob.OpenBucket(nil), "s", "f", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	item := Record{Key: []byte("k"), Size: 5 * chunkTarget}
	if err := w.Add(item, bufio.NewReader(strings.NewReader(strings.Repeat("v", item.Size)+"\r\n"))); err != nil {
		t.Fatal(err)
	}
	if shard, err := w.Finish(); err != nil || shard.Items != 1 || len(shard.Chunks) != 6 {
		t.Errorf("%+v, %v", shard, err)
	}
}

func TestStoredChunkOfNoiseStaysWithinTheBound(t *testing.T) {
	raw := make([]byte, maxChunk)
	seed := uint64(1)
	for i := range raw {
		seed = seed*6364136223846793005 + 1442695040888963407
		raw[i] = byte(seed >> 56)
	}
	if stored, _ := encodeChunk(t, raw, 1); len(stored) > maxStored {
		t.Errorf("%d bytes of noise are stored as %d", len(raw), len(stored))
	}
}

// Whatever the bytes of a chunk are, parsing terminates, and the records that it finds
// can be written again.
func FuzzChunk(f *testing.F) {
	raw := append(Record{Key: []byte("key"), Flags: 5, Expires: 1795274628, Size: 5}.append(nil), "value"...)
	f.Add(raw, false)
	f.Add(append(raw, raw...), false)
	stored, _ := encodeChunk(f, raw, 1)
	f.Add(stored, true)
	f.Add(Record{Key: []byte("large"), Size: 2 << 20}.append(nil), false)
	decoder, err := newDecoder()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, compressed bool) {
		if compressed {
			// With a matching checksum, as an attacker would write it.
			content, err := decode(decoder, data, nil, Chunk{Bytes: len(data), Checksum: checksum(data)})
			if err != nil {
				return
			}
			data = content
		}
		var again []byte
		for rest := data; len(rest) > 0; {
			item, after, err := parseRecord(rest)
			if err != nil {
				if !errors.Is(err, errRecord) {
					t.Fatalf("unexpected error: %v", err)
				}
				return
			}
			again = item.append(again)
			n := min(item.Size, len(after))
			if n < item.Size && item.Size <= maxUndivided {
				t.Fatalf("a value of %d bytes has %d", item.Size, n)
			}
			again = append(again, after[:n]...)
			rest = after[n:]
		}
		// A number may be encoded with more bytes than necessary.
		if len(again) > len(data) {
			t.Fatalf("%q written again is %q", data, again)
		}
	})
}

func TestChunkLengthMustMatchTheManifest(t *testing.T) {
	raw := Record{Key: []byte("key"), Size: 5}.append(nil)
	raw = append(raw, "value"...)
	decoder, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	for _, difference := range []int{-1, 0, 1} {
		stored, chunk := encodeChunk(t, raw, 1)
		chunk.Bytes += difference
		if _, err := decode(decoder, stored, nil, chunk); (err == nil) != (difference == 0) {
			t.Errorf("the manifest says %d bytes more than the chunk has: %v", difference, err)
		}
	}
}

package snapshot

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

// chunkOf returns a chunk of small records, as stored, and its entry of the manifest.
func chunkOf(t testing.TB, raw []byte, items int) ([]byte, Chunk) {
	t.Helper()
	encoder, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	stored := encoder.EncodeAll(raw, nil)
	return stored, Chunk{Items: items, Bytes: len(raw), Stored: len(stored), Checksum: checksum(stored)}
}

func TestRecords(t *testing.T) {
	value := strings.Repeat("v", 100)
	for name, want := range map[string]record{
		"small":               {key: []byte("k"), size: 0},
		"all its numbers":     {key: []byte("key"), flags: 1<<64 - 1, expires: 1 << 40, size: 100},
		"the longest key":     {key: bytes.Repeat([]byte{0}, memcache.MaxKey), size: 7},
		"larger than a chunk": {key: []byte("large"), size: memcache.MaxValue},
	} {
		t.Run(name, func(t *testing.T) {
			data := append(want.append(nil), value...)
			if head := len(data) - len(value); head > maxHead {
				t.Errorf("the head has %d bytes", head)
			}
			got, rest, err := parseRecord(data)
			if err != nil || !bytes.Equal(got.key, want.key) || got.flags != want.flags || got.expires != want.expires || got.size != want.size || string(rest) != value {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		})
	}
	for name, data := range map[string][]byte{
		"nothing":                       {},
		"no key":                        {0, 0, 0, 0},
		"a key that is cut":             {3, 'k', 'e'},
		"a key that is too long":        append([]byte{251}, make([]byte, 400)...),
		"no numbers":                    {1, 'k'},
		"a number that is cut":          {1, 'k', 0, 0x80},
		"a number that never ends":      append([]byte{1, 'k'}, bytes.Repeat([]byte{0x80}, 20)...),
		"a value that is cut":           {1, 'k', 0, 0, 5, 'v'},
		"a value beyond memcached's":    record{key: []byte("k"), size: memcache.MaxValue + 1}.append(nil),
		"a time beyond what can be one": record{key: []byte("k"), expires: 1<<62 + 1}.append(nil),
	} {
		if _, _, err := parseRecord(data); !errors.Is(err, errRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChunksAreNotBelieved(t *testing.T) {
	decoder, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	raw := record{key: []byte("k"), size: 1000}.append(nil)
	raw = append(raw, make([]byte, 1000)...)
	stored, chunk := chunkOf(t, raw, 1)
	if got, err := decode(decoder, stored, nil, chunk); err != nil || !bytes.Equal(got, raw) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for at := range stored {
		for bit := range 8 {
			damaged := bytes.Clone(stored)
			damaged[at] ^= 1 << bit
			if _, err := decode(decoder, damaged, nil, chunk); err == nil {
				t.Fatalf("bit %d of byte %d is not missed", bit, at)
			}
		}
	}
	// With a checksum of its own: something else that is compressed well.
	bomb, huge := chunkOf(t, make([]byte, 64<<20), 1)
	huge.Bytes = MaxChunk
	if got, err := decode(decoder, bomb, nil, huge); err == nil || cap(got) > 2*MaxChunk {
		t.Errorf("64 MiB of a chunk: %v, %d bytes of memory", err, cap(got))
	}
	longer := chunk
	longer.Bytes++
	if _, err := decode(decoder, stored, nil, longer); err == nil {
		t.Error("a chunk with less than the manifest says is taken")
	}
}

func TestStoredChunksAreWithinTheBound(t *testing.T) {
	raw := make([]byte, MaxChunk)
	seed := uint64(1)
	for i := range raw {
		seed = seed*6364136223846793005 + 1442695040888963407
		raw[i] = byte(seed >> 56)
	}
	if stored, _ := chunkOf(t, raw, 1); len(stored) > maxStored {
		t.Errorf("%d bytes of noise are stored as %d", len(raw), len(stored))
	}
}

// Whatever the bytes of a chunk are, reading them ends, and what it finds can be
// written again.
func FuzzChunk(f *testing.F) {
	raw := append(record{key: []byte("key"), flags: 5, expires: 1795274628, size: 5}.append(nil), "value"...)
	f.Add(raw, false)
	f.Add(append(raw, raw...), false)
	stored, _ := chunkOf(f, raw, 1)
	f.Add(stored, true)
	f.Add(record{key: []byte("large"), size: 2 << 20}.append(nil), false)
	decoder, err := newDecoder()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, compressed bool) {
		if compressed {
			// Of the right checksum, as of one who made it so.
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
					t.Fatalf("an unknown kind of error: %v", err)
				}
				return
			}
			again = item.append(again)
			n := min(item.size, len(after))
			if n < item.size && item.size <= MaxWhole {
				t.Fatalf("a value of %d bytes has %d", item.size, n)
			}
			again = append(again, after[:n]...)
			rest = after[n:]
		}
		// Numbers have longer forms than the one that is written.
		if len(again) > len(data) {
			t.Fatalf("%q written again is %q", data, again)
		}
	})
}

package protocol

import (
	"fmt"
	"hash/maphash"
	"testing"
)

func TestNamesBeyondTheMemoryAreThoseOfAnotherDump(t *testing.T) {
	const keys = 40_000
	seen, dumps, reading, seed := map[string]int{}, 0, false, maphash.MakeSeed()
	err := EachName(func(visit func(Listed) error) error {
		dumps++
		reading = true
		defer func() { reading = false }()
		for i := range keys {
			if err := visit(Listed{Key: fmt.Appendf(nil, "%0245d", i), CAS: uint64(i)}); err != nil {
				return err
			}
		}
		return nil
	}, func(key []byte) uint64 { return maphash.Bytes(seed, key) }, func(item Listed) bool { return item.CAS > 0 }, func(names Names) error {
		if reading || len(names) > maxNames {
			t.Errorf("%d bytes of names, while it reads: %t", len(names), reading)
		}
		for len(names) > 0 {
			seen[string(names.Next())]++
		}
		return nil
	})
	if err != nil || len(seen) != keys-1 || dumps < 3 {
		t.Errorf("%d keys after %d dumps, %v", len(seen), dumps, err)
	}
	for key, times := range seen {
		if times != 1 {
			t.Fatalf("%s was returned %d times", key, times)
		}
	}
}

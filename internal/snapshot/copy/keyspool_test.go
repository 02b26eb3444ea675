package copy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
)

func TestAgeGroups(t *testing.T) {
	for seconds, want := range map[int64]int{-5: 0, 0: 0, 59: 0, 60: 1, 119: 1, 120: 2, 239: 2, 240: 3, 3600: 6, 365 * 86400: 20, 1 << 40: 20} {
		if got := ageGroup(seconds); got != want {
			t.Errorf("%d s: %d, want %d", seconds, got, want)
		}
	}
}

// Keys of one age group keep their order, and no file is left.
func TestKeySpoolReturnsYoungestKeysFirst(t *testing.T) {
	dir := t.TempDir()
	s, err := newKeySpool(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Keys of an attempt that is restarted.
	if err := s.add([]byte("of a dump that failed"), 1, 0, 3); err != nil {
		t.Fatal(err)
	}
	if err := s.clear(); err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	for i := range n {
		if err := s.add(fmt.Appendf(nil, "key-%d\x00\n", i), int64(i), int64(3*i), i*7%ages); err != nil {
			t.Fatal(err)
		}
	}
	if s.keys != n {
		t.Errorf("%d keys, not %d", s.keys, n)
	}
	seen := 0
	last, lastAge := -1, -1
	for {
		key, size, expires, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		i := int(size)
		if want := fmt.Sprintf("key-%d\x00\n", i); string(key) != want {
			t.Fatalf("%q, want %q", key, want)
		}
		if expires != int64(3*i) {
			t.Fatalf("key %d expires at %d", i, expires)
		}
		age := i * 7 % ages
		if age < lastAge || age == lastAge && i < last {
			t.Fatalf("key %d of age %d comes after key %d of age %d", i, age, last, lastAge)
		}
		last, lastAge = i, age
		seen++
	}
	if seen != n {
		t.Errorf("%d of %d keys were returned", seen, n)
	}
	if err := s.remove(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

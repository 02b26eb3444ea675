package ring

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

var all = []string{Ketama, Jump, Rendezvous, Modulo}

func servers(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("cache-%d.shop.svc:11211", i)
	}
	return names
}

func newRing(t testing.TB, name string, servers []string) Ring {
	t.Helper()
	r, err := New(name, servers)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// keys returns n typical keys.
func keys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "session:%x:%s", i*7919, strings.Repeat("x", i%97))
	}
	return keys
}

func TestKeysAreSpreadEvenly(t *testing.T) {
	for _, name := range all {
		for _, n := range []int{1, 2, 3, 5, 16, 100} {
			r := newRing(t, name, servers(n))
			counts := make([]int, n)
			const sample = 20_000
			for _, key := range keys(sample) {
				counts[r.Shard(key)]++
			}
			if least, most := slices.Min(counts), slices.Max(counts); least < sample/n/2 || most > sample/n*2 {
				t.Errorf("%s over %d: from %d to %d of %d keys a shard", name, n, least, most, sample)
			}
		}
	}
}

// A new shard takes keys of others, and the others exchange none, unless Reshuffles says so.
func TestNewShardOnlyTakesKeysFromOthers(t *testing.T) {
	exchanges := map[string]int{}
	for _, name := range all {
		for _, n := range []int{2, 4, 11, 23, 24, 25, 46, 47} {
			for _, to := range []int{n + 1, 2 * n} {
				few, many := newRing(t, name, servers(n)), newRing(t, name, servers(to))
				moved, exchanged := 0, 0
				for _, key := range keys(10_000) {
					before, after := few.Shard(key), many.Shard(key)
					if before != after {
						moved++
					}
					if before != after && after < n {
						exchanged++
					}
				}
				if got := Reshuffles(name, n, to); got != (exchanged > 0) || got != Reshuffles(name, to, n) {
					t.Errorf("%s from %d to %d: %d keys move between shards that stay, and Reshuffles is %t", name, n, to, exchanged, got)
				} else if got {
					exchanges[name]++
				}
				if share := float64(to-n) / float64(to); !Reshuffles(name, n, to) && math.Abs(float64(moved)/10_000-share) > 0.6*share {
					t.Errorf("%s from %d to %d: %d of 10000 keys moved", name, n, to, moved)
				}
			}
		}
	}
	if exchanges[Ketama] == 0 || exchanges[Modulo] == 0 || len(exchanges) != 2 {
		t.Errorf("shards that stay exchange keys with %v", exchanges)
	}
}

func TestShardOfAKeyDoesNotDependOnTheOrderOfServers(t *testing.T) {
	names := servers(12)
	backwards := slices.Clone(names)
	slices.Reverse(backwards)
	for _, name := range all[:3] {
		forth, back := newRing(t, name, names), newRing(t, name, backwards)
		for _, key := range keys(1000) {
			if names[forth.Shard(key)] != backwards[back.Shard(key)] {
				t.Fatalf("%s: %s belongs to %s, or to %s when the servers are given backwards", name, key,
					names[forth.Shard(key)], backwards[back.Shard(key)])
			}
		}
	}
}

func TestDefaultPortIs11211(t *testing.T) {
	names := servers(5)
	bare := make([]string, len(names))
	for i, name := range names {
		bare[i] = strings.TrimSuffix(name, ":11211")
	}
	for _, name := range all {
		with, without := newRing(t, name, names), newRing(t, name, bare)
		for _, key := range keys(1000) {
			if with.Shard(key) != without.Shard(key) {
				t.Fatalf("%s: %s belongs to shard %d with the port and to %d without", name, key, with.Shard(key), without.Shard(key))
			}
		}
	}
}

func TestInvalidRingsAreRejected(t *testing.T) {
	for _, tt := range []struct {
		name    string
		servers []string
		says    string
	}{
		{"Ketama", nil, "needs at least one server"},
		{"ketama", servers(2), "not one of Ketama, Jump, Rendezvous and Modulo"},
		{"", servers(2), "not one of"},
		{"Jump", []string{"cache:11211", "other:11211", "cache:11211"}, "shards 0 and 2 have the same name"},
	} {
		if _, err := New(tt.name, tt.servers); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q over %v: %v, want %q", tt.name, tt.servers, err, tt.says)
		}
	}
}

func TestCompareNaturalOrdersByTheValueOfNumbers(t *testing.T) {
	// Each precedes the next.
	ordered := []string{"", "10.0.0.2:11211", "10.0.0.10:11211", "cache", "cache-0.a.svc", "cache-0.b.svc", "cache-2.a.svc", "cache-10.a.svc", "cache-a"}
	for i, a := range ordered {
		for k, b := range ordered {
			if got := compareNatural(a, b); (got < 0) != (i < k) || (got > 0) != (i > k) {
				t.Errorf("%q against %q: %d", a, b, got)
			}
		}
	}
}

func TestMurmurMatchesTheReferenceForAnySequenceOfWrites(t *testing.T) {
	for text, want := range map[string]uint32{
		"":              0,
		"test":          0xba6bd213,
		"Hello, world!": 0xc0363e43,
		"The quick brown fox jumps over the lazy dog": 0x2e4ff723,
	} {
		for i := range len(text) + 1 {
			for k := i; k <= len(text); k++ {
				var m murmur
				m.write([]byte(text[:i]))
				m.write([]byte(text[i:k]))
				m.write([]byte(text[k:]))
				if got := m.sum(); got != want {
					t.Errorf("%q cut at %d and %d: %#x, want %#x", text, i, k, got, want)
				}
			}
		}
	}
}

func TestRendezvousTieGoesToTheLastName(t *testing.T) {
	var same murmur
	r := rendezvous{{"b", same}, {"c", same}, {"a", same}}
	if got := r.Shard([]byte("key")); got != 1 {
		t.Errorf("shard %d, want that of c", got)
	}
}

func TestShardDoesNotAllocate(t *testing.T) {
	for _, name := range all {
		r := newRing(t, name, servers(16))
		for _, key := range []string{"k", strings.Repeat("k", 250), "schlüssel-привет"} {
			key := []byte(key)
			if n := testing.AllocsPerRun(100, func() { r.Shard(key) }); n != 0 {
				t.Errorf("%s: %v allocations for %q", name, n, key)
			}
		}
	}
}

func BenchmarkShard(b *testing.B) {
	keys := keys(1000)
	for _, name := range all {
		b.Run(name, func(b *testing.B) {
			r := newRing(b, name, servers(16))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.Shard(keys[i%len(keys)])
			}
		})
	}
}

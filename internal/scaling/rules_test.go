package scaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// All cases. The columns are the steps.
func TestRuleOfEachCase(t *testing.T) {
	steps := []Step{Copy, Published, Close}
	states := map[string]state{"gone": gone, "same": same, "changed": changed}
	cases := map[string][]action{
		// Clients use the source only, so what it has is right. Otherwise, what one side has without a pair may have been
		// deleted in the other one.
		"no pair: source gone, target changed":    {pull, keep, keep},
		"no pair: source same, target gone":       {keep, keep, keep}, // it was pulled, but not stored
		"no pair: source same, target changed":    {pull, compare, compare},
		"no pair: source changed, target gone":    {pull, keep, keep},
		"no pair: source changed, target changed": {pull, compare, compare},
		"pair: source gone, target same":          {pull, pull, pull},
		"pair: source gone, target changed":       {pull, compare, compare},
		"pair: source same, target gone":          {keep, push, keep},
		"pair: source same, target same":          {keep, keep, keep},
		"pair: source same, target changed":       {pull, push, keep},
		"pair: source changed, target gone":       {pull, compare, compare},
		"pair: source changed, target same":       {pull, pull, pull},
		"pair: source changed, target changed":    {pull, compare, compare},
	}
	for name, want := range cases {
		words := strings.NewReplacer(":", "", ",", "").Replace(name)
		var source, target string
		if _, err := fmt.Sscanf(strings.TrimPrefix(words, "no "), "pair source %s target %s", &source, &target); err != nil {
			t.Fatal(err)
		}
		for i, step := range steps {
			if got := rule(step, !strings.HasPrefix(name, "no"), states[source], states[target]); got != want[i] {
				t.Errorf("%s: %s: action %d, want %d", step, name, got, want[i])
			}
		}
	}
	if len(cases) != 5+8 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestExpiriesDifferBeyondTheTolerance(t *testing.T) {
	for _, c := range []struct {
		a, b uint32
		want bool
	}{{0, 0, false}, {0, 1, true}, {1000, 0, true}, {1000, 1002, false}, {1002, 1000, false}, {1000, 1003, true}} {
		if got := differ(c.a, c.b); got != c.want {
			t.Errorf("%d and %d: %t", c.a, c.b, got)
		}
	}
}

// incr on both sides can give equal values that lack one of them.
func TestNumbersAreThoseThatIncrChanges(t *testing.T) {
	for text, want := range map[string]bool{"0": true, "18446744073709551615": true, "9  ": true, "": false, "  ": false, " 9": false, "-1": false, "1.5": false,
		"123456789012345678901": false, "7a": false} {
		if got := isNumber([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// Each shard from which a key can come is a source, however few keys come from it. A ring of 25 has fewer points for each server, so shards
// that stay exchange keys.
func TestSourcesAreTheShardsFromWhichKeysMove(t *testing.T) {
	for _, c := range []struct {
		ring             string
		from, to, target int
		want             string
	}{
		{ring.Jump, 3, 4, 3, "[0 1 2]"}, {ring.Jump, 3, 4, 0, "[]"}, {ring.Jump, 4, 3, 0, "[3]"}, {ring.Rendezvous, 4, 2, 1, "[2 3]"},
		{ring.Ketama, 3, 4, 3, "[0 1 2]"}, {ring.Ketama, 3, 4, 1, "[]"}, {ring.Modulo, 2, 4, 2, "[0]"}, {ring.Modulo, 2, 4, 0, "[]"},
		{ring.Modulo, 4, 2, 0, "[2]"}, {ring.Modulo, 3, 4, 0, "[1 2]"}, {ring.Modulo, 2, 6, 5, "[1]"}, {ring.Modulo, 6, 2, 1, "[3 5]"},
	} {
		if got := fmt.Sprint(ring.Sources(c.ring, c.from, c.to, c.target)); got != c.want {
			t.Errorf("%s from %d to %d, shard %d: %v, want %s", c.ring, c.from, c.to, c.target, got, c.want)
		}
	}
	for _, name := range []string{ring.Jump, ring.Rendezvous, ring.Ketama} {
		if got := len(ring.Sources(name, 127, 128, 127)); got != 127 {
			t.Errorf("%s from 127 to 128: %d sources of the new shard, want 127", name, got)
		}
	}
	for _, sizes := range [][2]int{{2, 4}, {24, 25}, {25, 24}, {46, 47}, {8, 2}, {3, 6}} {
		for _, name := range []string{ring.Jump, ring.Rendezvous, ring.Ketama, ring.Modulo} {
			change := Change{name, servers(sizes[0]), servers(sizes[1])}
			m, err := newMoves(change, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 5000 {
				key := fmt.Appendf(nil, "key-%d", i)
				if from, to := m.from.Shard(key), m.to.Shard(key); from != to && !slices.Contains(ring.Sources(change.Ring, len(change.From), len(change.To), to), from) {
					t.Fatalf("%s from %d to %d: shard %d is no source of shard %d", name, sizes[0], sizes[1], from, to)
				}
			}
		}
	}
}

func servers(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("cache-%d:11211", i))
	}
	return names
}

// scanOf visits keys, of which the first recent ones were just used.
func scanOf(keys []string, recent int) func(context.Context, handover.Order, func([]byte) bool, func(*memfile.Item) error) (memfile.Report, error) {
	return func(_ context.Context, _ handover.Order, which func([]byte) bool, visit func(*memfile.Item) error) (memfile.Report, error) {
		for i, key := range keys {
			item := &memfile.Item{Key: []byte(key), AccessedAt: time.Now().Add(-time.Hour)}
			if !which(item.Key) {
				continue
			}
			if i < recent {
				item.AccessedAt = time.Now()
			}
			if err := visit(item); err != nil {
				return memfile.Report{}, err
			}
		}
		return memfile.Report{}, nil
	}
}

func TestRingIsVerifiedByTheKeysOfTheShard(t *testing.T) {
	of, err := ring.New(ring.Ketama, servers(3))
	if err != nil {
		t.Fatal(err)
	}
	var right, wrong []string
	for i := 0; len(right) < 5000 || len(wrong) < 5000; i++ {
		if key := fmt.Sprintf("key-%d", i); of.Shard([]byte(key)) == 1 {
			right = append(right, key)
		} else {
			wrong = append(wrong, key)
		}
	}
	keys := func(n, m int) []string { return append(append([]string{}, right[:n]...), wrong[:m]...) }
	in, err := ring.New(ring.Ketama, servers(2))
	if err != nil {
		t.Fatal(err)
	}
	copied := slices.DeleteFunc(slices.Clone(wrong), func(key string) bool { return in.Shard([]byte(key)) != 1 })
	for name, c := range map[string]struct {
		keys   []string
		recent int
		from   int
		says   string
		to     int // 0 for 4
	}{
		"empty":                            {nil, 0, 3, "", 0},
		"a few":                            {keys(19, 0), 0, 3, "", 0},
		"a few, one is elsewhere":          {keys(18, 1), 0, 3, "18 of 19 keys of shard 1 are where Ketama over cache-0:11211, cache-1:11211, cache-2:11211 puts them (94.7%)", 0},
		"99%":                              {keys(990, 10), 0, 3, "", 0},
		"98.9%":                            {keys(989, 11), 0, 3, "(98.9%), at least 99% are required", 0},
		"the others are from before":       {keys(2000, 3000), 2000, 3, "", 0},
		"few of those that are used":       {keys(1999, 3000), 1999, 3, "1999 of 4999", 0},
		"of those that are used, too many": {append(keys(1900, 100), right[1900:]...), 2000, 3, "1900 of 2000", 0},
		"the operator's own item":          {append(keys(19, 0), wire.DiscoveryItem), 0, 3, "", 0},
		"a single server":                  {keys(100, 0), 0, 1, "a single shard", 0},
		"copied by an earlier attempt":     {append(keys(100, 0), copied[:200]...), 0, 3, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			visited, clients := 0, len(slices.DeleteFunc(slices.Clone(c.keys), func(key string) bool { return key == wire.DiscoveryItem }))
			m := Memcached{Ordinal: 1, Scan: scanOf(c.keys, c.recent)}
			err := verify(t.Context(), m, Change{Ring: ring.Ketama, From: servers(c.from), To: servers(cmp.Or(c.to, 4))}, func(*memfile.Item) { visited++ })
			if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, ErrUnproven) || !strings.Contains(err.Error(), c.says)) || visited != clients {
				t.Errorf("%v, %d visited, want %q", err, visited, c.says)
			}
		})
	}
}

func TestMovesOfAnInvalidChangeAreImpossible(t *testing.T) {
	for name, c := range map[string]struct {
		change         Change
		source, target int
	}{
		"unknown ring":  {Change{"Maglev", servers(3), servers(4)}, 0, 3},
		"no servers":    {Change{ring.Jump, nil, servers(4)}, 0, 3},
		"equal servers": {Change{ring.Jump, servers(3), []string{"a", "a"}}, 0, 1},
		"no source":     {Change{ring.Jump, servers(3), servers(4)}, 3, 3},
		"no target":     {Change{ring.Jump, servers(4), servers(3)}, 0, 3},
		"negative":      {Change{ring.Jump, servers(4), servers(3)}, -1, 0},
	} {
		if _, err := newMoves(c.change, c.source, c.target); !errors.Is(err, ErrImpossible) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTableThatDoesNotFitIntoTheMemoryIsAnError(t *testing.T) {
	o := source{}
	var err error
	if o.pairs, err = newPairs(1 << 60); err == nil {
		t.Fatal("there is a table of 2^60 bytes")
	}
	o.close() // as the target does then
}

// A table does what a map would do, also after it was full.
func TestPairsAreThoseThatWereNoted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	table, err := newPairs(pairsSize(0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}()
	want := map[uint64]pair{}
	full := 0
	for range 20 {
		for range 2000 {
			hash := max(1, (1+random.Uint64N(4000))*(1<<51))
			var p pair
			for side := range p.cas {
				p.cas[side], p.expires[side] = 1+random.Uint64N(1<<60), random.Uint32N(longestExpiry+1)
				p.state[side], p.seen[side] = state(random.IntN(3)), random.IntN(2) == 0
			}
			if !table.set(hash, p) {
				full++
				continue
			}
			if got, found := table.find(hash); got != p || !found {
				t.Fatalf("%+v is read as %+v", p, got)
			}
			want[hash] = p
		}
		n := table.end(ours, random.IntN(2) == 0)
		got := map[uint64]pair{}
		table.each(func(hash uint64, p pair) pair {
			got[hash] = p
			if hash>>51%3 > 0 {
				return pair{}
			}
			return p
		})
		left := map[uint64]pair{} // not in want, since a key that is added again while it is visited may be visited twice
		for hash, p := range want {
			if p.seen[ours] != (got[hash].state[ours] == p.state[ours]) && p.state[ours] != gone {
				t.Fatalf("%d was %+v, and is %+v after the scan", hash, p, got[hash])
			}
			if got[hash].state == [2]state{gone, gone} && got[hash] != (pair{}) {
				t.Fatalf("%d is on no side, and %+v", hash, got[hash])
			}
			if got[hash].exists() {
				n--
			}
			if p = got[hash]; hash>>51%3 == 0 && p != (pair{}) {
				left[hash] = p
			}
		}
		want = left
		if n != 0 {
			t.Fatalf("%d pairs more than there are", n)
		}
		if err := table.compact(); err != nil {
			t.Fatal(err)
		}
		for hash, p := range want {
			if got, found := table.find(hash); !found || got != p {
				t.Fatalf("after compact, %d is %+v, want %+v", hash, got, p)
			}
		}
	}
	if full == 0 {
		t.Error("the table was never full")
	}
}

func TestTableOfPairsFitsIntoItsMemory(t *testing.T) {
	const items = 1_000_000
	if each := float64(pairsSize(items)) / items; each > 2*64 { // a quarter of the items moves, and the second table is seldom there
		t.Errorf("%.0f bytes a moved item", each)
	}
	if each := float64(peerlink.TableSize(items, slotSize)) / items; each > 64 {
		t.Errorf("%.0f bytes a moved item", each)
	}
}

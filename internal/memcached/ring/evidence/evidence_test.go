package evidence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
)

// world is a cache, and its clients.
type world struct {
	*rand.Rand
	shards    int
	spellings []Spelling
}

func newWorld(seed uint64, shards int) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), shards: shards}
	var servers []string
	for i := range shards {
		servers = append(servers, fmt.Sprintf("cache-%d.shop.svc.cluster.local:11211", i))
	}
	w.spellings = Spellings("cache", "shop", servers)
	addresses := Spelling{Name: "pod addresses"}
	for _, last := range w.Perm(250)[:shards] {
		addresses.Servers = append(addresses.Servers, fmt.Sprintf("10.0.%d.%d:11211", w.IntN(3), last))
	}
	w.spellings = append(w.spellings, addresses)
	return w
}

// clients are a ring over a spelling.
type clients struct {
	name     string
	spelling Spelling
	ring     ring.Ring
}

func (w *world) clients(t testing.TB, name string, s Spelling) clients {
	t.Helper()
	r, err := ring.New(name, s.Servers)
	if err != nil {
		t.Fatal(err)
	}
	return clients{name, s, r}
}

func (w *world) anyClients(t testing.TB) clients {
	return w.clients(t, Rings[w.IntN(len(Rings))], w.spellings[w.IntN(len(w.spellings))])
}

// keys returns a sample of so many keys of each shard. Three in five are placed by the first group, and the others by the last one. A
// share are orphans, which are anywhere or where the first group would place them with a shard less.
func (w *world) keys(t testing.TB, perShard int, orphans float64, groups ...clients) [][][]byte {
	former := w.clients(t, groups[0].name, Spelling{Servers: groups[0].spelling.Servers[:w.shards-1]})
	scaled := w.IntN(2) == 0
	keys := make([][][]byte, w.shards)
	missing := w.shards
	for range 1000 * perShard {
		key := fmt.Appendf(nil, "session:%x:%d", w.Uint64(), w.IntN(100))
		shard := groups[min(w.IntN(5)/3, len(groups)-1)].ring.Shard(key)
		if w.Float64() < orphans {
			shard = w.IntN(w.shards)
			if scaled && orphans < 1 {
				shard = former.ring.Shard(key)
			}
		}
		if len(keys[shard]) == perShard {
			continue
		}
		if keys[shard] = append(keys[shard], key); len(keys[shard]) == perShard {
			missing--
		}
		if missing == 0 {
			return keys
		}
	}
	t.Fatalf("the shards have too few keys, with %.0f%% orphans", 100*orphans)
	return nil
}

func (g Group) is(c clients) bool {
	return g.Ring == c.name && slices.Contains(g.Spellings, c.spelling.Name)
}

// placesAlike is whether two groups look for all keys on the same shards.
func placesAlike(a, b clients, keys [][][]byte) bool {
	for _, of := range keys {
		for _, key := range of {
			if a.ring.Shard(key) != b.ring.Shard(key) {
				return false
			}
		}
	}
	return true
}

func find(t testing.TB, keys [][][]byte, spellings []Spelling) Answer {
	t.Helper()
	answer, err := Find(t.Context(), keys, spellings)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestRingOfTheClientsIsFound(t *testing.T) {
	t.Parallel()
	const runs, perShard = 500, 400 // the plugin compares 2,000, which is easier
	unclear := 0
	for seed := range uint64(runs) {
		shards := 3 + int(seed)%6
		if seed%100 == 50 {
			shards = 100 // of which not all keys are compared
		}
		w := newWorld(seed, shards)
		orphans := w.Float64() * 0.4
		groups := []clients{w.anyClients(t)}
		if seed%4 == 0 {
			groups = append(groups, w.anyClients(t))
		}
		keys := w.keys(t, perShard, orphans, groups...)
		if len(groups) == 2 && placesAlike(groups[0], groups[1], keys) {
			groups = groups[:1]
		}
		answer := find(t, keys, w.spellings)
		describe := fmt.Sprintf("run %d: %d shards, %.0f%% orphans, %s by %s", seed, w.shards, 100*orphans, groups[0].name, groups[0].spelling.Name)
		switch {
		case len(answer.Groups) == 0:
			unclear++
		case answer.Keys != min(perShard, mostKeys/w.shards)*w.shards:
			t.Errorf("%s: %d keys", describe, answer.Keys)
		case len(groups) == 1 && (len(answer.Groups) != 1 || !answer.Groups[0].is(groups[0])):
			t.Errorf("%s: %+v", describe, answer.Groups)
		case len(groups) == 2 && (len(answer.Groups) != 2 || !answer.Groups[0].is(groups[0]) || !answer.Groups[1].is(groups[1])):
			t.Errorf("%s, and %s by %s: %+v", describe, groups[1].name, groups[1].spelling.Name, answer.Groups)
		}
	}
	if unclear > runs/100 {
		t.Errorf("%d of %d runs are unclear", unclear, runs)
	}
	t.Logf("%d of %d runs are unclear", unclear, runs)
}

func TestSharesOfTheGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(7, 4)
	names, addresses := w.spellings[0], w.spellings[len(w.spellings)-1]
	one, other := w.clients(t, ring.Ketama, names), w.clients(t, ring.Ketama, addresses)
	answer := find(t, w.keys(t, 2000, 0, one), w.spellings)
	if len(answer.Groups) != 1 || answer.Groups[0].Found != 1 || answer.Groups[0].Placed != 1 {
		t.Errorf("one group: %+v", answer)
	}
	answer = find(t, w.keys(t, 2000, 0, one, other), w.spellings)
	if len(answer.Groups) != 2 || answer.Groups[0].Placed < 0.57 || answer.Groups[0].Placed > 0.63 || answer.Groups[1].Placed < 0.37 || answer.Groups[1].Placed > 0.43 {
		t.Errorf("three in five, and two in five: %+v", answer)
	}
	two := newWorld(8, 2)
	one, other = two.clients(t, ring.Ketama, two.spellings[0]), two.clients(t, ring.Ketama, two.spellings[1])
	if answer = find(t, two.keys(t, 2000, 0.2, one), two.spellings); len(answer.Groups) != 1 || !answer.Groups[0].is(one) {
		t.Errorf("one group of clients of two shards: %+v", answer)
	}
	if answer = find(t, two.keys(t, 2000, 0.2, one, other), two.spellings); len(answer.Groups) != 2 || !answer.Groups[0].is(one) || !answer.Groups[1].is(other) {
		t.Errorf("two groups of clients of two shards: %+v", answer)
	}
	// Where the others look for a key depends on where the first do.
	order := []Spelling{{Name: "a", Servers: []string{"a", "b", "c"}}, {Name: "b", Servers: []string{"b", "c", "a"}}, {Name: "c", Servers: []string{"c", "a", "b"}}}
	keys, r := make([][][]byte, 3), w.clients(t, ring.Jump, order[0])
	for i := range 6000 {
		key := fmt.Append(nil, i)
		shard := (r.ring.Shard(key) + max(0, w.IntN(10)-7)) % 3 // two in ten are elsewhere
		keys[shard] = append(keys[shard], key)
	}
	if answer = find(t, keys, order); len(answer.Groups) != 1 || answer.Groups[0].Spellings[0] != "a" {
		t.Errorf("orphans of clients with a list in another order: %+v", answer)
	}
}

func TestWhatNoRingExplainsIsUnclear(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		w := newWorld(seed, 3+int(seed)%6)
		unknown := Spelling{Name: "others", Servers: make([]string, w.shards)}
		for i := range unknown.Servers {
			unknown.Servers[i] = fmt.Sprintf("memcached%d.example.com:11211", i)
		}
		for name, keys := range map[string][][][]byte{
			"names that aren't compared": w.keys(t, 400, 0, w.clients(t, Rings[seed%2], unknown)),
			"keys anywhere":              w.keys(t, 400, 1, w.clients(t, ring.Modulo, unknown)),
			"few keys":                   w.keys(t, 3, 0.2, w.anyClients(t)),
		} {
			if answer := find(t, keys, w.spellings); len(answer.Groups) != 0 && (name != "few keys" || answer.Groups[0].Placed < 0.5) {
				t.Errorf("seed %d, %s: %+v", seed, name, answer)
			}
		}
	}
	for name, keys := range map[string][][][]byte{"no shards": nil, "no keys": make([][][]byte, 3), "one shard": {{[]byte("a"), []byte("b")}}} {
		if answer := find(t, keys, newWorld(1, 3).spellings); len(answer.Groups) != 0 {
			t.Errorf("%s: %+v", name, answer)
		}
	}
}

func TestSpellings(t *testing.T) {
	var got []string
	for _, s := range Spellings("cache", "shop", []string{"cache-0.shop.svc.cluster.local:11211"}) {
		got = append(got, s.Name+": "+strings.Join(s.Servers, " "))
	}
	want := []string{
		"status.servers: cache-0.shop.svc.cluster.local:11211",
		"without the domain of the cluster: cache-0.shop.svc:11211",
		"with the namespace only: cache-0.shop:11211",
		"without the namespace: cache-0:11211",
		"SRV records: cache-0.cache.shop.svc.cluster.local:11211",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestAnInterruptEndsTheComparison(t *testing.T) {
	w := newWorld(1, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if answer, err := Find(ctx, w.keys(t, 400, 0, w.anyClients(t)), w.spellings); !errors.Is(err, context.Canceled) || len(answer.Groups) > 0 {
		t.Errorf("got %+v, %v", answer, err)
	}
}

func BenchmarkFind(b *testing.B) {
	for _, shards := range []int{8, 100} {
		w := newWorld(1, shards)
		keys := w.keys(b, 2000, 0.2, w.clients(b, ring.Rendezvous, w.spellings[0]))
		b.Run(fmt.Sprint(shards), func(b *testing.B) {
			for b.Loop() {
				find(b, keys, w.spellings)
			}
		})
	}
}

package scaling

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
)

// firstCAS is what the fake's items follow.
const firstCAS = uint64(1) << 40

// Two of five items are orphans, which only the keys that are used can show.
func TestPurgeDeletesTheOrphansOfAProvenRing(t *testing.T) {
	of, err := ring.New(ring.Ketama, servers(3))
	if err != nil {
		t.Fatal(err)
	}
	var own, orphans []string
	for i := 0; len(own) < 3000 || len(orphans) < 2000; i++ {
		if key := fmt.Sprintf("key-%d", i); of.Shard([]byte(key)) == 1 {
			own = append(own, key)
		} else {
			orphans = append(orphans, key)
		}
	}
	own, orphans = append(own[:3000:3000], wire.DiscoveryItem), orphans[:2000]
	all := Orphans{Items: int64(len(orphans))}
	for _, key := range orphans {
		all.Bytes += int64(len(key) + len("value"))
	}
	for name, c := range map[string]struct {
		dryRun bool
		recent int
		ring   string
		// changed is an orphan that a client changes after the scan has visited it.
		changed string
		// runs is for how many checks memcached is the same process.
		runs    int
		want    Orphans
		deleted int
		says    string
	}{
		"it is deleted":                {recent: 2000, want: all, deleted: 2000},
		"a dry run":                    {recent: 2000, want: all, dryRun: true},
		"few keys are used":            {recent: 1999, says: "3000 of 5000 keys of shard 1"},
		"few keys are used, a dry run": {recent: 1999, dryRun: true, says: "3000 of 5000 keys of shard 1"},
		"another ring":                 {recent: 2000, ring: ring.Jump, says: ErrUnproven.Error()},
		"an unknown ring":              {recent: 2000, ring: "Maglev", says: "Maglev"},
		"a client changes an orphan":   {recent: 2000, changed: orphans[0], want: Orphans{all.Items - 1, all.Bytes - int64(len(orphans[0])+len("value"))}, deleted: 1999},
		"memcached has started again":  {recent: 2000, runs: 2, want: all, deleted: 2000, says: "started again"},
		"it has, in a dry run":         {recent: 2000, runs: 2, dryRun: true, want: all, says: "started again"},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			keys := append(own[:len(own):len(own)], orphans...)
			server, m := newPurged(t, keys, c.runs)
			scans := 0
			m.Scan = func(ctx context.Context, order handover.Order, which func([]byte) bool, visit func(*memfile.Item) error) (memfile.Report, error) {
				if scans++; scans > 1 && c.changed != "" {
					server.Set(c.changed, fake.Item{Value: "newer"})
				}
				return scanOf(keys, c.recent)(ctx, order, which, func(item *memfile.Item) error {
					item.Size, item.CAS = len(item.Key)+len("value"), firstCAS+1+uint64(slices.Index(keys, string(item.Key)))
					return visit(item)
				})
			}
			got, err := Purge(t.Context(), m, cmp.Or(c.ring, ring.Ketama), servers(3), c.dryRun)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("%v, want %q", err, c.says)
			}
			left := server.Items()
			if got != c.want || len(left) != len(keys)-c.deleted {
				t.Errorf("%+v, want %+v; %d of %d items are left", got, c.want, len(left), len(keys))
			}
			for _, key := range own {
				if _, has := left[key]; !has {
					t.Fatalf("%s is deleted", key)
				}
			}
			if got := server.Requests("md "); len(got) < c.deleted || len(got) > 0 && !strings.Contains(got[0], " C") {
				t.Errorf("%d requests such as %q", len(got), got[:min(len(got), 1)])
			}
		}))
	}
}

// newPurged returns a shard with these keys, whose memcached is the same process for so many checks; 0 for all.
func newPurged(t *testing.T, keys []string, runs int) (*fake.Server, Memcached) {
	network, server, checks := &fake.Network{}, fake.New(), 0
	server.Before = func(request string) string { return map[string]string{"mn": "MN\r\n"}[request] }
	server.Serve(network, "memcached:11211")
	t.Cleanup(network.Close)
	for _, key := range keys {
		server.Set(key, fake.Item{Value: "value"})
	}
	return server, Memcached{Ordinal: 1, Server: protocol.Server{Address: "memcached:11211", DialContext: network.DialContext}, Run: func() string {
		if checks++; runs > 0 && checks > runs {
			return "another"
		}
		return "first"
	}}
}

// A target that can't compare the keys that it gets keeps none of them, whatever clients made of the old values. A memcached without CAS
// has no use for the pipe of a comparison.
func TestForgetDeletesAllThatMovesToTheShard(t *testing.T) {
	from, err := ring.New(ring.Ketama, servers(3))
	if err != nil {
		t.Fatal(err)
	}
	to, err := ring.New(ring.Ketama, servers(2))
	if err != nil {
		t.Fatal(err)
	}
	keys, moved := []string{wire.DiscoveryItem}, []string{}
	for i := 0; len(moved) < 1000; i++ {
		key := fmt.Sprintf("key-%d", i)
		if keys = append(keys, key); to.Shard([]byte(key)) == 1 && from.Shard([]byte(key)) != 1 {
			moved = append(moved, key)
		}
	}
	for name, c := range map[string]struct {
		ring  string
		runs  int // as above
		scans int
		left  int
		says  string
	}{
		"all":                         {scans: 3, left: len(keys) - len(moved)},
		"an unknown ring":             {ring: "Maglev", left: len(keys), says: ErrImpossible.Error()},
		"memcached has started again": {runs: 1, scans: 1, left: len(keys) - len(moved) + 1, says: "started again"},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			server, m := newPurged(t, keys, c.runs)
			server.NoCAS = true
			scans := 0
			m.Scan = func(ctx context.Context, order handover.Order, which func([]byte) bool, visit func(*memfile.Item) error) (memfile.Report, error) {
				scans++
				items := server.Items()
				shown := slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
					_, has := items[key]
					return !has || scans == 1 && key == moved[0] // a scan can miss an item
				})
				if scans == 1 {
					server.Set(moved[1], fake.Item{Value: "value and what a client appends"})
				}
				return scanOf(shown, 0)(ctx, order, which, visit)
			}
			err := Forget(t.Context(), m, Change{Ring: cmp.Or(c.ring, ring.Ketama), From: servers(3), To: servers(2)})
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("%v, want %q", err, c.says)
			}
			left := server.Items()
			if len(left) != c.left || scans != c.scans {
				t.Errorf("%d of %d items are left after %d scans, want %d after %d", len(left), len(keys), scans, c.left, c.scans)
			}
		}))
	}
}

func bubble(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

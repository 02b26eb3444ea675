package process

import (
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func wantHandedOver(t *testing.T, start agentwire.Start, size int64) {
	t.Helper()
	t.Log(start.Reason)
	if start.Result != agentwire.StartHandedOver || start.Items != size || start.ItemsBefore != size || start.At.IsZero() ||
		start.HandoverSeconds <= 0 || start.GapSeconds <= 0 || start.GapSeconds > start.HandoverSeconds || start.UnavailableSeconds != start.GapSeconds {
		t.Errorf("start %+v, want HandedOver with %d items", start, size)
	}
}

// flushesAt returns when a flush_all with a delay deletes the items.
func flushesAt(t *testing.T, c *pods.Cache) time.Time {
	t.Helper()
	clock, err := memfile.ClockOfRunning(t.Context(), protocol.At(c.Address()))
	pods.Must(t, err)
	return clock.At(clock.OldestLive)
}

func TestDrainedPodHandsItsItemsOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to     string
		before, next []string
	}{
		"to the same version":           {pods.Newest, pods.Newest, nil, nil},
		"to a newer version":            {pods.Oldest, pods.Newest, nil, nil},
		"to an older version":           {pods.Newest, pods.Oldest, nil, nil},
		"between versions in between":   {pods.Middle, pods.Middle, nil, nil},
		"to more memory":                {pods.Newest, pods.Newest, []string{"-m", "64"}, []string{"-m", "128"}},
		"to less memory":                {pods.Newest, pods.Newest, []string{"-m", "128"}, []string{"-m", "64"}},
		"to larger items":               {pods.Oldest, pods.Newest, nil, []string{"-I", "4m"}},
		"to another growth factor":      {pods.Newest, pods.Middle, nil, []string{"-f", "1.5"}},
		"from a memcached without CAS":  {pods.Newest, pods.Newest, []string{"-C"}, nil},
		"to one without chunked items":  {pods.Newest, pods.Newest, nil, []string{"-o", "no_chunked_items"}},
		"with the flag for large pages": {pods.Middle, pods.Newest, []string{"-I", "8m"}, []string{"-I", "8m"}},
		"without key dumps":             {pods.Oldest, pods.Middle, []string{"-X"}, []string{"-o", "no_lru_crawler"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next, _ := pods.NewPair(t)
			old.Memcached, next.Memcached = pods.MemcachedPath(c.from), pods.MemcachedPath(c.to)
			old.Annotate(agentwire.ArgumentsFile, old.Arguments(c.before...))
			next.Annotate(agentwire.ArgumentsFile, next.Arguments(c.next...))
			old.Run()
			client := fillWithAll(t, 1, old.AsCache())[0]
			want := itemsOf(client, old.AsCache())
			client.Do("flush_all 1000")
			flushes := flushesAt(t, old.AsCache())

			old.Signal(syscall.SIGTERM)
			next.Launch()
			status := next.WaitForPhase(agentwire.PhaseServing)
			wantHandedOver(t, status.Start, int64(len(want)))
			if code := old.Exit(); code != 0 {
				t.Errorf("the other agent exited with code %d", code)
			}
			pods.WantEqual(t, "after the handover", itemsOf(client, next.AsCache()), want)
			if at := flushesAt(t, next.AsCache()); at.Sub(flushes).Abs() > time.Minute { // no two readings of clocks are equal
				t.Errorf("the flush_all is at %s, want %s", at, flushes)
			}
			if status.Version != c.to || status.Handover != nil {
				t.Errorf("version %s, progress %+v", status.Version, status.Handover)
			}
		})
	}
}

// A pod with less memory keeps the items that were used last.
func TestPodWithLessMemoryKeepsTheHottestItems(t *testing.T) {
	t.Parallel()
	const size, hot, bytes = 75_000, 7000, 1000
	old, next, _ := pods.NewPair(t, "-m", "128")
	next.Annotate(agentwire.ArgumentsFile, next.Arguments("-m", "80"))
	old.Run()
	pods.FillSized(t, old.Address(), size, bytes)
	pods.NextSecond(time.Now().Unix() + 1)
	pods.FillSized(t, old.Address(), hot, bytes)
	old.Signal(syscall.SIGTERM)
	next.Launch()
	start := next.WaitForPhase(agentwire.PhaseServing).Start
	if start.Result != agentwire.StartHandedOver || start.ItemsBefore != size || start.Items > size*2/3 {
		t.Errorf("start %+v", start)
	}
	set := items.Sized("item", hot, bytes, next.Address())
	defer set.Close()
	_, err := set.Keep(0.99)
	pods.Must(t, err)
}

package process

import (
	"regexp"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next, _ := pods.NewPair(t)
			old.Memcached, next.Memcached = pods.MemcachedPath(c.from), pods.MemcachedPath(c.to)
			old.Annotate(agentwire.ArgumentsFile, old.Arguments(c.before...))
			next.Annotate(agentwire.ArgumentsFile, next.Arguments(c.next...))
			old.Run()
			entries := someItems(1, 2000)
			putItems(old.AsCache(), entries)
			want := getItems(old.AsCache(), names(entries))

			old.Signal(syscall.SIGTERM)
			next.Launch()
			status := next.WaitForPhase(agentwire.PhaseServing)
			wantHandedOver(t, status.Start, int64(len(entries)))
			if code := old.Exit(); code != 0 {
				t.Errorf("the other agent exited with code %d", code)
			}
			have := getItems(next.AsCache(), names(entries))
			wantItems(t, have, want)
			if status.Version != c.to || status.Handover != nil {
				t.Errorf("version %s, progress %+v", status.Version, status.Handover)
			}
		})
	}
}

// By when a handover comes to its end is tested in internal/handover.
func TestHandoverHasUntilTheDrainTimeout(t *testing.T) {
	t.Parallel()
	old, next, _ := pods.NewPair(t)
	old.DrainTimeout = 2 * time.Hour
	old.Run()
	pods.Fill(t, old.Address(), 100)
	drained := time.Now()
	old.Signal(syscall.SIGTERM)
	next.Launch()
	wantHandedOver(t, next.WaitForPhase(agentwire.PhaseServing).Start, 100)
	old.Exit()
	latest := time.Now().Add(old.DrainTimeout)
	found := regexp.MustCompile(`msg="A handover session started" .*deadline=(\S+)`).FindStringSubmatch(old.Log.String())
	if found == nil {
		t.Fatal("no handover session started")
	}
	if deadline, err := time.Parse(time.RFC3339, found[1]); err != nil || deadline.Before(drained.Add(old.DrainTimeout/2)) || deadline.After(latest) {
		t.Errorf("the handover may take until %s, %v, want a moment before %s", found[1], err, latest)
	}
}

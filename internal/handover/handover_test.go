package handover

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestHandoverCopiesAllItems(t *testing.T) {
	t.Parallel()
	origin, cache := newOrigin(1000), newCache(t)
	origin.items["large"] = entry{value: strings.Repeat("x", 900<<10)}
	origin.items["empty"] = entry{}
	origin.items["in base64"] = entry{value: "b", binary: true}
	origin.items["a key\r\nwith a line end"] = entry{value: "c", binary: true}
	origin.items["expires"] = entry{value: "d", ttl: 1000}
	want := origin.snapshot()
	source := start(t, offerOf(origin, len(want)), patient)
	target, log := targetOf(t, source.address, cache), &bytes.Buffer{}
	target.Log = slog.New(slog.NewTextHandler(log, nil))
	result, err := receive(t.Context(), target, patient)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("rejected=0 bytes=%d ", result.Bytes); !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, log)
	}
	source.wait()
	got := cache.snapshot()
	if e := got["expires"]; e.ttl < 900 || e.ttl > 1000 {
		t.Errorf("an item has a TTL of %d s, want almost 1000", e.ttl)
	}
	e := got["expires"]
	e.ttl = 1000
	got["expires"] = e
	mustEqual(t, got, want)
	n := int64(len(want))
	if result.Items != n || result.ItemsBefore != n || result.Passes != 2 || result.Rejected != 0 || result.Bytes != origin.result.Bytes {
		t.Errorf("the target reports %+v", result)
	}
	if r := origin.result; r.Items != n || r.ItemsBefore != n || r.Passes != 2 || r.Bytes < 900<<10 {
		t.Errorf("the source reports %+v", r)
	}
	if events := strings.Join(origin.history(), ", "); events != "scan, cold first, scan, stop, scan, complete" {
		t.Error(events)
	}
	if origin.reserved != 0 {
		t.Errorf("%d bytes remain reserved", origin.reserved)
	}
}

// Clients change items while the passes run, at any place before or after the scan.
func TestTargetEqualsLastScan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			const n = 2000
			origin, cache := newOrigin(n), newCache(t)
			origin.noRoom = seed == 0
			change := func(count int) {
				for range count {
					key := fmt.Sprintf("key-%d", random.IntN(2*n))
					switch random.IntN(3) {
					case 0:
						origin.remove(key)
					case 1:
						origin.set(key, entry{value: fmt.Sprint(random.IntN(3)), binary: random.IntN(2) == 0})
					case 2:
						origin.set(key, entry{value: "f", flags: random.Uint32N(3)})
					}
				}
			}
			origin.during = func(scan int) {
				if len(origin.outcome()) == 0 {
					change(random.IntN(3000))
				}
			}
			source := start(t, offerOf(origin, random.IntN(n)), patient)
			result, err := receive(t.Context(), targetOf(t, source.address, cache), patient)
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, cache.snapshot(), origin.snapshot())
			if int(result.Items) != len(origin.items) {
				t.Errorf("%+v", result)
			}
		})
	}
}

package handover

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

func TestHandoverCopiesAllItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(1000), newCache(t)
		origin.items["large"] = entry{value: strings.Repeat("x", 900<<10)}
		origin.items["empty"] = entry{}
		origin.items["in base64"] = entry{value: "b", binary: true}
		origin.items["a key\r\nwith a line end"] = entry{value: "c", binary: true}
		origin.items["expires"] = entry{value: "d", expires: time.Now().Unix() + 1000}
		want := origin.snapshot()
		source := start(t, cache.network, offerOf(origin, len(want)))
		target, log := targetOf(t, cache), &bytes.Buffer{}
		target.Log = slog.New(slog.NewTextHandler(log, nil))
		result, err := Receive(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("rejected=0 bytes=%d ", result.Bytes); !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
		source.wait()
		mustEqual(t, cache.snapshot(), want)
		if state := result.State; len(state) != 2 || len(state["known"]) != MaxState {
			t.Errorf("the state has %d entries", len(state))
		}
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
	})
}

func TestItemsThatAreTooLargeForTheTargetAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(10), newCache(t)
		origin.items["large"] = entry{value: strings.Repeat("x", 1000)}
		cache.ItemSizeMax = 1000
		start(t, cache.network, offerOf(origin, 11))
		result, err := Receive(t.Context(), targetOf(t, cache))
		if err != nil || result.ItemsBefore != 11 || result.Items != 10 || result.Rejected != 1 {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// Clients change items while the passes run, at any place before or after the scan.
func TestTargetEqualsLastScan(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
				start(t, cache.network, offerOf(origin, random.IntN(n)))
				result, err := Receive(t.Context(), targetOf(t, cache))
				if err != nil {
					t.Fatal(err)
				}
				mustEqual(t, cache.snapshot(), origin.snapshot())
				if int(result.Items) != len(origin.items) {
					t.Errorf("%+v", result)
				}
			})
		})
	}
}

// memcached keeps answers while it waits for the rest of a value. What is sent shortly one after the other arrives together.
func TestLargeItemWaitsForNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, cache := newOrigin(2*peerlink.BatchItems+1), newCache(t)
		for _, key := range []string{"key-1", "key-2"} {
			origin.items[key] = entry{value: strings.Repeat("x", maxBuffered+1)}
		}
		start(t, cache.network, offerOf(origin, len(origin.items)))
		target := targetOf(t, cache)
		target.Memcached.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := cache.network.DialContext(ctx, network, address)
			return &slowConn{Conn: conn}, err
		}
		if _, err := Receive(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		mustEqual(t, cache.snapshot(), origin.snapshot())
	})
}

// slowConn delivers what is written after a second.
type slowConn struct {
	net.Conn
	mu      sync.Mutex
	written []byte
}

func (c *slowConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.written) == 0 {
		time.AfterFunc(time.Second, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			_, _ = c.Conn.Write(c.written)
			c.written = nil
		})
	}
	c.written = append(c.written, p...)
	return len(p), nil
}

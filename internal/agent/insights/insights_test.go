package insights

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// However many keys there are, the counts are bounded and as wrong as the answer says.
func TestCountsOfKeysAreBounded(t *testing.T) {
	counts, exact := keyCounts{keys: map[string]*keyCount{}}, map[string]int{}
	for i := range maxReads {
		key := fmt.Sprintf("key%d", rand.IntN(50_000))
		switch {
		case i%50 == 0:
			key = "hot"
		case i%80 == 0:
			key = "missed"
		}
		exact[key]++
		counts.add(protocol.Fetch{Key: []byte(key), Hit: key != "missed"})
		if len(counts.keys) > maxKeys {
			t.Fatalf("%d keys", len(counts.keys))
		}
	}
	if counts.taken == 0 || counts.taken > maxReads/maxKeys {
		t.Errorf("counts are too low by %d", counts.taken)
	}
	for key, k := range counts.keys {
		if k.count > exact[key] || k.count+counts.taken < exact[key] {
			t.Errorf("%s: %d to %d reads, exactly %d", key, k.count, k.count+counts.taken, exact[key])
		}
	}
	lines := strings.Split(string(counts.text(2*time.Second, 5)), "\n")
	if len(lines) != topKeys+4 || !strings.HasSuffix(lines[2], "  100%  hot") || !strings.HasSuffix(lines[3], "    0%  missed") ||
		!strings.HasSuffix(lines[0], "; memcached did not report 5 more") {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if text := string((&keyCounts{}).text(time.Second, 0)); text != "0 reads in 1.0s\n" {
		t.Errorf("without reads: %q", text)
	}
}

// Any client can choose a key that would control the terminal of who looks.
func TestKeysAreQuotedUnlessTheyArePrintable(t *testing.T) {
	for key, want := range map[string]string{"user:1/ü%20": "user:1/ü%20", "a b": "a b", "\x1b[2J": `"\x1b[2J"`, "\xff": `"\xff"`, `"`: `"\""`} {
		counts := keyCounts{keys: map[string]*keyCount{}}
		counts.add(protocol.Fetch{Key: []byte(key)})
		if text := string(counts.text(time.Second, 0)); !strings.HasSuffix(text, "  "+want+"\n") {
			t.Errorf("%q is printed as\n%s", key, text)
		}
	}
}

func TestInsightsOfAShardThatDoesNotServe(t *testing.T) {
	restarting := func() (*process.Client, wire.Phase) { return nil, wire.PhaseRestarting }
	w := httptest.NewRecorder()
	handler(restarting).ServeHTTP(w, httptest.NewRequest("GET", "/connections", nil))
	if w.Code != 503 || !strings.Contains(w.Body.String(), "phase Restarting") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

func TestWatchesAreBounded(t *testing.T) {
	client := process.NewClient(protocol.At("127.0.0.1:1"))
	serving := func() (*process.Client, wire.Phase) { return client, wire.PhaseServing }
	for _, query := range []string{"", "?for=0s", "?for=-1s", "?for=31s", "?for=long"} {
		w := httptest.NewRecorder()
		handler(serving).ServeHTTP(w, httptest.NewRequest("GET", "/hotkeys"+query, nil))
		if w.Code != 502 || !strings.Contains(w.Body.String(), "at most 30s") {
			t.Errorf("%s: %d: %s", query, w.Code, w.Body)
		}
	}
}

func TestSampleIsOfTheKeysOfClients(t *testing.T) { synctest.Test(t, testSample) }

func testSample(t *testing.T) {
	network := &fake.Network{}
	server := fake.New()
	defer server.Serve(network, "cache").Stop()
	client := process.NewClient(protocol.Server{Address: "cache", DialContext: network.DialContext})
	ask := func() []string {
		w := httptest.NewRecorder()
		handler(func() (*process.Client, wire.Phase) { return client, wire.PhaseServing }).ServeHTTP(w, httptest.NewRequest("GET", "/sample", nil))
		if w.Code != 200 {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		return strings.Fields(w.Body.String())
	}
	server.Set(wire.DiscoveryItem, fake.Item{})
	server.Set("key", fake.Item{})
	if keys := ask(); len(keys) != 1 || keys[0] != "a2V5" {
		t.Errorf("got %q", keys)
	}
	for i := range sampleKeys {
		server.Set(fmt.Sprint(i), fake.Item{})
	}
	if keys := ask(); len(keys) != sampleKeys {
		t.Errorf("got %d keys", len(keys))
	}
}

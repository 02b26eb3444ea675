package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

func TestTargetFindsOnlyAnotherPodThatHandsOver(t *testing.T) {
	for name, c := range map[string]struct {
		status wire.Status
		found  bool
		reason string
	}{
		"another pod":                        {wire.Status{PodUID: "other", PodIP: "10.0.0.1", HandoverPort: 1}, true, ""},
		"this pod":                           {wire.Status{PodUID: "own", PodIP: "10.0.0.1", HandoverPort: 1}, false, ""},
		"an older agent, or one without key": {wire.Status{PodUID: "other"}, false, "pod other does not hand over its items"},
		"an agent that knows no address":     {wire.Status{PodUID: "other", HandoverPort: 1}, false, "pod other does not hand over its items"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(c.status)
			}))
			defer server.Close()
			found, reason := findOther(t.Context(), server.Listener.Addr().String(), "own")
			if (found != nil) != c.found || reason != c.reason {
				t.Errorf("found %+v, reason %q", found, reason)
			}
		})
	}
	t.Run("no pod", func(t *testing.T) {
		if found, reason := findOther(t.Context(), "127.0.0.1:1", "own"); found != nil || reason != "" {
			t.Errorf("found %+v, reason %q", found, reason)
		}
	})
}

// No pod of the shard serves any more.
func TestTargetDoesNotTryAgainWhenTheOtherPodNoLongerExists(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if !accepts(t.Context(), listener.Addr().String()) {
		t.Error("the other pod accepts connections")
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if accepts(t.Context(), listener.Addr().String()) {
		t.Error("the other pod no longer exists")
	}
}

func TestUnreadCASSeedIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	if err := seedCAS(dir); err != nil {
		t.Fatal(err)
	}
	got, err := readSavedData(dir)
	if err != nil || got.file != nil || got.ran || got.damage != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := os.Stat(metaPath(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the seed is still there: %v", err)
	}
}

func TestCASOfEachPodBeginsElsewhere(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		dir := t.TempDir()
		if err := seedCAS(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "memory.meta"))
		if err != nil {
			t.Fatal(err)
		}
		var base uint64
		if n, err := fmt.Sscanf(string(text), "Tmain\nKcurrent_cas %d\n", &base); n != 1 || err != nil || base < 1<<40 || base > 1<<60 || base%(1<<40) != 0 {
			t.Errorf("%q: base %d, %v", text, base, err)
		}
		seen[string(text)] = true
	}
	if len(seen) < 15 {
		t.Errorf("20 pods have only %d different counters", len(seen))
	}
}

// At the end of a handover no pod of the shard serves, so that the kubelet's next probe would
// come late.
func TestProbeWaitsForTheEndOfAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states atomic.Pointer[state]
		states.Store(&state{status: wire.Status{Phase: wire.PhaseReceiving}, superseded: make(chan struct{})})
		began := time.Now()
		err := checkReadiness(t.Context(), &states)
		if took := time.Since(began); err == nil || took < time.Second || took >= 2*time.Second {
			t.Errorf("it answered %v after %s, want longer than the probes' period and shorter than their timeout", err, took)
		}
		go func() {
			time.Sleep(time.Second)
			first := states.Swap(&state{status: wire.Status{Phase: wire.PhaseStopping}, superseded: make(chan struct{})})
			close(first.superseded)
		}()
		began = time.Now()
		err = checkReadiness(t.Context(), &states)
		if took := time.Since(began); took != time.Second || err == nil || !strings.Contains(err.Error(), "Stopping") {
			t.Errorf("it answered %v after %s, want the next state at once", err, took)
		}
	})
}

package process

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Until the agent knows the settings with which memcached started, it takes those of a client for them.
func TestSettingsOfASlowMemcachedAreSoonKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network fake.Network
		server, log, began := fake.New(), slog.New(slog.DiscardHandler), time.Now()
		p := New(protocol.Server{Address: "memcached", DialContext: network.DialContext}, log)
		var checks []float64
		server.Before = func(string) string {
			checks = append(checks, time.Since(began).Seconds())
			switch len(checks) {
			case 1:
				time.Sleep(700 * time.Millisecond) //nolint:forbidigo // in a bubble
			case 2:
				return "SERVER_ERROR out of memory\r\n"
			case 4:
				go p.Exited(0)
			}
			return ""
		}
		server.Serve(&network, "memcached")
		p.Guard("1.6.45", nil, func() (int64, bool) { return 0, false }, log)
		if want := []float64{0, 1.5, 2.5, 12.5}; !slices.Equal(checks, want) {
			t.Errorf("checks after %v s, want %v", checks, want)
		}
		server.Stop()
	})
}

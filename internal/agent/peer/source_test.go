package peer

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// The target repeats after ErrBusy what it starts empty after other errors.
func TestOfferWaitsForAFreeConnection(t *testing.T) {
	const address = "127.0.0.1:11211"
	for name, c := range map[string]struct {
		full time.Duration
		want error
	}{"free": {0, nil}, "free later": {freeTimeout / 2, nil}, "never": {time.Hour, handover.ErrNotStarted}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &fake.Network{}
				defer network.Close()
				server := fake.New()
				free := time.Now().Add(c.full)
				server.Before = func(string) string {
					if time.Now().Before(free) {
						return "ERROR Too many open connections\r\n"
					}
					return ""
				}
				server.Serve(network, address)
				s := &Source{memory: &Memory{DataDir: t.TempDir(), Client: process.NewClient(protocol.Server{Address: address, DialContext: network.DialContext})}}
				path := datadir.MemoryPath(s.memory.DataDir)
				if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 64<<20)); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err := s.offer(t.Context())
				if waited := time.Since(began); !errors.Is(err, c.want) || waited != min(c.full, freeTimeout) {
					t.Errorf("after %s: %v", waited, err)
				}
			})
		})
	}
}

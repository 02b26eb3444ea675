package peer

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

func TestTableLeavesRoomForTheItemsThatAreStoredLater(t *testing.T) {
	former, dir := memory.Cgroup, t.TempDir()
	t.Cleanup(func() { memory.Cgroup = former })
	memory.Cgroup = dir
	const mebibyte = 1 << 20
	for file, text := range map[string]string{"memory.max": "209715200", "memory.current": "52428800", "memory.stat": "shmem 10485760\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &Source{memory: &Memory{Arguments: []string{"-m", "64"}, Version: "1.6.45"}}
	for bytes, want := range map[int64]bool{70 * mebibyte: true, 100 * mebibyte: false} {
		release, ok := s.Reserve(bytes)
		if release(); ok != want {
			t.Errorf("a table of %d MiB has room: %t", bytes/mebibyte, ok)
		}
	}
}

// A pass that fails can cost the items of both pods.
func TestScanNeedsNoConnectionThatClientsUse(t *testing.T) {
	const first, others = "127.0.0.1:11211", "127.0.0.2:11211"
	synctest.Test(t, func(t *testing.T) {
		network := &fake.Network{}
		defer network.Close()
		fake.New().Serve(network, first)
		full := fake.New()
		full.Before = func(string) string { return "ERROR Too many open connections\r\n" }
		full.Serve(network, others)
		address := first
		client := process.NewClient(protocol.Server{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return network.DialContext(ctx, "tcp", address)
		}})
		if _, err := client.GeneralStats(t.Context()); err != nil {
			t.Fatal(err)
		}
		address = others
		m := &Memory{DataDir: t.TempDir(), Client: client}
		path := datadir.MemoryPath(m.DataDir)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 64<<20)); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Scan(t.Context(), handover.AnyOrder, func(*memfile.Item) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

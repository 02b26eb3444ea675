package peer

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/agent/memory"
)

func TestTableLeavesRoomForTheItemsThatAreStoredLater(t *testing.T) {
	former, limit, dir := memory.Cgroup, debug.SetMemoryLimit(-1), t.TempDir()
	t.Cleanup(func() { debug.SetMemoryLimit(limit); debug.SetGCPercent(100); memory.Cgroup = former })
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

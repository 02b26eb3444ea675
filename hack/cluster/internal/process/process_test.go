package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
)

func TestProcessIdentity(t *testing.T) {
	const node = "node2"
	d := cache.Under(t.TempDir())
	if err := os.MkdirAll(d.State, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, ok := Alive(d, node); ok {
		t.Error("a node that was never started runs")
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := remember(d, node, cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if pid, ok := Alive(d, node); !ok || pid != cmd.Process.Pid {
		t.Errorf("running: %d, %t", pid, ok)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, ok := Alive(d, node); ok {
		t.Error("it exited and counts as running")
	}
	// the number again, for another process
	if err := os.WriteFile(filepath.Join(d.State, node+".json"), []byte(`{"PID":`+strconv.Itoa(os.Getpid())+`,"Start":"1"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok := Alive(d, node); ok {
		t.Error("another process with the same number passes for the node")
	}
}

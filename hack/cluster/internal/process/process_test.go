package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

func TestProgramIsStartedAgainWhenTheDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	supervisor, script := filepath.Join(dir, "supervise.sh"), filepath.Join(dir, "script.sh")
	// The second time it ends all.
	second := `run program sh -c 'echo started; [ "$(wc -l <"$0")" = 1 ] || kill -KILL -"$1"' "$logs/program.log" $$`
	for file, content := range map[string]string{supervisor: string(supervise), script: second} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := exec.Command("bash", supervisor, dir, script)
	cmd.Stdout, cmd.Stderr = full, full
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	_ = cmd.Run()
	if log, err := os.ReadFile(filepath.Join(dir, "program.log")); strings.Count(string(log), "started") != 2 {
		t.Errorf("it was not started again: %q, %v", log, err)
	}
}

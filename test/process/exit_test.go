package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func TestTerminationLogSaysWhyTheContainerCannotStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*testing.T, *pods.Shard)
		want    string
	}{
		"a data directory that is not writable": {func(t *testing.T, s *pods.Shard) {
			pods.Must(t, os.Chmod(s.Data, 0o555))
		}, "the data directory must be writable"},
		// A full tmpfs that is smaller than -m kills memcached.
		"a volume that is smaller than memcached's memory": {func(t *testing.T, s *pods.Shard) {
			pods.Must(t, syscall.Mount("tmpfs", s.Data, "tmpfs", 0, "size=48m,mode=0777"))
			t.Cleanup(func() { _ = syscall.Unmount(s.Data, syscall.MNT_DETACH) })
		}, "the data volume has 48 MiB, but memcached with -m 64 needs 65 MiB"},
		"no data directory": {func(_ *testing.T, s *pods.Shard) { s.Data = filepath.Join(s.Dir, "missing") }, "the data directory must be writable"},
		"arguments that memcached rejects": {func(_ *testing.T, s *pods.Shard) {
			s.Annotate(agentwire.ArgumentsFile, s.Arguments("-I", "1024m"))
		}, "Cannot set item size limit higher than 1/2 of memory max"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			c.prepare(t, s)
			s.Launch()
			if code := s.Exit(); code == 0 {
				t.Error("status 0")
			}
			pods.WantContains(t, "the reason", s.Reason(), c.want)
		})
	}
}

func TestAnotherMemcachedAtThePortIsNotMistakenForOwn(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	other := pods.StartCache(t, pods.Newest)
	s.Port = other.Port
	s.Annotate(agentwire.ArgumentsFile, s.Arguments())
	s.Launch()
	if code := s.Exit(); code == 0 {
		t.Error("status 0")
	}
	pods.WantContains(t, "the reason", s.Reason(), "failed to listen on TCP port")
	if strings.Contains(s.Log.String(), "memcached is serving") {
		t.Error("it mistook the other memcached for its own")
	}
}

// writeExecutable writes an executable file. A child process writes it: what other tests fork would inherit this process's open
// file until its exec, and the kernel executes no file that is open for writing.
func writeExecutable(t testing.TB, path, text string) {
	t.Helper()
	install := exec.Command("install", "-m", "755", "/dev/stdin", path)
	install.Stdin = strings.NewReader(text)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", err, out)
	}
}

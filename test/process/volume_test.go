package process

import (
	"bytes"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// A full tmpfs that is smaller than -m kills memcached.
func TestVolumeSmallerThanMemory(t *testing.T) {
	t.Parallel()
	small := func(t *testing.T) string {
		dir := filepath.Join(pods.SharedDir(t), "small")
		pods.MakeDir(t, dir)
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=48m,mode=0777"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		return dir
	}
	t.Run("memcached alone starts and dies by SIGBUS", func(t *testing.T) {
		t.Parallel()
		r := pods.StartCacheIn(t, pods.Newest, small(t))
		conn, err := protocol.At(r.Address()).Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		value := bytes.Repeat([]byte("x"), 500_000)
		for i := 0; err == nil && i < 100; i++ {
			err = conn.Set(t.Context(), fmt.Sprintf("k%d", i), value, 0)
		}
		if err == nil {
			t.Fatal("it stored 50 MB: the trap no longer exists")
		}
		<-r.Exited
		wait := r.Command.ProcessState.Sys().(syscall.WaitStatus)
		if wait.Signal() != syscall.SIGBUS {
			t.Errorf("it exited with %v", r.Command.ProcessState)
		}
	})
	t.Run("the agent does not start it, with a reason", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		s.Data = small(t)
		s.Launch()
		if status := s.Exit(); status == 0 {
			t.Error("status 0")
		}
		pods.WantContains(t, "the reason", s.Reason(), "the data volume has 48 MiB, but memcached with -m 64 needs 65 MiB")
	})
}

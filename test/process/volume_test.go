package process

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// A full tmpfs that is smaller than -m kills memcached.
func TestMemcachedIsNotStartedOnAVolumeSmallerThanItsMemory(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Data = filepath.Join(pods.SharedDir(t), "small")
	pods.MakeDir(t, s.Data)
	pods.Must(t, syscall.Mount("tmpfs", s.Data, "tmpfs", 0, "size=48m,mode=0777"))
	t.Cleanup(func() { _ = syscall.Unmount(s.Data, syscall.MNT_DETACH) })
	s.Launch()
	if status := s.Exit(); status == 0 {
		t.Error("status 0")
	}
	pods.WantContains(t, "the reason", s.Reason(), "the data volume has 48 MiB, but memcached with -m 64 needs 65 MiB")
}

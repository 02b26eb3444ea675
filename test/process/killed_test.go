package process

import (
	"syscall"
	"testing"
	"time"
)

// The kubelet ends the pod at the end of its grace period, the agent with it: a
// memcached that stands still is killed before, so that the next one starts in time.
func TestAMemcachedThatHangsWhenItIsToEndIsKilled(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	status := s.run()
	s.freeze(status.PID)
	s.signal(syscall.SIGTERM)
	if status := s.exit(2 * time.Minute); status != 0 || exists(s.meta()) {
		t.Errorf("status %d, saved %v", status, exists(s.meta()))
	}
}

package agent

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// slowError says that memcached did not do something in time, or was killed before. An overloaded node can be the cause, so
// it is no verdict about the image, the arguments or a Secret: what failed with it is repeated.
type slowError struct {
	action string
	within time.Duration // 0: memcached was killed
}

func (e *slowError) Error() string {
	if e.within == 0 {
		return fmt.Sprintf("memcached was killed and did not %s: the container or the node is out of memory", e.action)
	}
	return fmt.Sprintf("memcached did not %s within %s: the node is overloaded, or memcached hangs", e.action, e.within)
}

// isKilled returns whether the kernel killed a process, or another process did.
func isKilled(status syscall.WaitStatus) bool {
	return status.Signaled() && status.Signal() == syscall.SIGKILL
}

func isSlow(err error) bool {
	_, ok := errors.AsType[*slowError](err)
	return ok
}

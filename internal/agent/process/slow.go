package process

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// SlowError says that memcached did not do something in time, or was killed before. An overloaded node can be the cause, so
// it is no verdict about the image, the arguments or a Secret: what failed with it is repeated.
type SlowError struct {
	// Action is what memcached did not do, as in "respond".
	Action string
	Within time.Duration // 0: memcached was killed
}

func (e *SlowError) Error() string {
	if e.Within == 0 {
		return fmt.Sprintf("memcached was killed and did not %s: the container or the node is out of memory", e.Action)
	}
	return fmt.Sprintf("memcached did not %s within %s: the node is overloaded, or memcached hangs", e.Action, e.Within)
}

// IsKilled returns whether the kernel killed a process, or another process did.
func IsKilled(status syscall.WaitStatus) bool {
	return status.Signaled() && status.Signal() == syscall.SIGKILL
}

// IsSlow reports whether an error is a SlowError or wraps one.
func IsSlow(err error) bool {
	_, ok := errors.AsType[*SlowError](err)
	return ok
}

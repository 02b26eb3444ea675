package agent

import (
	"errors"
	"fmt"
	"time"
)

// slowError says that memcached did not do something in time. An overloaded node can be the cause, so it is no verdict
// about the image, the arguments or a Secret: what failed with it is repeated.
type slowError struct {
	action string
	within time.Duration
}

func (e *slowError) Error() string {
	return fmt.Sprintf("memcached did not %s within %s: the node is overloaded, or memcached hangs", e.action, e.within)
}

func isSlow(err error) bool {
	_, ok := errors.AsType[*slowError](err)
	return ok
}

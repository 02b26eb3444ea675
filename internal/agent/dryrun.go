package agent

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dryRunTimeout bounds a dry run by the supervisor, which handles nothing else in
// the meantime. A dry run takes 30 ms: without items there is nothing to read.
const dryRunTimeout = 3 * time.Second

// dryRun starts memcached without the items, on a free port, and returns the reason
// why it does not start within timeout.
//
// This protects the items: a memcached that exits after it has loaded them and
// before it listens has destroyed them, since it has changed pointers in them and
// has deleted memory.meta.
func dryRun(path string, arguments []string, timeout time.Duration) error {
	port, err := freePort()
	if err != nil {
		return fmt.Errorf("finding a port for a dry run: %w", err)
	}
	p, err := startProcess(path, append(slices.Clone(arguments), "-p", strconv.Itoa(port), "-U", "0"))
	if err != nil {
		return err
	}
	responses := make(chan firstResponse, 1)
	go awaitFirstResponse(p, responses)
	select {
	case r := <-responses:
		if r.hangs {
			err = fmt.Errorf("it accepts connections but did not respond for %s", hangTimeout)
		}
	case <-p.done:
		message, _ := p.exitReason()
		// The port was taken in the meantime, so memcached accepted the arguments.
		if strings.Contains(strings.ToLower(message), syscall.EADDRINUSE.Error()) {
			return nil
		}
		return errors.New(message)
	case <-time.After(timeout):
		err = fmt.Errorf("it did not respond within %s", timeout)
	}
	_ = p.signal(syscall.SIGKILL)
	<-p.done
	return err
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

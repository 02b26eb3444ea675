package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// dryRunTimeout bounds a dry run by the supervisor, which handles nothing else in
	// the meantime. A dry run takes 30 ms: without items there is nothing to read.
	dryRunTimeout = 3 * time.Second
	// dryRunPorts is how many ports a dry run tries.
	dryRunPorts = 3
)

// dryRun starts memcached without the items, on a free port, and returns the reason
// why it does not start within timeout.
//
// This protects the items: a memcached that exits after it has loaded them and
// before it listens has destroyed them, since it has changed pointers in them and
// has deleted memory.meta.
func dryRun(path string, arguments []string, timeout time.Duration) error {
	var err error
	for range dryRunPorts {
		// Another process may take the port first. An address that is still in use on
		// other ports is one of the arguments, with which memcached does not start.
		err = dryRunOnce(path, arguments, timeout)
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), syscall.EADDRINUSE.Error()) {
			break
		}
	}
	return err
}

func dryRunOnce(path string, arguments []string, timeout time.Duration) error {
	port, err := freePort()
	if err != nil {
		return fmt.Errorf("finding a port for a dry run: %w", err)
	}
	silent := slog.New(slog.DiscardHandler) // the error has the last line
	p, err := startProcess(path, append(slices.Clone(arguments), "-p", strconv.Itoa(port), "-U", "0"), silent)
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

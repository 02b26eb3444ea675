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
func dryRun(memcached binary, arguments []string, timeout time.Duration) error {
	var err error
	for range dryRunPorts {
		// Another process may take the port first. An address that is still in use on
		// other ports is one of the arguments, with which memcached does not start.
		err = dryRunOnce(memcached, arguments, timeout)
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), syscall.EADDRINUSE.Error()) {
			break
		}
	}
	return err
}

func dryRunOnce(memcached binary, arguments []string, timeout time.Duration) error {
	port, err := freePort()
	if err != nil {
		return fmt.Errorf("finding a port for a dry run: %w", err)
	}
	silent := slog.New(slog.DiscardHandler) // the error has the last line
	line, err := dryRunLine(memcached, arguments, port)
	if err == nil {
		_, err = memcached.users.prepare(arguments)
	}
	if err != nil {
		return err
	}
	line, server := memcached.users.server(line, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	p, err := startProcess(memcached.path, line, server, silent)
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

// dryRunLine returns memcached's words with one port. With TLS it is a loopback address without TLS,
// and memcached loads its certificate nevertheless.
func dryRunLine(memcached binary, arguments []string, port int) ([]string, error) {
	mode := tlsModeOf(arguments)
	if !mode.on {
		return append(slices.Clone(arguments), "-p", strconv.Itoa(port), "-U", "0"), nil
	}
	if _, err := memcached.tls.prepare(mode, time.Now()); err != nil {
		return nil, fmt.Errorf("the certificate for TLS can't be used: %w", err)
	}
	return append(memcached.tls.withoutListeners(arguments, mode), "-l", "notls:127.0.0.1:"+strconv.Itoa(port), "-U", "0"), nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/secrets"
)

const (
	// dryRunTimeout bounds a dry run that no memcached waits for. It takes 30 ms: without items there is nothing to read.
	// It takes more on a node that is overloaded, or that reads an image for the first time.
	dryRunTimeout = time.Minute
	// servingDryRunTimeout bounds one while memcached serves. The supervisor handles no SIGTERM in the meantime, and the
	// pod's grace period is 10 s longer than the drain and the save that follow it. The supervisor tries again after
	// dryRunRetry.
	servingDryRunTimeout = 10 * time.Second
	dryRunRetry          = time.Minute
	// dryRunPorts is how many ports a dry run tries.
	dryRunPorts = 3
)

// binary is the memcached of the image, and the Secrets with which it starts.
type binary struct {
	process.Binary
	secrets *secrets.Set
}

// dryRun starts memcached without the items, on a free port, and returns the reason
// why it does not start. It returns a SlowError if memcached neither responds nor exits
// within timeout.
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
	start, err := memcached.secrets.Prepare(arguments, time.Now())
	if err != nil {
		return err
	}
	line, server := start.DryRunLine(port)
	p, err := memcached.Start(memcached.Path, line, server, silent)
	if err != nil {
		return err
	}
	responses := make(chan process.FirstResponse, 1)
	go process.AwaitFirstResponse(p, responses)
	select {
	case r := <-responses:
		if r.Hangs {
			err = &process.SlowError{Action: "respond", Within: process.HangTimeout}
		}
	case <-p.Done:
		if process.IsKilled(p.Exit) {
			return &process.SlowError{Action: "respond"}
		}
		message, _ := p.ExitReason()
		return errors.New(message)
	case <-time.After(timeout):
		err = &process.SlowError{Action: "respond", Within: timeout}
	}
	_ = p.Signal(syscall.SIGKILL)
	<-p.Done
	return err
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

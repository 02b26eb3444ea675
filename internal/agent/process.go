package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

type process struct {
	pid    int
	client *client
	stderr *stderrTail
	signal func(os.Signal) error
	// done is closed when the process has exited; exit is valid from then on.
	done chan struct{}
	exit syscall.WaitStatus
}

func newProcess(server protocol.Server, log *slog.Logger) *process {
	return &process{client: newClient(server), stderr: &stderrTail{log: log}, done: make(chan struct{})}
}

func (p *process) exited(status syscall.WaitStatus) {
	p.exit = status
	close(p.done)
	p.client.close()
}

// startProcess starts memcached, which responds to the agent at server.
func startProcess(path string, words []string, server protocol.Server, log *slog.Logger) (*process, error) {
	command := exec.Command(path, cmdline.ForClients(words, mostFiles())...)
	p := newProcess(server, log)
	command.Stdout, command.Stderr = p.stderr, p.stderr
	// A process that inherited the pipe must not hide the exit of memcached.
	command.WaitDelay = time.Second
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting memcached: %w", err)
	}
	p.pid, p.signal = command.Process.Pid, command.Process.Signal
	go func() {
		var status syscall.WaitStatus
		if exit, ok := errors.AsType[*exec.ExitError](command.Wait()); ok {
			status = exit.Sys().(syscall.WaitStatus)
		}
		p.exited(status)
	}()
	return p, nil
}

// mostFiles returns how many files a child can open at most.
func mostFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64
	}
	return limit.Max
}

// wakeUntilExit connects to memcached until it has exited. memcached checks for a
// stop only when its event loop runs: once a second, or at a new connection.
func (p *process) wakeUntilExit() {
	for {
		p.client.poke()
		select {
		case <-p.done:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// exitReason describes an unexpected exit of memcached, and returns the exit code
// that the agent takes over.
func (p *process) exitReason() (message string, code int) {
	if p.exit.Signaled() {
		message, code = fmt.Sprintf("memcached was terminated by signal %q", p.exit.Signal()), 128+int(p.exit.Signal())
	} else {
		message, code = fmt.Sprintf("memcached exited unexpectedly with code %d", p.exit.ExitStatus()), max(p.exit.ExitStatus(), 1)
	}
	if last := p.stderr.lastLine(); last != "" {
		message += ": " + last
	}
	return message, code
}

const (
	// hangTimeout bounds the time for which memcached may accept connections without
	// responding. It listens only after it has read its items, so by then it hangs, unless the
	// node is overloaded: a kill then loses the items.
	hangTimeout = time.Minute
	// errorTimeout bounds the wait for statistics from a memcached that responds with
	// errors, as when clients occupy all of its connections.
	errorTimeout = 2 * time.Second
)

// firstResponse reports that a process responded for the first time, or that it
// hangs.
type firstResponse struct {
	process *process
	// stats is nil if memcached responded only with errors.
	stats *protocol.General
	hangs bool
}

// awaitFirstResponse reports to responses. It reports nothing if the process exits
// before.
func awaitFirstResponse(p *process, responses chan<- firstResponse) {
	var silentSince, errorsSince time.Time
	for pause := 2 * time.Millisecond; ; pause = min(pause*3/2, 50*time.Millisecond) {
		stats, err := queryOwn(p)
		silent := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
		switch {
		case err == nil:
			responses <- firstResponse{process: p, stats: &stats}
			return
		case isLongerThan(errorTimeout, protocol.IsAnswer(err), &errorsSince):
			responses <- firstResponse{process: p}
			return
		case isLongerThan(hangTimeout, silent, &silentSince):
			responses <- firstResponse{process: p, hangs: true}
			return
		}
		select {
		case <-p.done:
			return
		case <-time.After(pause):
		}
	}
}

// isLongerThan reports whether a state has lasted for longer than d. It keeps in since
// when the state began.
func isLongerThan(d time.Duration, state bool, since *time.Time) bool {
	if !state {
		*since = time.Time{}
	} else if since.IsZero() {
		*since = time.Now()
	}
	return state && time.Since(*since) > d
}

// queryOwn returns an error if another memcached responds at the port. This process
// is then about to exit.
func queryOwn(p *process) (protocol.General, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	stats, err := p.client.generalStats(ctx)
	if err == nil && stats.PID != p.pid {
		err = fmt.Errorf("process %d responds at the port", stats.PID)
	}
	return stats, err
}

// Package process finds, starts and queries memcached. It knows nothing of the data directory, of Secrets or of a pod's phase.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Process is a memcached that was started.
type Process struct {
	PID    int
	Client *Client
	stderr *stderrTail
	// data is nil for a memcached of a test.
	data *dataLimit
	// Signal returns os.ErrProcessDone after the exit.
	Signal func(os.Signal) error
	// Done is closed when the process has exited; Exit is valid from then on.
	Done chan struct{}
	Exit syscall.WaitStatus
}

// New returns a process without a PID and signals. It is for Start, and for a memcached of a test.
func New(server protocol.Server, log *slog.Logger) *Process {
	client := NewClient(server)
	return &Process{Client: client, stderr: &stderrTail{log: log, dropped: &client.DroppedLines}, Done: make(chan struct{})}
}

// Stderr takes what memcached writes to stderr, and logs it.
func (p *Process) Stderr() io.Writer { return p.stderr }

// RestartRejection returns memcached's reason for not loading the saved items; empty if it printed none.
func (p *Process) RestartRejection() string { return p.stderr.restartRejection() }

// Exited records the exit.
func (p *Process) Exited(status syscall.WaitStatus) {
	p.Exit = status
	close(p.Done)
	p.Client.close()
}

// Start starts memcached, which responds to the agent at server.
func Start(path string, words []string, server protocol.Server, log *slog.Logger) (*Process, error) {
	command := exec.Command(path, cmdline.ForClients(words, mostFiles())...)
	p := New(server, log)
	command.Stdout, command.Stderr = p.stderr, p.stderr
	// A process that inherited the pipe must not hide the exit of memcached.
	command.WaitDelay = time.Second
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting memcached: %w", err)
	}
	p.PID, p.Signal = command.Process.Pid, command.Process.Signal
	p.data = &dataLimit{pid: p.PID}
	go func() {
		var status syscall.WaitStatus
		if exit, ok := errors.AsType[*exec.ExitError](command.Wait()); ok {
			status = exit.Sys().(syscall.WaitStatus)
		}
		p.Exited(status)
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

// wakeInterval is between two attempts to wake a memcached that stops.
const wakeInterval = 5 * time.Millisecond

// WakeUntilExit wakes the threads of a memcached that stops until it has exited. Its event loop notices the stop once a
// second, or at a new connection. From then on clients wait, until the background threads notice it too: that of
// the LRU lists sleeps for up to a second, or until a signal. Another SIGUSR1 changes nothing.
func (p *Process) WakeUntilExit() {
	for {
		p.Client.poke()
		p.interrupt(syscall.SIGUSR1)
		select {
		case <-p.Done:
			return
		case <-time.After(wakeInterval):
		}
	}
}

// interrupt sends a signal to each thread. The kernel would send one to the process to any of them.
func (p *Process) interrupt(signal syscall.Signal) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID))
	if err != nil {
		return // it has exited
	}
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = syscall.Tgkill(p.PID, id, signal)
		}
	}
}

// ExitReason describes an unexpected exit of memcached, with the last line of its stderr, and returns the exit code
// that the agent takes over.
func (p *Process) ExitReason() (message string, code int) {
	if p.Exit.Signaled() {
		message, code = fmt.Sprintf("memcached was terminated by signal %q", p.Exit.Signal()), 128+int(p.Exit.Signal())
	} else {
		message, code = fmt.Sprintf("memcached exited unexpectedly with code %d", p.Exit.ExitStatus()), max(p.Exit.ExitStatus(), 1)
	}
	if last := p.stderr.lastLine(); last != "" {
		message += ": " + last
	}
	return message, code
}

const (
	// HangTimeout bounds the time for which memcached may accept connections without
	// responding. It listens only after it has read its items, so by then it hangs, unless the
	// node is overloaded: a kill then loses the items.
	HangTimeout = time.Minute
	// errorTimeout bounds the wait for statistics from a memcached that responds with
	// errors, as when clients occupy all of its connections.
	errorTimeout = 2 * time.Second
)

// FirstResponse reports that a process responded for the first time, or that it
// hangs.
type FirstResponse struct {
	Process *Process
	// Stats is nil if memcached responded only with errors.
	Stats *protocol.General
	Hangs bool
}

// AwaitFirstResponse reports to responses. It reports nothing if the process exits
// before.
func AwaitFirstResponse(p *Process, responses chan<- FirstResponse) {
	var silentSince, errorsSince time.Time
	for pause := 2 * time.Millisecond; ; pause = min(pause*3/2, 50*time.Millisecond) {
		stats, err := queryOwn(p)
		silent := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
		switch {
		case err == nil:
			responses <- FirstResponse{Process: p, Stats: &stats}
			return
		case isLongerThan(errorTimeout, protocol.IsAnswer(err), &errorsSince):
			responses <- FirstResponse{Process: p}
			return
		case isLongerThan(HangTimeout, silent, &silentSince):
			responses <- FirstResponse{Process: p, Hangs: true}
			return
		}
		select {
		case <-p.Done:
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
func queryOwn(p *Process) (protocol.General, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	stats, err := p.Client.GeneralStats(ctx)
	if err == nil && stats.PID != p.PID {
		err = fmt.Errorf("process %d responds at the port", stats.PID)
	}
	return stats, err
}

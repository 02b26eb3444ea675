package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

type process struct {
	command *exec.Cmd
	pid     int
	client  *client
	stderr  *stderrTail
	// done is closed when the process has exited; err is valid from then on.
	done chan struct{}
	err  error
}

func startProcess(path string, words []string) (*process, error) {
	p := &process{
		command: exec.Command(path, words...),
		client:  newClient(address(words)),
		stderr:  &stderrTail{out: os.Stderr},
		done:    make(chan struct{}),
	}
	p.command.Stdout = os.Stdout
	p.command.Stderr = p.stderr
	// A process that inherited the pipe must not hide the exit of memcached.
	p.command.WaitDelay = time.Second
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting memcached: %w", err)
	}
	p.pid = p.command.Process.Pid
	go func() {
		p.err = p.command.Wait()
		close(p.done)
		p.client.close()
	}()
	return p, nil
}

func (p *process) signal(s os.Signal) error { return p.command.Process.Signal(s) }

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
	message, code = "memcached exited unexpectedly with code 0", 1
	if exit, ok := errors.AsType[*exec.ExitError](p.err); ok {
		wait := exit.Sys().(syscall.WaitStatus)
		if wait.Signaled() {
			message, code = fmt.Sprintf("memcached was terminated by signal %q", wait.Signal()), 128+int(wait.Signal())
		} else {
			message, code = fmt.Sprintf("memcached exited unexpectedly with code %d", wait.ExitStatus()), wait.ExitStatus()
		}
	}
	if last := p.stderr.lastLine(); last != "" {
		message += ": " + last
	}
	return message, code
}

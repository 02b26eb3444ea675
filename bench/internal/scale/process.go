package scale

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Process is a program that runs until it is stopped. It is in a process group of its own, so that an interrupt does not reach it.
type Process struct {
	*os.Process
	name, log string
	cancel    context.CancelFunc
	exited    chan struct{}
}

// exitTimeout is how long a program may take to exit after SIGTERM.
const exitTimeout = 30 * time.Second

// start starts a program whose output is appended to a file in dir.
func start(dir string, environment []string, program string, args ...string) (*Process, error) {
	p := &Process{name: filepath.Base(program), exited: make(chan struct{})}
	p.log = filepath.Join(dir, p.name+".log")
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the program has a descriptor of its own
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environment, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, exitTimeout
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.Process, p.cancel = cmd.Process, cancel
	go func() {
		_ = cmd.Wait() // its log has the reason
		close(p.exited)
	}()
	return p, nil
}

// Runs returns an error if the program has exited.
func (p *Process) Runs() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s exited:\n%s", p.name, lastLines(p.log))
	default:
		return nil
	}
}

// stop terminates the program, and kills it after exitTimeout.
func (p *Process) stop() {
	if p != nil {
		p.cancel()
		<-p.exited
	}
}

// lastLines returns the end of a log.
func lastLines(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(len(lines)-20, 0):], "\n")
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// child is a program that runs until it is stopped. It gets no signal of the
// terminal: who started it ends it.
type child struct {
	name    string
	process *os.Process
	log     string
	ended   chan struct{}
}

// endsWithin is how long a program may take to end after SIGTERM.
const endsWithin = 30 * time.Second

// startChild starts a program whose output goes to a file.
func startChild(dir string, cmd *exec.Cmd) (*child, error) {
	c := &child{name: filepath.Base(cmd.Path), ended: make(chan struct{})}
	c.log = filepath.Join(dir, c.name+".log")
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the program has its own
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	c.process = cmd.Process
	go func() {
		_ = cmd.Wait() // its log tells
		close(c.ended)
	}()
	return c, nil
}

// runs returns an error if the program has ended by itself.
func (c *child) runs() error {
	select {
	case <-c.ended:
		return fmt.Errorf("%s ended by itself:\n%s", c.name, c.lastLines(20))
	default:
		return nil
	}
}

// stop ends the program and waits until it has.
func (c *child) stop() error {
	if err := c.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", c.name, err)
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(endsWithin):
	}
	_ = c.process.Kill()
	<-c.ended
	return fmt.Errorf("%s did not end within %s", c.name, endsWithin)
}

// text is all that the program wrote.
func (c *child) text() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (c *child) lastLines(n int) string {
	lines := strings.Split(strings.TrimSpace(c.text()), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}

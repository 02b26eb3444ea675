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

// child is a program that runs until stop. It is in a process group of its own, so that an interrupt does not reach it.
type child struct {
	name    string
	process *os.Process
	log     string
	exited  chan struct{}
}

// exitTimeout is how long a program may take to exit after SIGTERM.
const exitTimeout = 30 * time.Second

// startChild starts a program whose output goes to a file.
func startChild(dir string, cmd *exec.Cmd) (*child, error) {
	c := &child{name: filepath.Base(cmd.Path), exited: make(chan struct{})}
	c.log = filepath.Join(dir, c.name+".log")
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the program has a descriptor of its own
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	c.process = cmd.Process
	go func() {
		_ = cmd.Wait() // its log has the reason
		close(c.exited)
	}()
	return c, nil
}

// runs returns an error if the program has exited.
func (c *child) runs() error {
	select {
	case <-c.exited:
		return fmt.Errorf("%s exited:\n%s", c.name, c.lastLines(20))
	default:
		return nil
	}
}

// stop terminates the program.
func (c *child) stop() error {
	if err := c.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("terminating %s: %w", c.name, err)
	}
	select {
	case <-c.exited:
		return nil
	case <-time.After(exitTimeout):
	}
	_ = c.process.Kill()
	<-c.exited
	return fmt.Errorf("%s did not exit within %s", c.name, exitTimeout)
}

// text returns the log of the program.
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

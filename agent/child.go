package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is one run of memcached.
type child struct {
	command *exec.Cmd
	pid     int
	asker   *asker
	said    *said
	// done is closed when it ended; then err says how.
	done chan struct{}
	err  error
}

// startChild starts memcached over a data folder and reports its end on exits.
func startChild(path, dir string, args []string, exits chan<- *child) (*child, error) {
	words := append(slices.Clone(args), "-e", memoryPath(dir))
	return startProgram(path, words, endpointOf(args), exits)
}

func startProgram(path string, words []string, e endpoint, exits chan<- *child) (*child, error) {
	c := &child{
		command: exec.Command(path, words...),
		asker:   newAsker(e),
		said:    &said{out: os.Stderr},
		done:    make(chan struct{}),
	}
	c.command.Stdout = os.Stdout
	c.command.Stderr = c.said
	// Someone who inherited the pipe must not keep the end of memcached hidden.
	c.command.WaitDelay = time.Second
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("starting memcached: %w", err)
	}
	c.pid = c.command.Process.Pid
	go func() {
		c.err = c.command.Wait()
		close(c.done)
		c.asker.close()
		exits <- c
	}()
	return c, nil
}

func (c *child) signal(s os.Signal) error { return c.command.Process.Signal(s) }

// nudge connects to memcached until it ended. It looks at the order to stop only
// when its event loop turns: once a second, or at a new connection.
func (c *child) nudge() {
	for {
		c.asker.knock()
		select {
		case <-c.done:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// end says how memcached ended, and the exit status that the agent takes over.
func (c *child) end() (sentence string, status int) {
	sentence, status = "memcached ended by itself with status 0", 1
	var exit *exec.ExitError
	if errors.As(c.err, &exit) {
		wait := exit.Sys().(syscall.WaitStatus)
		switch {
		case wait.Signaled():
			sentence, status = fmt.Sprintf("memcached was ended by the signal %q", wait.Signal()), 128+int(wait.Signal())
		default:
			sentence, status = fmt.Sprintf("memcached ended by itself with status %d", wait.ExitStatus()), wait.ExitStatus()
		}
	}
	if last := c.said.lastLine(); last != "" {
		sentence += ": " + last
	}
	return sentence, status
}

// said passes on what memcached says on stderr and keeps what may be a reason:
// its last line, and all about the restartable cache.
type said struct {
	out io.Writer

	mu      sync.Mutex
	part    []byte
	last    string
	restart []string
}

// Bounds on what is kept.
const (
	saidLine  = 512
	saidLines = 16
)

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	for _, b := range p {
		if b != '\n' {
			if len(s.part) < saidLine {
				s.part = append(s.part, b)
			}
			continue
		}
		s.take()
	}
	s.mu.Unlock()
	return s.out.Write(p)
}

func (s *said) take() {
	line := strings.TrimSpace(string(s.part))
	s.part = s.part[:0]
	if line == "" {
		return
	}
	s.last = line
	if strings.HasPrefix(line, "[restart]") && len(s.restart) < saidLines {
		s.restart = append(s.restart, line)
	}
}

// lastLine is the last line that memcached said, whole or not.
func (s *said) lastLine() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if part := strings.TrimSpace(string(s.part)); part != "" {
		return part
	}
	return s.last
}

// refusal is memcached's reason for not taking up the saved items; empty when
// it gave none.
func (s *said) refusal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var reason string
	for _, line := range s.restart {
		line = strings.TrimSpace(strings.TrimPrefix(line, "[restart]"))
		switch {
		case strings.HasPrefix(line, "restart incompatible"), strings.HasPrefix(line, "memory restart with extstore"):
			return line
		case strings.Contains(line, "clean cache"), strings.HasPrefix(line, "missing some metadata"):
			reason = line
		}
	}
	return reason
}

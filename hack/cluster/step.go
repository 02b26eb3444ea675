package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// step says what is being done, runs it and says how long it took. Steps that
// last show in between that they are alive. All of it goes to standard error:
// standard output is for what a shell reads.
func step(what string, do func() error) error {
	return stepTo(os.Stderr, what, do)
}

// quietly runs a step that has nothing to tell.
func quietly(_ string, do func() error) error { return do() }

func stepTo(w io.Writer, what string, do func() error) error {
	start := time.Now()
	fmt.Fprintf(w, "%s …", what)
	stop := heartbeat(w, start)
	err := do()
	stop()
	took := roundDuration(time.Since(start))
	if err != nil {
		fmt.Fprintf(w, " gave up after %s\n", took)
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintf(w, " done in %s\n", took)
	return nil
}

// heartbeat writes the time that has passed after 15 s, 30 s and each minute,
// until the returned function is called.
func heartbeat(w io.Writer, start time.Time) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		next := 15 * time.Second
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Until(start.Add(next))):
				fmt.Fprintf(w, " %s", next)
			}
			if next < time.Minute {
				next *= 2
			} else {
				next += time.Minute
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func roundDuration(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// runProgram runs a program and puts the end of what it printed into the error.
func runProgram(program string, args ...string) error {
	_, err := output(exec.Command(program, args...))
	return err
}

// output runs a command and returns its standard output; the error holds the
// last lines it printed.
func output(cmd *exec.Cmd) (string, error) {
	var out, both bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, &both)
	cmd.Stderr = &both
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, lastLines(both.String(), 20))
	}
	return out.String(), nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// permanent is an error that waiting does not cure.
type permanent struct{ error }

// waitFor calls ready until it returns nil, and returns its last error when
// that takes longer than the timeout or is permanent.
func waitFor(timeout time.Duration, ready func() error) error {
	deadline := time.Now().Add(timeout)
	for {
		err := ready()
		if err == nil || errors.As(err, new(permanent)) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", timeout, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

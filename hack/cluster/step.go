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

// step reports what runs, how long it took and, in between, that it is alive, on standard error.
func step(what string, do func() error) error {
	start := time.Now()
	fmt.Fprintf(os.Stderr, "%s …", what)
	stop := heartbeat(start)
	err := do()
	stop()
	took := time.Since(start).Round(10 * time.Millisecond)
	if err != nil {
		fmt.Fprintf(os.Stderr, " failed after %s\n", took)
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintf(os.Stderr, " done in %s\n", took)
	return nil
}

func quietly(_ string, do func() error) error { return do() }

// heartbeat writes the elapsed time each 30 s, until it is stopped.
func heartbeat(start time.Time) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(30 * time.Second):
				fmt.Fprintf(os.Stderr, " %s", time.Since(start).Round(time.Second))
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func runProgram(program string, args ...string) error {
	_, err := output(exec.Command(program, args...))
	return err
}

// output returns the standard output of a command. The error contains the last lines of all output.
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

// permanent is an error that waiting does not fix.
type permanent struct{ error }

// waitFor calls ready until it returns nil. It returns the last error after the timeout, or a permanent one.
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

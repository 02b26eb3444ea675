package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// step says what is being done, does it and says how long it took.
func (r release) step(what string, do func() error) error {
	start := time.Now()
	fmt.Fprintf(r.out, "%s …", what)
	stop := alive(r.out, start)
	err := do()
	stop()
	took := time.Since(start).Round(10 * time.Millisecond)
	if err != nil {
		fmt.Fprintf(r.out, " gave up after %s\n", took)
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintf(r.out, " done in %s\n", took)
	return nil
}

// alive writes every 15 s how long it has been, until the returned function is
// called.
func alive(w io.Writer, start time.Time) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(15 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				fmt.Fprintf(w, " %s", time.Since(start).Round(time.Second))
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// program is a step that runs a program in the project's folder. Its error holds
// the end of what it printed.
func (r release) program(name string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := r.output(ctx, name, args...)
		return err
	}
}

// git returns what git prints.
func (r release) git(ctx context.Context, args ...string) (string, error) {
	return r.output(ctx, "git", args...)
}

func (r release) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.root
	var out, both bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, &both), &both
	// What it started ends with it: the tree is restored after an interruption, and nobody must write to it then.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(both.String()), "\n")
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

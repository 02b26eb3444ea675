// Package host runs programs of this machine, reports steps, and waits.
package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Step reports what runs and how long it took, on standard error.
func Step(what string, do func() error) error {
	start := time.Now()
	fmt.Fprintf(os.Stderr, "%s …", what)
	err := do()
	took := time.Since(start).Round(10 * time.Millisecond)
	if err != nil {
		fmt.Fprintf(os.Stderr, " failed after %s\n", took)
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintf(os.Stderr, " done in %s\n", took)
	return nil
}

// Run runs a program. The error contains the last lines of its output.
func Run(program string, args ...string) error {
	_, err := Output(exec.Command(program, args...))
	return err
}

// Output returns the standard output of a command. The error contains the last lines of all output.
func Output(cmd *exec.Cmd) (string, error) {
	var out, both bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, &both)
	cmd.Stderr = &both
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, LastLines(both.String(), 20))
	}
	return out.String(), nil
}

// LastLines returns the last n lines of a text.
func LastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Permanent is an error that waiting does not fix.
type Permanent struct{ Err error }

func (p Permanent) Error() string { return p.Err.Error() }

// patience is long: whatever is waited for takes seconds, and on a busy machine ten times as long.
const patience = 2 * time.Minute

// WaitFor calls ready until it returns nil. It returns the last error after two minutes, or a permanent one.
func WaitFor(ready func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := ready()
		if err == nil || errors.As(err, new(Permanent)) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", patience, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Exists reports whether there is a file or folder.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// gotest runs the go command over the repository.
type gotest struct {
	// root of the repository.
	root string
}

// verdict is how a run of tests ended.
type verdict struct {
	// failed is the test that failed first; empty when none did. A package that failed
	// outside of a test is named itself.
	failed string
	// hung: that test did not end in time.
	hung bool
	// output of the run.
	output string
	took   time.Duration
}

// overlay is a file in the place of which the go command reads another.
type overlay struct{ file, text string }

// errNoGo is code that the compiler refuses.
var errNoGo = errors.New("it does not compile")

// stopTime is how long the go command may take to end when it is told to.
const stopTime = 10 * time.Second

// compile proves that the package of a changed file is Go. It links nothing.
func (g gotest) compile(ctx context.Context, o overlay) error {
	dir, pkg, err := module(g.root, filepath.Dir(o.file))
	if err != nil {
		return err
	}
	_, errText, err := g.run(ctx, dir, &o, "list", "-export", "-f", "{{.Name}}", pkg)
	if err != nil {
		return fmt.Errorf("%w: %s", errNoGo, bytes.TrimSpace(errText))
	}
	return nil
}

// test runs tests, each package within a time. o may be nil.
func (g gotest) test(ctx context.Context, t tests, o *overlay, timeout time.Duration) (verdict, error) {
	dir, pkg, err := module(g.root, t.pkg)
	if err != nil {
		return verdict{}, err
	}
	began := time.Now()
	out, errText, err := g.run(ctx, dir, o, "test", "-json", "-vet=off", "-count=1", "-failfast",
		"-timeout="+timeout.String(), "-run="+pattern(t.names), pkg)
	v, ran := read(out)
	v.took = time.Since(began)
	switch {
	case ctx.Err() != nil:
		return verdict{}, context.Cause(ctx)
	case errors.Is(err, errNoGo):
		return v, fmt.Errorf("%s: %w: %s%s", t.pkg, err, v.output, errText)
	case err == nil && ran == 0:
		return v, fmt.Errorf("%s: no test ran", t)
	case err != nil && v.failed == "":
		return v, fmt.Errorf("testing %s: %w: %s%s", t, err, v.output, errText)
	}
	return v, nil
}

// runs numbers the runs of this process.
var runs atomic.Int64

// run runs the go command in a folder of its own for temporary files, and ends what
// it left behind.
func (g gotest) run(ctx context.Context, dir string, o *overlay, args ...string) (out, errText []byte, err error) {
	temporary, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(temporary)
	// Tests make folders in it for memcacheds of other users.
	if err := os.Chmod(temporary, 0o755); err != nil { //nolint:gosec // nothing in it is secret
		return nil, nil, err
	}
	mark := markOf(runs.Add(1))
	environment := append(os.Environ(), "TMPDIR="+temporary, mark)
	if o != nil {
		flags, err := g.overlayFlags(temporary, *o)
		if err != nil {
			return nil, nil, err
		}
		environment = append(environment, flags)
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env = dir, environment
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopTime
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	if left := endMarked(mark); left != nil {
		err = errors.Join(err, left)
	}
	if err != nil && bytes.Contains(stdout.Bytes(), []byte(`"Action":"build-fail"`)) {
		err = errNoGo
	}
	return stdout.Bytes(), stderr.Bytes(), err
}

// overlayFlags returns the variable by which the go command, and each that a test
// runs, reads the changed file.
func (g gotest) overlayFlags(dir string, o overlay) (string, error) {
	root, err := filepath.Abs(g.root)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(o.file))
	if err := os.WriteFile(changed, []byte(o.text), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, o.file): changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", err
	}
	return strings.TrimSpace("GOFLAGS=" + os.Getenv("GOFLAGS") + " -overlay=" + path), nil
}

// read returns what the lines of "go test -json" tell, and how many tests ended.
func read(out []byte) (v verdict, ran int) {
	var text strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	failedPackage, running := "", ""
	for lines.Scan() {
		var e struct{ Action, Package, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			text.WriteString(lines.Text() + "\n")
			continue
		}
		test, _, _ := strings.Cut(e.Test, "/")
		switch e.Action {
		case "output", "build-output":
			text.WriteString(e.Output)
			v.hung = v.hung || strings.HasPrefix(e.Output, "panic: test timed out after ")
		case "run":
			running = test
		case "pass":
			if test != "" {
				ran++
			}
		case "fail":
			if test == "" {
				failedPackage = e.Package
			} else {
				ran++
				v.failed = cmp.Or(v.failed, test)
			}
		}
	}
	if failedPackage != "" && v.hung {
		v.failed = cmp.Or(v.failed, running)
	}
	if failedPackage != "" {
		v.failed = cmp.Or(v.failed, failedPackage)
	}
	v.output = text.String()
	return v, ran
}

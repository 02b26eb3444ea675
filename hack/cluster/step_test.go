package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestStep(t *testing.T) {
	var out strings.Builder
	if err := stepTo(&out, "trying", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "trying … done in ") || !strings.HasSuffix(got, "s\n") {
		t.Errorf("said %q", got)
	}
	out.Reset()
	broken := errors.New("broken")
	err := stepTo(&out, "trying", func() error { return broken })
	if !errors.Is(err, broken) || err.Error() != "trying: broken" {
		t.Errorf("error %v", err)
	}
	if got := out.String(); !strings.HasPrefix(got, "trying … failed after ") {
		t.Errorf("said %q", got)
	}
}

func TestWaitFor(t *testing.T) {
	calls := 0
	if err := waitFor(time.Minute, func() error {
		if calls++; calls < 3 {
			return errNoLink
		}
		return nil
	}); err != nil || calls != 3 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	if err := waitFor(time.Millisecond, func() error { return errNoLink }); !errors.Is(err, errNoLink) {
		t.Errorf("a wait that times out ends with %v, want the last reason", err)
	}
	calls = 0
	if err := waitFor(time.Minute, func() error { calls++; return permanent{errNoLink} }); err == nil || calls != 1 {
		t.Errorf("a permanent error was tried %d times: %v", calls, err)
	}
}

func TestOutputErrorHoldsWhatWasSaid(t *testing.T) {
	_, err := output(exec.Command("sh", "-c", "echo wrong >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "wrong") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v", err)
	}
}

func TestLastLines(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"", 2, ""}, {"a\nb\nc\n", 2, "b\nc"}, {"a", 2, "a"}} {
		if got := lastLines(c.in, c.n); got != c.want {
			t.Errorf("lastLines(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

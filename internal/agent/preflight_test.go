package agent

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// test/process checks real images.
func TestPreflightRejectsInvalidFlags(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"an unknown flag":        {"-nonsense"},
		"unquoted arguments":     {"-termination-log", log, "-arguments", `["-m",`, `"64"]`},
		"an unexpected argument": {"-termination-log", log, "memcached"},
	} {
		err := Command("dev", append([]string{"preflight"}, args...), io.Discard)
		if err == nil || ExitCode(err) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCallWithTimeoutReturnsAnErrorIfTheFunctionHangs(t *testing.T) {
	never := make(chan bool)
	err := callWithTimeout(time.Millisecond, func() error { <-never; return nil })
	if err == nil || !strings.Contains(err.Error(), "neither responded nor exited within 1ms") {
		t.Errorf("error %v", err)
	}
	failed := errors.New("failed")
	if err := callWithTimeout(time.Minute, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}

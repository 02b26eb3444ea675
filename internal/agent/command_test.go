package agent

import (
	"errors"
	"fmt"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

func TestExitCodeIsNeverZero(t *testing.T) {
	for want, err := range map[int]error{
		1: errors.New("x"), wire.ExitTimedOut: fmt.Errorf("x: %w", &process.SlowError{Action: "respond"}), 137: &exitError{code: 137}, 2: fmt.Errorf("x: %w", &exitError{code: 2}),
	} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
	if got := ExitCode(&exitError{}); got == 0 {
		t.Error("an error has exit code 0")
	}
}

func TestUnknownHandoverModeIsAUsageError(t *testing.T) {
	t.Parallel()
	if err := run("1", []string{"-handover-mode", "Both"}); ExitCode(err) != 2 {
		t.Errorf("exit code %d: %v", ExitCode(err), err)
	}
}

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// Over an existing copy too, as when the init container runs again.
func TestInstallCopiesTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		if err := Command("dev", []string{"install", dir}, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "agent")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Fatalf("%v, %v", info, err)
	}
	program, err := os.ReadFile("/proc/self/exe")
	if copied, copyErr := os.ReadFile(path); err != nil || copyErr != nil || !bytes.Equal(copied, program) {
		t.Errorf("the copy has %d of %d bytes: %v, %v", len(copied), len(program), err, copyErr)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("directory entries: %v, %v", entries, err)
	}
	if err := Command("dev", []string{"install", filepath.Join(dir, "missing")}, io.Discard); err == nil {
		t.Error("installed into a missing directory")
	}
}

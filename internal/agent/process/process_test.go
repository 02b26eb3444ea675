package process

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

func TestMemcachedsOwnExitCodeIsKept(t *testing.T) {
	path := program(t, "echo one >&2; echo two >&2; exit 3")
	p, err := Start(path, nil, protocol.At("127.0.0.1:1"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done
	if message, code := p.ExitReason(); message != "memcached exited unexpectedly with code 3: two" || code != 3 {
		t.Errorf("%q, %d", message, code)
	}
	if _, err := Start(path+"-missing", nil, protocol.At("127.0.0.1:1"), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a missing program starts")
	}
}

// sleeps makes the test's program one with a thread that sleeps for an hour, or until a signal.
const sleeps = "TEST_THREAD_SLEEPS"

func TestMain(m *testing.M) {
	if os.Getenv(sleeps) == "" {
		os.Exit(m.Run())
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1)
	go func() {
		runtime.LockOSThread()
		_, _ = os.Stderr.WriteString("sleeping\n")
		if errors.Is(syscall.Nanosleep(&syscall.Timespec{Sec: 3600}, nil), syscall.EINTR) {
			os.Exit(0)
		}
	}()
	select {}
}

// memcached's background threads sleep for up to a second, and clients wait for each of them when memcached stops.
func TestStopWakesEachThread(t *testing.T) {
	t.Setenv(sleeps, "1")
	logged, writer := io.Pipe()
	p, err := Start(os.Args[0], nil, protocol.At("127.0.0.1:1"), slog.New(slog.NewTextHandler(writer, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Signal(syscall.SIGKILL) })
	for lines := bufio.NewScanner(logged); lines.Scan(); {
		if strings.Contains(lines.Text(), "sleeping") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, logged) }()
	if err := p.Signal(syscall.SIGUSR1); err != nil { // the kernel gives it to any thread
		t.Fatal(err)
	}
	p.WakeUntilExit()
	if p.Exit.ExitStatus() != 0 || p.Exit.Signaled() {
		t.Errorf("the process exited with %v", p.Exit)
	}
}

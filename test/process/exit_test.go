package process

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// The container exits with memcached's code, and a message in the termination log.
func TestUnexpectedExitOfMemcachedEndsTheContainer(t *testing.T) {
	t.Parallel()
	for signal, c := range map[syscall.Signal]struct {
		status int
		want   string
	}{
		syscall.SIGKILL: {137, `memcached was terminated by signal "killed"`},
		syscall.SIGABRT: {134, `memcached was terminated by signal "aborted"`},
		// A regular exit, which is unexpected all the same.
		syscall.SIGTERM: {1, "memcached exited unexpectedly with code 0"},
	} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			status := s.run()
			if err := syscall.Kill(status.PID, signal); err != nil {
				t.Fatal(err)
			}
			if code := s.exit(); code != c.status {
				t.Errorf("status %d, want %d", code, c.status)
			}
			wantContains(t, "the reason", s.reason(), c.want)
		})
	}
}

func TestTerminationLogSaysWhyTheContainerCannotStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*testing.T, *shard)
		want    string
	}{
		"no memcached in the image": {func(t *testing.T, s *shard) {
			s.memcached = ""
			s.contain("export PATH=/opt/tools:$PATH\nfor d in /usr/bin /bin /usr/local/bin; do test ! -e $d/memcached || mount --bind /dev/null $d/memcached; done")
		}, "no memcached in this image: looked in /opt/tools, "},
		"another program": {func(t *testing.T, s *shard) {
			s.memcached = filepath.Join(s.dir, "true")
			script(t, s.memcached, "echo hello")
		}, `is not memcached: -V printed "hello"`},
		"a program that fails": {func(t *testing.T, s *shard) {
			s.memcached = filepath.Join(s.dir, "false")
			script(t, s.memcached, "echo no such library >&2; exit 127")
		}, `is not memcached: -V printed "no such library": exit status 127`},
		"a similar program": {func(t *testing.T, s *shard) {
			s.memcached = filepath.Join(s.dir, "redis")
			script(t, s.memcached, "echo Redis server v=7.2.4")
		}, "is not memcached"},
		"a data directory that is not writable": {func(t *testing.T, s *shard) {
			if err := os.Chmod(s.data, 0o555); err != nil {
				t.Fatal(err)
			}
		}, "the data directory must be writable"},
		"no data directory": {func(_ *testing.T, s *shard) { s.data = filepath.Join(s.dir, "missing") }, "the data directory must be writable"},
		"arguments that memcached rejects": {func(_ *testing.T, s *shard) {
			s.annotate(agentwire.ArgumentsFile, s.arguments("-I", "1024m"))
		}, "Cannot set item size limit higher than 1/2 of memory max"},
		"arguments that are not JSON": {func(_ *testing.T, s *shard) {
			s.annotate(agentwire.ArgumentsFile, "-m 64")
		}, "the arguments are not a JSON array of strings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			c.prepare(t, s)
			s.launch()
			if code := s.exit(); code == 0 {
				t.Error("status 0")
			}
			wantContains(t, "the reason", s.reason(), c.want)
		})
	}
}

func TestAnotherMemcachedAtThePortIsNotMistakenForOwn(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	other := startRaw(t, newest, sharedDir(t))
	s.port = other.port
	s.annotate(agentwire.ArgumentsFile, s.arguments())
	s.launch()
	if code := s.exit(); code == 0 {
		t.Error("status 0")
	}
	wantContains(t, "the reason", s.reason(), "failed to listen on TCP port")
	if strings.Contains(s.log.String(), "memcached is serving") {
		t.Error("it mistook the other memcached for its own")
	}
}

// freeze stops memcached with SIGSTOP, and waits until it has stopped.
func (s *shard) freeze(memcached int) {
	s.t.Helper()
	if err := syscall.Kill(memcached, syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	for len(childrenOf(s.t, s.command.Process.Pid, "T")) == 0 {
		time.Sleep(time.Millisecond)
	}
}

func script(t testing.TB, path, text string) {
	t.Helper()
	writeFile(t, path, "#!/bin/sh\n"+text+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestSIGTERMDuringAStartKeepsTheItems(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	fill(t, s.address(), 1000)
	s.stopContainer()
	for delay := time.Duration(0); delay < 60*time.Millisecond; delay += 7 * time.Millisecond {
		s.launch()
		time.Sleep(delay)
		s.signal(syscall.SIGTERM)
		s.exit()
		if !exists(s.meta()) {
			t.Fatalf("after %s: nothing is saved", delay)
		}
	}
	if status := s.run(); status.Start.Result != agentwire.StartWarm || status.Start.Items != 1000 {
		t.Errorf("start %+v", status.Start)
	}
}

func TestHungMemcachedIsUnreadySoonAndUnhealthyLater(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	status := s.run()
	s.freeze(status.PID)
	for path, atLeast := range map[string]time.Duration{"/readyz": 0, "/healthz": 3 * time.Second} {
		started := time.Now()
		if code, _, err := s.get(path); err != nil || code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d, %v", path, code, err)
		}
		if took := time.Since(started); took < atLeast {
			t.Errorf("%s gave up after %s", path, took)
		}
	}
	if status, err := s.fetchStatus(); err != nil || status.Phase != agentwire.PhaseServing {
		t.Errorf("/status: %+v, %v", status, err)
	}
	if err := syscall.Kill(status.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code, body, err := s.get("/healthz"); err != nil || code != http.StatusOK {
		t.Errorf("/healthz: %d %s, %v", code, body, err)
	}
}

// At the end of the grace period the kubelet kills the agent. So the agent kills a hung
// memcached before, and the next one starts in time. Unless the stop is announced, it was
// caused by the hang, and neither a drain nor a long save is of use.
func TestMemcachedThatHangsAtItsStopIsKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		announced bool
		timeout   string
	}{
		"announced":   {true, "timeout=20s"},
		"unannounced": {false, "timeout=4s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.service = s.agentAddress() // no other pod responds there
			status := s.run()
			if c.announced {
				s.announce("stop")
			}
			s.freeze(status.PID)
			s.signal(syscall.SIGTERM)
			if code := s.exitWithoutDrain(); code != 0 || exists(s.meta()) {
				t.Errorf("status %d, saved %v", code, exists(s.meta()))
			}
			wantContains(t, "the log", s.log.String(), `its items are lost" `+c.timeout)
			if next := s.run(); next.Start.Result != agentwire.StartCold {
				t.Errorf("start %+v", next.Start)
			}
		})
	}
}

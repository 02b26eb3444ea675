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
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
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
			s := pods.NewShard(t)
			status := s.Run()
			if err := syscall.Kill(status.PID, signal); err != nil {
				t.Fatal(err)
			}
			if code := s.Exit(); code != c.status {
				t.Errorf("status %d, want %d", code, c.status)
			}
			pods.WantContains(t, "the reason", s.Reason(), c.want)
		})
	}
}

func TestTerminationLogSaysWhyTheContainerCannotStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*testing.T, *pods.Shard)
		want    string
	}{
		"no memcached in the image": {func(t *testing.T, s *pods.Shard) {
			s.Memcached = ""
			contain(s, "export PATH=/opt/tools:$PATH\nfor d in /usr/bin /bin /usr/local/bin; do test ! -e $d/memcached || mount --bind /dev/null $d/memcached; done")
		}, "no memcached in this image: looked in /opt/tools, "},
		"another program": {func(t *testing.T, s *pods.Shard) {
			s.Memcached = filepath.Join(s.Dir, "true")
			script(t, s.Memcached, "echo hello")
		}, `is not memcached: -V printed "hello"`},
		"a program that fails": {func(t *testing.T, s *pods.Shard) {
			s.Memcached = filepath.Join(s.Dir, "false")
			script(t, s.Memcached, "echo no such library >&2; exit 127")
		}, `is not memcached: -V printed "no such library": exit status 127`},
		"a similar program": {func(t *testing.T, s *pods.Shard) {
			s.Memcached = filepath.Join(s.Dir, "redis")
			script(t, s.Memcached, "echo Redis server v=7.2.4")
		}, "is not memcached"},
		"a data directory that is not writable": {func(t *testing.T, s *pods.Shard) {
			if err := os.Chmod(s.Data, 0o555); err != nil {
				t.Fatal(err)
			}
		}, "the data directory must be writable"},
		"no data directory": {func(_ *testing.T, s *pods.Shard) { s.Data = filepath.Join(s.Dir, "missing") }, "the data directory must be writable"},
		"arguments that memcached rejects": {func(_ *testing.T, s *pods.Shard) {
			s.Annotate(agentwire.ArgumentsFile, s.Arguments("-I", "1024m"))
		}, "Cannot set item size limit higher than 1/2 of memory max"},
		"arguments that are not JSON": {func(_ *testing.T, s *pods.Shard) {
			s.Annotate(agentwire.ArgumentsFile, "-m 64")
		}, "the arguments are not a JSON array of strings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			c.prepare(t, s)
			s.Launch()
			if code := s.Exit(); code == 0 {
				t.Error("status 0")
			}
			pods.WantContains(t, "the reason", s.Reason(), c.want)
		})
	}
}

func TestAnotherMemcachedAtThePortIsNotMistakenForOwn(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	other := pods.StartRaw(t, pods.Newest, pods.SharedDir(t))
	s.Port = other.Port
	s.Annotate(agentwire.ArgumentsFile, s.Arguments())
	s.Launch()
	if code := s.Exit(); code == 0 {
		t.Error("status 0")
	}
	pods.WantContains(t, "the reason", s.Reason(), "failed to listen on TCP port")
	if strings.Contains(s.Log.String(), "memcached is serving") {
		t.Error("it mistook the other memcached for its own")
	}
}

// freeze stops memcached with SIGSTOP, and waits until it has stopped.
func freeze(s *pods.Shard, memcached int) {
	s.T.Helper()
	if err := syscall.Kill(memcached, syscall.SIGSTOP); err != nil {
		s.T.Fatal(err)
	}
	for len(childrenOf(s.T, s.Command.Process.Pid, "T")) == 0 {
		time.Sleep(time.Millisecond)
	}
}

func script(t testing.TB, path, text string) {
	t.Helper()
	pods.WriteFile(t, path, "#!/bin/sh\n"+text+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestSIGTERMDuringAStartKeepsTheItems(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Run()
	pods.Fill(t, s.Address(), 1000)
	s.StopContainer()
	for delay := time.Duration(0); delay < 60*time.Millisecond; delay += 7 * time.Millisecond {
		s.Launch()
		time.Sleep(delay)
		s.Signal(syscall.SIGTERM)
		s.Exit()
		if !pods.Exists(s.Meta()) {
			t.Fatalf("after %s: nothing is saved", delay)
		}
	}
	if status := s.Run(); status.Start.Result != agentwire.StartWarm || status.Start.Items != 1000 {
		t.Errorf("start %+v", status.Start)
	}
}

func TestHungMemcachedIsUnreadySoonAndUnhealthyLater(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	status := s.Run()
	freeze(s, status.PID)
	for path, atLeast := range map[string]time.Duration{"/readyz": 0, "/healthz": 3 * time.Second} {
		started := time.Now()
		if code, _, err := s.Get(path); err != nil || code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d, %v", path, code, err)
		}
		if took := time.Since(started); took < atLeast {
			t.Errorf("%s gave up after %s", path, took)
		}
	}
	if status, err := s.FetchStatus(); err != nil || status.Phase != agentwire.PhaseServing {
		t.Errorf("/status: %+v, %v", status, err)
	}
	if err := syscall.Kill(status.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code, body, err := s.Get("/healthz"); err != nil || code != http.StatusOK {
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
			s := pods.NewShard(t)
			s.Service = s.AgentAddress() // no other pod responds there
			status := s.Run()
			if c.announced {
				s.Announce("stop")
			}
			freeze(s, status.PID)
			s.Signal(syscall.SIGTERM)
			if code := s.Exit(); code != 0 || pods.Exists(s.Meta()) {
				t.Errorf("status %d, saved %v", code, pods.Exists(s.Meta()))
			}
			pods.WantContains(t, "the log", s.Log.String(), `its items are lost" `+c.timeout)
			if next := s.Run(); next.Start.Result != agentwire.StartCold {
				t.Errorf("start %+v", next.Start)
			}
		})
	}
}

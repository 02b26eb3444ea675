package process

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// An end that nobody asked for is the container's: with memcached's status, and
// a sentence in the termination log.
func TestMemcachedThatEndsByItselfEndsTheContainer(t *testing.T) {
	for signal, c := range map[syscall.Signal]struct {
		status int
		want   string
	}{
		syscall.SIGKILL: {137, `memcached was ended by the signal "killed"`},
		syscall.SIGABRT: {134, `memcached was ended by the signal "aborted"`},
		// Someone ended it properly; for the pod it is an end all the same.
		syscall.SIGTERM: {1, "memcached ended by itself with status 0"},
	} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			status := s.run()
			if err := syscall.Kill(status.PID, signal); err != nil {
				t.Fatal(err)
			}
			if code := s.exit(5 * time.Second); code != c.status {
				t.Errorf("status %d, want %d", code, c.status)
			}
			wantContains(t, "the reason", s.reason(), c.want)
		})
	}
}

func TestAContainerThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*testing.T, *shard)
		want    string
	}{
		"no memcached in the image": {func(t *testing.T, s *shard) {
			s.memcached = ""
			s.contain("export PATH=/opt/tools:$PATH\nfor d in /usr/bin /bin /usr/local/bin; do test ! -e $d/memcached || mount --bind /dev/null $d/memcached; done")
		}, "no memcached in this image: looked in /opt/tools, "},
		"something that is not memcached": {func(t *testing.T, s *shard) {
			s.memcached = filepath.Join(s.dir, "true")
			script(t, s.memcached, "echo hello")
		}, `is not memcached: asked for its version it gave "hello"`},
		"something that fails": {func(t *testing.T, s *shard) {
			s.memcached = filepath.Join(s.dir, "false")
			script(t, s.memcached, "echo no such library >&2; exit 127")
		}, `is not memcached: asked for its version it gave "no such library": exit status 127`},
		"another program of that family": {func(t *testing.T, s *shard) {
			s.memcached = filepath.Join(s.dir, "redis")
			script(t, s.memcached, "echo Redis server v=7.2.4")
		}, "is not memcached"},
		"a data folder that is not writable": {func(t *testing.T, s *shard) {
			if err := os.Chmod(s.data, 0o555); err != nil {
				t.Fatal(err)
			}
		}, "the data folder must be writable"},
		"no data folder": {func(_ *testing.T, s *shard) { s.data = filepath.Join(s.dir, "missing") }, "the data folder must be writable"},
		"arguments that memcached refuses": {func(_ *testing.T, s *shard) {
			s.annotate(agentapi.ArgumentsFile, s.arguments("-I", "1024m"))
		}, "Cannot set item size limit higher than 1/2 of memory max"},
		"arguments that are not JSON": {func(_ *testing.T, s *shard) {
			s.annotate(agentapi.ArgumentsFile, "-m 64")
		}, "the arguments are not a JSON array of strings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			c.prepare(t, s)
			s.launch()
			if code := s.exit(5 * time.Second); code == 0 {
				t.Error("status 0")
			}
			wantContains(t, "the reason", s.reason(), c.want)
		})
	}
}

// Another program that answers at the port must not pass for the own memcached.
func TestAPortThatAnotherMemcachedHas(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	other := startRaw(t, newest, sharedDir(t))
	s.port = other.port
	s.annotate(agentapi.ArgumentsFile, s.arguments())
	s.launch()
	if code := s.exit(5 * time.Second); code == 0 {
		t.Error("status 0")
	}
	wantContains(t, "the reason", s.reason(), "failed to listen on TCP port")
	if strings.Contains(s.log.String(), "memcached serves") {
		t.Error("the other one passed for the own")
	}
}

// freeze has memcached stand still, and waits until it does.
func (s *shard) freeze(memcached int) {
	s.t.Helper()
	if err := syscall.Kill(memcached, syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	for len(childrenOf(s.t, s.command.Process.Pid, "T")) == 0 {
		time.Sleep(time.Millisecond)
	}
}

// A memcached that hangs while it starts listens, and its system takes
// connections for it. No real one can be made to, so the test's own program is it.
func TestAMemcachedThatHangsWhileItStarts(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := newShard(t)
	s.memcached = filepath.Join(s.dir, "silent")
	script(t, s.memcached, `test "$1" != -V || exec echo memcached 1.6.45
exec env `+silentPort+`=`+strconv.Itoa(s.port)+` `+self)
	s.launch()
	if code := s.exit(20 * time.Second); code == 0 {
		t.Error("status 0")
	}
	wantContains(t, "the reason", s.reason(), "memcached takes connections at "+s.address()+" and answered none for 10s")
}

// silentPort names the variable that has this program listen and say nothing.
const silentPort = "PROCESS_TEST_SILENT_PORT"

func listenSilently(port string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	defer listener.Close()
	time.Sleep(time.Minute)
	return nil
}

func script(t *testing.T, path, text string) {
	t.Helper()
	writeFile(t, path, "#!/bin/sh\n"+text+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// A SIGTERM while memcached starts: it is let come up or not, but nothing is lost.
func TestASIGTERMAtAnyMomentOfAStart(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	fill(t, s.address(), 1000)
	s.stopContainer()
	for delay := time.Duration(0); delay < 60*time.Millisecond; delay += 7 * time.Millisecond {
		nextSecond(stopSecond(t, s.meta()))
		s.launch()
		time.Sleep(delay)
		s.signal(syscall.SIGTERM)
		s.exit(10 * time.Second)
		if !exists(s.meta()) {
			t.Fatalf("after %s: nothing is saved", delay)
		}
	}
	if status := s.run(); status.Start.Result != agentapi.StartWarm || status.Start.Items != 1000 {
		t.Errorf("start %+v", status.Start)
	}
}

// A memcached that stands still is not ready soon, and ill late.
func TestAMemcachedThatHangs(t *testing.T) {
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
	if status, err := s.ask(); err != nil || status.Phase != agentapi.PhaseServing {
		t.Errorf("/status: %+v, %v", status, err)
	}
	if err := syscall.Kill(status.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code, body, err := s.get("/healthz"); err != nil || code != http.StatusOK {
		t.Errorf("/healthz: %d %s, %v", code, body, err)
	}
}

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// preflight runs the preflight check in the environment of the shard's agent. It
// returns the exit code, stdout and the duration.
func (s *shard) preflight(arguments string) (status int, stdout string, took time.Duration) {
	s.t.Helper()
	args := append(append([]string{}, s.wrap...), agentPath, "preflight", "-termination-log", s.terminationLog(),
		"-arguments", arguments)
	if s.memcached != "" {
		args = append(args, "-memcached", s.memcached)
	}
	command := exec.Command(args[0], args[1:]...)
	command.SysProcAttr = s.attributes
	var out, stderr bytes.Buffer
	command.Stdout, command.Stderr = &out, &stderr
	command.WaitDelay = time.Second
	started := time.Now()
	err := command.Run()
	took = time.Since(started)
	// Children of a program that hung.
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("stderr of the preflight check:\n%s", &stderr)
		}
	})
	return command.ProcessState.ExitCode(), out.String(), took
}

func (s *shard) wantPreflight(arguments, version string) {
	s.t.Helper()
	status, stdout, _ := s.preflight(arguments)
	want := fmt.Sprintf(`{"version":%q}`, version)
	if status != 0 || stdout != want+"\n" || s.reason() != want {
		s.t.Errorf("status %d, stdout %q, termination log %q; want %s", status, stdout, s.reason(), want)
	}
}

func TestPreflightAcceptsAnImage(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.memcached = memcachedPath(version)
			s.wantPreflight(s.arguments("-t", "2", "-o", "hashpower=18"), version)
		})
	}
	for name, arguments := range map[string]func(*shard) string{
		"without arguments": func(*shard) string { return "" },
		"more than once": func(s *shard) string {
			s.preflight(s.arguments())
			return s.arguments()
		},
		"after a failure": func(s *shard) string {
			s.preflight(s.arguments("-t", "0"))
			return s.arguments()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.wantPreflight(arguments(s), newest)
		})
	}
	t.Run("while its port is taken", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.port = startRaw(t, newest, sharedDir(t)).port
		s.wantPreflight(s.arguments(), newest)
	})
	t.Run("found in PATH", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.memcached = ""
		s.contain("export PATH=" + filepath.Dir(memcachedPath(middle)) + ":$PATH")
		s.wantPreflight(s.arguments(), middle)
	})
	t.Run("with a read-only root and no data volume", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.contain("mount -o remount,bind,ro /")
		s.wantPreflight(s.arguments(), newest)
	})
	t.Run("outside of a pod, where there is no termination log", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		if err := os.Remove(s.terminationLog()); err != nil {
			t.Fatal(err)
		}
		status, stdout, _ := s.preflight(s.arguments())
		if want := fmt.Sprintf("{\"version\":%q}\n", newest); status != 0 || stdout != want {
			t.Errorf("status %d, stdout %q", status, stdout)
		}
		if exists(s.terminationLog()) {
			t.Error("it created one")
		}
	})
}

func TestPreflightRejectsAnImage(t *testing.T) {
	t.Parallel()
	// program replaces the shard's memcached by a script.
	program := func(text string) func(*shard) string {
		return func(s *shard) string {
			s.memcached = filepath.Join(s.dir, "program")
			script(s.t, s.memcached, text)
			return s.arguments()
		}
	}
	// A program that does not hang is rejected before the check would give up on one that does.
	const quickly = 9 * time.Second
	const printsVersion = `test "$1" != -V || exec echo memcached 1.6.45` + "\n"
	words := func(words ...string) func(*shard) string {
		return func(s *shard) string { return s.arguments(words...) }
	}
	for name, c := range map[string]struct {
		// prepare returns the arguments.
		prepare func(*shard) string
		want    string
		within  time.Duration
	}{
		"without a memcached": {func(s *shard) string {
			s.memcached = ""
			s.contain("export PATH=/opt/tools:$PATH\nfor d in /usr/bin /bin /usr/local/bin; do test ! -e $d/memcached || mount --bind /dev/null $d/memcached; done")
			return s.arguments()
		}, "no memcached in this image: looked in /opt/tools, ", quickly},
		"with another program": {program("echo Redis server v=7.2.4"),
			`is not memcached: -V printed "Redis server v=7.2.4"`, quickly},
		"with a program that lacks a library": {program("echo no such library >&2; exit 127"),
			`is not memcached: -V printed "no such library": exit status 127`, quickly},
		"with a program of another architecture": {func(s *shard) string {
			s.memcached = filepath.Join(s.dir, "program")
			writeFile(s.t, s.memcached, "\x7fELF\x02\x01\x01")
			if err := os.Chmod(s.memcached, 0o755); err != nil {
				s.t.Fatal(err)
			}
			return s.arguments()
		}, "is not memcached", quickly},
		"with a memcached that crashes": {program(printsVersion + "kill -SEGV $$"),
			`memcached 1.6.45 does not start with its arguments: memcached was terminated by signal "segmentation fault"`, quickly},
		"with a memcached that exits": {program(printsVersion + "echo not today >&2"),
			"memcached 1.6.45 does not start with its arguments: memcached exited unexpectedly with code 0: not today", quickly},
		"with a number out of bounds": {words("-t", "0"),
			"memcached " + newest + " does not start with its arguments: memcached exited unexpectedly with code", quickly},
		"with an unknown option":  {words("-q"), "does not start with its arguments", quickly},
		"with an unknown address": {words("-l", "203.0.113.1"), "failed to listen on one of interface(s) 203.0.113.1", quickly},
		"with an address that is in use": {func(s *shard) string {
			return s.arguments("-l", startRaw(s.t, newest, sharedDir(s.t)).address())
		}, "ddress already in use", quickly},
		"with the agent's own option":      {words("-e", "/tmp/x"), "option -e is not allowed", quickly},
		"with a daemon":                    {words("-vd"), "option -d is not allowed", quickly},
		"with arguments that are not JSON": {func(*shard) string { return "-m 64" }, "the arguments are not a JSON array of strings", quickly},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			status, stdout, took := s.preflight(c.prepare(s))
			if status == 0 || stdout != "" {
				t.Errorf("status %d, stdout %q", status, stdout)
			}
			wantContains(t, "the reason", s.reason(), c.want)
			if took > c.within {
				t.Errorf("it took %s, more than %s", took, c.within)
			}
		})
	}
}

func TestVersionThatDoesNotStartKeepsTheItems(t *testing.T) {
	t.Parallel()
	const printsVersion = `test "$1" != -V || exec echo memcached 9.9.9` + "\n"
	for name, c := range map[string]struct {
		program string
		more    []string
		want    string
	}{
		"it is not memcached":                    {"echo hello", nil, "is not memcached"},
		"it crashes":                             {printsVersion + "kill -SEGV $$", nil, "memcached 9.9.9 does not start, so the items stay for the version that saved them: memcached was terminated by signal"},
		"it has new arguments, and crashes":      {printsVersion + "kill -SEGV $$", []string{"-t", "2"}, "memcached was terminated by signal"},
		"it has other memory, and crashes":       {printsVersion + "kill -SEGV $$", []string{"-m", "96"}, "memcached was terminated by signal"},
		"it has a forbidden option, and crashes": {printsVersion + "kill -SEGV $$", []string{"-e", "/tmp/x"}, "memcached was terminated by signal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.run()
			fill(t, s.address(), 1000)
			s.stopContainer()
			good := s.memcached
			s.memcached = filepath.Join(s.dir, "program")
			script(t, s.memcached, c.program)
			if c.more != nil {
				s.annotate(agentwire.ArgumentsFile, s.arguments(c.more...))
			}
			// The kubelet restarts the container.
			for range 2 {
				s.launch()
				if status := s.exit(); status == 0 {
					t.Error("status 0")
				}
				wantContains(t, "the reason", s.reason(), c.want)
				if strings.Contains(s.log.String(), "Started memcached") {
					t.Error("it was started with the items")
				}
			}
			s.memcached = good
			s.annotate(agentwire.ArgumentsFile, s.arguments())
			wantWarm(t, s.run(), 1000)
			if n := count(t, s.address(), 1000); n != 1000 {
				t.Errorf("%d of 1000 items", n)
			}
		})
	}
}

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

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// prove runs a proof as a shard's agent would run. It returns its exit status,
// what it printed on stdout, and how long it took.
func (s *shard) prove(arguments string) (status int, stdout string, took time.Duration) {
	s.t.Helper()
	args := append(append([]string{}, s.wrap...), agentPath, "prove", "-data", s.data, "-termination-log", s.terminationLog(),
		"-arguments", arguments)
	if s.memcached != "" {
		args = append(args, "-memcached", s.memcached)
	}
	command := exec.Command(args[0], args[1:]...)
	command.SysProcAttr = s.attributes
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	command.WaitDelay = time.Second
	started := time.Now()
	err := command.Run()
	took = time.Since(started)
	// What a program left behind that hung.
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the proof said:\n%s", &said)
		}
	})
	return command.ProcessState.ExitCode(), out.String(), took
}

func (s *shard) wantProof(arguments, version string) {
	s.t.Helper()
	status, stdout, _ := s.prove(arguments)
	want := fmt.Sprintf(`{"version":%q}`, version)
	if status != 0 || stdout != want+"\n" || s.reason() != want {
		s.t.Errorf("status %d, stdout %q, termination log %q; want %s", status, stdout, s.reason(), want)
	}
}

func TestAnImageIsProven(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.memcached = memcachedPath(version)
			s.wantProof(s.arguments("-t", "2", "-o", "hashpower=18"), version)
		})
	}
	for name, arguments := range map[string]func(*shard) string{
		"without arguments": func(*shard) string { return "" },
		"with a socket of the file system, which is not touched": func(s *shard) string {
			return s.arguments("-s", "/nowhere/socket")
		},
		"with passwords": func(s *shard) string {
			writeFile(s.t, s.dir+"/passwords", "someone:secret\n")
			return s.arguments("-Y", s.dir+"/passwords")
		},
		"with the binary protocol alone": func(s *shard) string { return s.arguments("-B", "binary") },
		"more than once": func(s *shard) string {
			s.prove(s.arguments())
			return s.arguments()
		},
		"after a failure, of which nothing stays": func(s *shard) string {
			s.prove(s.arguments("-t", "0"))
			return s.arguments()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.wantProof(arguments(s), newest)
		})
	}
	t.Run("while its port is taken", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.port = startRaw(t, newest, sharedDir(t)).port
		s.wantProof(s.arguments(), newest)
	})
	t.Run("where it is found by itself", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.memcached = ""
		s.contain("export PATH=" + filepath.Dir(memcachedPath(middle)) + ":$PATH")
		s.wantProof(s.arguments(), middle)
	})
	t.Run("with a root that cannot be written and no folder for data", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.data = "/nowhere"
		s.contain("mount -o remount,bind,ro /")
		s.wantProof(s.arguments(), newest)
	})
	t.Run("outside of a pod, where there is no termination log", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		if err := os.Remove(s.terminationLog()); err != nil {
			t.Fatal(err)
		}
		status, stdout, _ := s.prove(s.arguments())
		if want := fmt.Sprintf("{\"version\":%q}\n", newest); status != 0 || stdout != want {
			t.Errorf("status %d, stdout %q", status, stdout)
		}
		if exists(s.terminationLog()) {
			t.Error("it made one")
		}
	})
}

func TestAnImageIsNotProven(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// program has the shard's memcached be a script of the test.
	program := func(text string) func(*shard) string {
		return func(s *shard) string {
			s.memcached = filepath.Join(s.dir, "program")
			script(s.t, s.memcached, text)
			return s.arguments()
		}
	}
	const saysVersion = `test "$1" != -V || exec echo memcached 1.6.45` + "\n"
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
		}, "no memcached in this image: looked in /opt/tools, ", 2 * time.Second},
		"with another program": {program("echo Redis server v=7.2.4"),
			`is not memcached: asked for its version it gave "Redis server v=7.2.4"`, 2 * time.Second},
		"with one that lacks a library": {program("echo no such library >&2; exit 127"),
			`is not memcached: asked for its version it gave "no such library": exit status 127`, 2 * time.Second},
		"with one of another machine": {func(s *shard) string {
			s.memcached = filepath.Join(s.dir, "program")
			writeFile(s.t, s.memcached, "\x7fELF\x02\x01\x01")
			if err := os.Chmod(s.memcached, 0o755); err != nil {
				s.t.Fatal(err)
			}
			return s.arguments()
		}, "is not memcached", 2 * time.Second},
		"with one that does not tell its version": {program("exec sleep 100"), "is not memcached: asked for its version", 10 * time.Second},
		"with one whose child does not end":       {program("sleep 100 &\nsleep 100"), "is not memcached: asked for its version", 10 * time.Second},
		"with one that crashes": {program(saysVersion + "kill -SEGV $$"),
			`memcached 1.6.45 does not start with its arguments: memcached was ended by the signal "segmentation fault"`, 2 * time.Second},
		"with one that ends": {program(saysVersion + "echo not today >&2"),
			"memcached 1.6.45 does not start with its arguments: memcached ended by itself with status 0: not today", 2 * time.Second},
		"with one that never listens": {program(saysVersion + "exec sleep 100"),
			"memcached 1.6.45 does not start with its arguments: it did not answer within 15s", 20 * time.Second},
		"with one that stands still": {program(saysVersion + "kill -STOP $$"),
			"memcached 1.6.45 does not start with its arguments: it did not answer within 15s", 20 * time.Second},
		"with one that listens and never answers": {
			program(saysVersion + "while test $# -gt 1; do test \"$1\" != -p || port=$2; shift; done\nexec env " + silentPort + "=$port " + self),
			"memcached 1.6.45 does not start with its arguments: it takes connections and answered none for 10s", 15 * time.Second},
		"with a number out of bounds": {words("-t", "0"),
			"memcached " + newest + " does not start with its arguments: memcached ended by itself with status", 2 * time.Second},
		"with an option of no version":    {words("-q"), "does not start with its arguments", 2 * time.Second},
		"with a missing certificate":      {words("-Z"), "does not start with its arguments", 2 * time.Second},
		"with an address of nobody":       {words("-l", "203.0.113.1"), "failed to listen on one of interface(s) 203.0.113.1", 2 * time.Second},
		"with the agent's own file":       {words("-e", "/tmp/x"), "the option -e is not possible here", 2 * time.Second},
		"with a daemon":                   {words("-vd"), "the option -d is not possible here", 2 * time.Second},
		"with arguments that are no JSON": {func(*shard) string { return "-m 64" }, "the arguments are not a JSON array of strings", 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			status, stdout, took := s.prove(c.prepare(s))
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

// A version that does not start takes nothing away: the one before it comes back
// with the items.
func TestAVersionThatDoesNotStartLeavesTheItems(t *testing.T) {
	t.Parallel()
	const saysVersion = `test "$1" != -V || exec echo memcached 9.9.9` + "\n"
	for name, c := range map[string]struct {
		program string
		more    []string
		want    string
	}{
		"it is not memcached":                {"echo hello", nil, "is not memcached"},
		"it crashes":                         {saysVersion + "kill -SEGV $$", nil, "memcached 9.9.9 does not start, so what was saved is left as it is: memcached was ended by the signal"},
		"it hangs":                           {saysVersion + "exec sleep 100", nil, "it did not answer within 3s"},
		"it has new arguments, and crashes":  {saysVersion + "kill -SEGV $$", []string{"-t", "2"}, "memcached was ended by the signal"},
		"it has other memory, and crashes":   {saysVersion + "kill -SEGV $$", []string{"-m", "96"}, "memcached was ended by the signal"},
		"it has impossible ones and crashes": {saysVersion + "kill -SEGV $$", []string{"-e", "/tmp/x"}, "memcached was ended by the signal"},
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
				s.annotate(agentapi.ArgumentsFile, s.arguments(c.more...))
			}
			// The kubelet tries again.
			for range 2 {
				s.launch()
				if status := s.exit(10 * time.Second); status == 0 {
					t.Error("status 0")
				}
				wantContains(t, "the reason", s.reason(), c.want)
				if strings.Contains(s.log.String(), "memcached was started") {
					t.Error("it was started with the items")
				}
			}
			s.memcached = good
			s.annotate(agentapi.ArgumentsFile, s.arguments())
			wantWarm(t, s.run(), 1000)
			if n := count(t, s.address(), 1000); n != 1000 {
				t.Errorf("%d of 1000 items", n)
			}
		})
	}
}

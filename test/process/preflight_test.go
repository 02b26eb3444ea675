package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// preflight runs the preflight check in the environment of the shard's agent. It returns the exit code and stdout.
func preflight(s *pods.Shard, arguments string) (status int, stdout string) {
	s.T.Helper()
	args := append(append([]string{}, s.Wrap...), pods.AgentPath, "preflight", "-termination-log", s.TerminationLog(),
		"-arguments", arguments)
	if s.Memcached != "" {
		args = append(args, "-memcached", s.Memcached)
	}
	command := exec.Command(args[0], args[1:]...)
	command.SysProcAttr = s.Attributes
	var out, stderr bytes.Buffer
	command.Stdout, command.Stderr = &out, &stderr
	command.WaitDelay = time.Second
	err := command.Run()
	// Children of a program that hung.
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() {
		if s.T.Failed() {
			s.T.Logf("stderr of the preflight check:\n%s", &stderr)
		}
	})
	return command.ProcessState.ExitCode(), out.String()
}

func wantPreflight(s *pods.Shard, arguments, version string) {
	s.T.Helper()
	status, stdout := preflight(s, arguments)
	want := fmt.Sprintf(`{"version":%q}`, version)
	if status != 0 || stdout != want+"\n" || s.Reason() != want {
		s.T.Errorf("status %d, stdout %q, termination log %q; want %s", status, stdout, s.Reason(), want)
	}
}

func TestPreflightAcceptsAnImage(t *testing.T) {
	pods.WithEach(t, pods.Tested, func(t *testing.T, version string) {
		s := pods.NewShard(t)
		s.Memcached = pods.MemcachedPath(version)
		wantPreflight(s, s.Arguments("-t", "2", "-o", "hashpower=18"), version)
	})
	for name, c := range map[string]struct {
		arguments func(*pods.Shard) string
		version   string
	}{
		"without arguments": {func(*pods.Shard) string { return "" }, pods.Newest},
		"after a failure": {func(s *pods.Shard) string {
			preflight(s, s.Arguments("-t", "0"))
			return s.Arguments()
		}, pods.Newest},
		"while its port is taken": {func(s *pods.Shard) string {
			s.Port = pods.StartCache(s.T, pods.Newest).Port
			return s.Arguments()
		}, pods.Newest},
		"found in PATH": {func(s *pods.Shard) string {
			s.Memcached = ""
			contain(s, "export PATH="+filepath.Dir(pods.MemcachedPath(pods.Middle))+":$PATH")
			return s.Arguments()
		}, pods.Middle},
		"with a read-only root and no data volume": {func(s *pods.Shard) string {
			contain(s, "mount -o remount,bind,ro /")
			return s.Arguments()
		}, pods.Newest},
		"for TLS":                       {func(s *pods.Shard) string { return s.Arguments(pods.WordsRequired...) }, pods.Newest},
		"for TLS and plain connections": {func(s *pods.Shard) string { return s.Arguments(pods.WordsPermissive...) }, pods.Newest},
		"for logins, without a Secret":  {func(s *pods.Shard) string { return s.Arguments(append(pods.WordsLogin, pods.WordsClients...)...) }, pods.Newest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			wantPreflight(s, c.arguments(s), c.version)
		})
	}
	t.Run("outside of a pod, where there is no termination log", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		pods.Must(t, os.Remove(s.TerminationLog()))
		status, stdout := preflight(s, s.Arguments())
		if want := fmt.Sprintf("{\"version\":%q}\n", pods.Newest); status != 0 || stdout != want {
			t.Errorf("status %d, stdout %q", status, stdout)
		}
		if pods.Exists(s.TerminationLog()) {
			t.Error("it created one")
		}
	})
}

func TestPreflightRejectsAnImage(t *testing.T) {
	t.Parallel()
	words := func(words ...string) func(*pods.Shard) string {
		return func(s *pods.Shard) string { return s.Arguments(words...) }
	}
	for name, c := range map[string]struct {
		// prepare returns the arguments.
		prepare func(*pods.Shard) string
		want    string
	}{
		"without a memcached": {func(s *pods.Shard) string {
			s.Memcached = ""
			contain(s, "export PATH=/opt/tools:$PATH\nfor d in /usr/bin /bin /usr/local/bin; do test ! -e $d/memcached || mount --bind /dev/null $d/memcached; done")
			return s.Arguments()
		}, "no memcached in this image: looked in /opt/tools, "},
		"with a program of another architecture": {func(s *pods.Shard) string {
			s.Memcached = filepath.Join(s.Dir, "program")
			writeExecutable(s.T, s.Memcached, "\x7fELF\x02\x01\x01")
			return s.Arguments()
		}, "is not memcached"},
		"with a number out of bounds": {words("-t", "0"),
			"memcached " + pods.Newest + " does not start with its arguments: memcached exited unexpectedly with code"},
		"with an unknown address": {words("-l", "203.0.113.1"), "failed to listen on one of interface(s) 203.0.113.1"},
		"with an address that is in use": {func(s *pods.Shard) string {
			return s.Arguments("-l", pods.StartCache(s.T, pods.Newest).Address())
		}, "ddress already in use"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			status, stdout := preflight(s, c.prepare(s))
			if status == 0 || stdout != "" {
				t.Errorf("status %d, stdout %q", status, stdout)
			}
			pods.WantContains(t, "the reason", s.Reason(), c.want)
		})
	}
}

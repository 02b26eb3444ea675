package process

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// contain runs the agent in a mount namespace that a script changes first.
func contain(s *pods.Shard, script string) {
	s.Attributes = &syscall.SysProcAttr{Setpgid: true, Unshareflags: syscall.CLONE_NEWNS}
	s.Wrap = containerCommand(script, pods.UID)
}

// containerCommand runs a script as root, and then the words after it as a user whose only right is to read MEMCACHED_DIR.
func containerCommand(script string, user int) []string {
	return []string{"sh", "-c", fmt.Sprintf(`set -e
mount --make-rprivate /
%s
exec setpriv --reuid %d --regid %d --clear-groups --no-new-privs \
  --inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search --bounding-set=-all,+dac_read_search "$@"`,
		script, user, user), "sh"}
}

// As in a pod: PID 1, an unknown user, a read-only root file system.
func TestAgentRunsInAContainerAsAnyUser(t *testing.T) {
	t.Parallel()
	const unknownUser = 1000650000
	s := pods.NewShard(t)
	s.Attributes = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	s.Wrap = containerCommand("mount -t proc proc /proc\nmount -o remount,bind,ro /", unknownUser)

	status := s.Run()
	pods.Fill(t, s.Address(), 1000)
	if status.PID < 2 || status.PID > 100 {
		t.Errorf("memcached has the PID %d: is the agent PID 1?", status.PID)
	}
	s.Annotate(agentwire.RestartFile, "once")
	pods.WantWarm(t, s.WaitFor("the restart", func(now agentwire.Status) bool {
		return now.Phase == agentwire.PhaseServing && now.PID != status.PID
	}), 1000)

	pid := s.Command.Process.Pid
	t.Run("it reaps orphaned processes", func(t *testing.T) {
		before := childrenOf(pid, "")
		leave := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-p", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & sleep 1000 >/dev/null 2>&1 &")
		// In the tests' own process group, an exit of the orphans can make the kernel send SIGHUP to all tests (setpgid(2)).
		leave.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if out, err := leave.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		orphans := slices.DeleteFunc(childrenOf(pid, ""), func(child int) bool { return slices.Contains(before, child) })
		if len(orphans) != 2 {
			t.Fatalf("%d new children, want two orphans", len(orphans))
		}
		for _, orphan := range orphans {
			pods.Must(t, syscall.Kill(orphan, syscall.SIGKILL))
		}
		// A zombie stays a child.
		if !pods.Eventually(func() bool { return len(childrenOf(pid, "")) <= len(before) }) {
			t.Fatalf("zombies: %v", childrenOf(pid, "Z"))
		}
		if status := s.Status(); status.Phase != agentwire.PhaseServing {
			t.Errorf("phase %s", status.Phase)
		}
	})

	s.StopContainer()
	pods.WantWarm(t, s.Run(), 1000)
	// The agent gets memcached's exit status, also as PID 1.
	memcached := childrenOf(s.Command.Process.Pid, "")
	if len(memcached) != 1 {
		t.Fatalf("children %v", memcached)
	}
	pods.Must(t, syscall.Kill(memcached[0], syscall.SIGSEGV))
	if status := s.Exit(); status != 128+int(syscall.SIGSEGV) {
		t.Errorf("status %d", status)
	}
	pods.WantContains(t, "the reason", s.Reason(), `memcached was terminated by signal "segmentation fault"`)
}

// childrenOf returns the children of a process in a state of proc_pid_stat(5), by default in any.
func childrenOf(parent int, state string) []int {
	return pods.Processes(func(stat []string) bool {
		return (state == "" || stat[0] == state) && stat[1] == strconv.Itoa(parent)
	})
}

package process

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/memcacheclient"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// A SIGTERM that follows a SIGUSR1 cancels the save.
func TestSIGTERMAfterTheSaveSignal(t *testing.T) {
	t.Parallel()
	t.Run("memcached alone saves nothing", func(t *testing.T) {
		t.Parallel()
		// The second signal must arrive before the event loop checks for the first, which
		// it does once a second or at a new connection.
		for range 5 {
			r := pods.StartCache(t, pods.Newest)
			r.Items() // its event loop has begun
			if err := r.Command.Process.Signal(syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			if !pods.Eventually(func() bool { return r.HasExited() || !pending(t, r.Command.Process.Pid, syscall.SIGUSR1) }) {
				t.Fatal("memcached never got the signal")
			}
			if r.HasExited() {
				continue
			}
			r.Stop(syscall.SIGTERM)
			if !pods.Exists(r.Meta()) {
				return
			}
		}
		t.Fatal("memcached always exited immediately or saved: the trap no longer exists")
	})
	t.Run("the agent never sends one, however many it gets", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		memcached := s.Run().PID
		pods.Fill(t, s.Address(), 1000)
		s.Announce("now")
		// A stopped memcached shows its pending signals.
		freeze(s, memcached)
		s.Signal(syscall.SIGTERM)
		if !pods.Eventually(func() bool { return pending(t, memcached, syscall.SIGUSR1) }) {
			t.Fatal("it never got the save signal")
		}
		for i := range 3 {
			s.Signal(syscall.SIGTERM)
			s.Announce(fmt.Sprintf("after %d signals", i+1)) // the agent handles one after the other
		}
		if pending(t, memcached, syscall.SIGTERM) {
			t.Error("a SIGTERM was sent after the SIGUSR1")
		}
		if err := syscall.Kill(memcached, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if status := s.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
		if start := s.Run().Start; start.Result != agentwire.StartWarm || start.Items != 1000 {
			t.Errorf("start %+v", start)
		}
	})
}

// pending reports whether a signal is pending for a process, as in proc_pid_status(5).
func pending(t *testing.T, pid int, signal syscall.Signal) bool {
	t.Helper()
	mask, err := strconv.ParseUint(pods.ProcStatus(t, pid, "ShdPnd"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return mask&(1<<(signal-1)) != 0
}

// Versions below 1.6.25 require a line that newer ones do not write.
func TestDowngradeBelow1625(t *testing.T) {
	t.Parallel()
	t.Run("memcached alone starts cold", func(t *testing.T) {
		t.Parallel()
		first := pods.StartCache(t, pods.Newest)
		pods.Fill(t, first.Address(), 10)
		first.Stop(syscall.SIGUSR1)
		pods.NextSecond(pods.StopSecond(t, first.Meta()))
		second := pods.StartCacheIn(t, pods.Oldest, first.Dir)
		if n := second.Items(); n != 0 {
			t.Errorf("it started with %d items: the trap no longer exists", n)
		}
		pods.WantContains(t, "stderr", second.Log.String(), "missing some metadata lines")
	})
	t.Run("the agent writes the line and is warm", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		s.Run()
		pods.Fill(t, s.Address(), 1000)
		s.StopContainer()
		s.Memcached = pods.MemcachedPath(pods.Oldest)
		pods.WantWarm(t, s.Run(), 1000)
	})
}

// After the clock was set back, the stop is in the future.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	hourAhead := func(stopped int64) func(string) string {
		return func(text string) string {
			return strings.Replace(text, fmt.Sprintf("Kstop_time %d", stopped), fmt.Sprintf("Kstop_time %d", stopped+3600), 1)
		}
	}
	t.Run("memcached alone starts cold", func(t *testing.T) {
		t.Parallel()
		first := pods.StartCache(t, pods.Newest)
		pods.Fill(t, first.Address(), 10)
		first.Stop(syscall.SIGUSR1)
		stopped := pods.StopSecond(t, first.Meta())
		pods.Edit(t, first.Meta(), hourAhead(stopped))
		pods.NextSecond(stopped)
		if n := pods.StartCacheIn(t, pods.Newest, first.Dir).Items(); n != 0 {
			t.Errorf("it started with %d items: the trap no longer exists", n)
		}
	})
	t.Run("the agent is warm, and TTLs continue", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		s.Run()
		pods.Talk(t, s.Address(), "set short 0 100000 5\r\nlived\r\n")
		s.StopContainer()
		pods.Edit(t, s.Meta(), hourAhead(pods.StopSecond(t, s.Meta())))
		status := s.Run()
		if status.Start.Result != agentwire.StartWarm || status.Items != 1 {
			t.Errorf("start %+v", status.Start)
		}
		answer := pods.Talk(t, s.Address(), "mg short t\r\n")
		ttl, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(answer), "HD t"))
		if err != nil || ttl < 99_000 || ttl >= 100_000 { // not the hour less that the clock was set back by
			t.Errorf("%q; want almost 100,000 seconds to live", answer)
		}
	})
}

// memcached aborts at every start if its metadata file is truncated.
func TestTruncatedMetaFile(t *testing.T) {
	t.Parallel()
	empty := func(string) string { return "" }
	t.Run("memcached alone never starts again", func(t *testing.T) {
		t.Parallel()
		first := pods.StartCache(t, pods.Newest)
		first.Stop(syscall.SIGUSR1)
		pods.Edit(t, first.Meta(), empty)
		for range 2 {
			r := pods.StartCacheIn(t, pods.Newest, first.Dir)
			if !r.HasExited() {
				t.Error("it runs: the trap no longer exists")
			}
		}
	})
	t.Run("the agent starts cold with a reason", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		s.Run()
		pods.Fill(t, s.Address(), 10)
		s.StopContainer()
		pods.Edit(t, s.Meta(), empty)
		start := s.Run().Start
		if start.Result != agentwire.StartCold {
			t.Errorf("start %+v", start)
		}
		pods.WantContains(t, "the reason", start.Reason, "the saved items were unusable and were removed")
	})
}

// A full tmpfs that is smaller than -m kills memcached.
func TestVolumeSmallerThanMemory(t *testing.T) {
	t.Parallel()
	small := func(t *testing.T) string {
		dir := filepath.Join(pods.SharedDir(t), "small")
		pods.MakeDir(t, dir)
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=48m,mode=0777"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		return dir
	}
	t.Run("memcached alone starts and dies by SIGBUS", func(t *testing.T) {
		t.Parallel()
		r := pods.StartCacheIn(t, pods.Newest, small(t))
		conn, err := memcacheclient.Dial(t.Context(), r.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		value := bytes.Repeat([]byte("x"), 500_000)
		for i := 0; err == nil && i < 100; i++ {
			err = conn.Set(t.Context(), fmt.Sprintf("k%d", i), value, 0, 0)
		}
		if err == nil {
			t.Fatal("it stored 50 MB: the trap no longer exists")
		}
		<-r.Exited
		wait := r.Command.ProcessState.Sys().(syscall.WaitStatus)
		if wait.Signal() != syscall.SIGBUS {
			t.Errorf("it exited with %v", r.Command.ProcessState)
		}
	})
	t.Run("the agent does not start it, with a reason", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		s.Data = small(t)
		s.Launch()
		if status := s.Exit(); status == 0 {
			t.Error("status 0")
		}
		pods.WantContains(t, "the reason", s.Reason(), "the data volume has 48 MiB, but memcached with -m 64 needs 65 MiB")
	})
}

// A memcached that exits after it has loaded its items, and before it listens, has
// destroyed them.
func TestArgumentsThatFailAfterLoadingItems(t *testing.T) {
	t.Parallel()
	nowhere := []string{"-l", "203.0.113.1"} // an address for documentation
	t.Run("memcached alone loses its items", func(t *testing.T) {
		t.Parallel()
		first := pods.StartCache(t, pods.Newest)
		pods.Fill(t, first.Address(), 10)
		first.Stop(syscall.SIGUSR1)
		pods.NextSecond(pods.StopSecond(t, first.Meta()))
		if failed := pods.StartCacheIn(t, pods.Newest, first.Dir, nowhere...); !failed.HasExited() {
			t.Fatal("it listens at an address that is not here")
		}
		if n := pods.StartCacheIn(t, pods.Newest, first.Dir).Items(); n != 0 {
			t.Errorf("it started with %d items: the trap no longer exists", n)
		}
	})
	t.Run("the agent tries them in a dry run while memcached serves", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		first := s.Run()
		pods.Fill(t, s.Address(), 1000)
		s.Annotate(agentwire.ArgumentsFile, s.Arguments(nowhere...))
		status := s.WaitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
		pods.WantContains(t, "the rejection", status.ArgumentsError, "failed to listen on one of interface(s) 203.0.113.1")
		if status.PID != first.PID || status.Items != 1000 || status.Phase != agentwire.PhaseServing {
			t.Errorf("memcached was changed: %+v", status)
		}
	})
	t.Run("a new agent tries them in a dry run before it loads the items", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		s.Run()
		pods.Fill(t, s.Address(), 1000)
		s.StopContainer()
		s.Annotate(agentwire.ArgumentsFile, s.Arguments(nowhere...))
		status := s.Run()
		pods.WantWarm(t, status, 1000)
		pods.WantContains(t, "the rejection", status.ArgumentsError, "failed to listen on one of interface(s) 203.0.113.1")
	})
}

// A memcached that was stopped before it enlarged its hash table enlarges it at its
// start, and may then hang: see hashPowerFor in the agent. This test shows the
// enlargement only, since memcached hangs too rarely.
func TestHashTableThatIsTooSmall(t *testing.T) {
	t.Parallel()
	const size = 60_000 // a table of 2^15 grows beyond 49,152
	const grows = "Hash table expansion starting"
	shrink := func(text string) string { return strings.Replace(text, "Khashpower 16", "Khashpower 15", 1) }
	t.Run("memcached alone enlarges it at its start", func(t *testing.T) {
		t.Parallel()
		first := pods.StartCache(t, pods.Newest)
		pods.Fill(t, first.Address(), size)
		first.Stop(syscall.SIGUSR1)
		pods.Edit(t, first.Meta(), shrink)
		pods.NextSecond(pods.StopSecond(t, first.Meta()))
		second := pods.StartCacheIn(t, pods.Newest, first.Dir, "-vv")
		if !pods.Eventually(func() bool { return strings.Contains(second.Log.String(), grows) }) {
			t.Fatal("it does not grow: the trap no longer exists")
		}
	})
	t.Run("the agent starts it with a larger one", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		s.Run()
		pods.Fill(t, s.Address(), size)
		s.StopContainer()
		pods.Edit(t, s.Meta(), shrink)
		s.Annotate(agentwire.ArgumentsFile, s.Arguments("-vv"))
		pods.WantWarm(t, s.Run(), size)
		stats := pods.Talk(t, s.Address(), "stats\r\n")
		pods.WantContains(t, "the statistics", stats, "STAT hash_is_expanding 0\r\n")
		if strings.Contains(stats, "STAT hash_power_level 15\r\n") || strings.Contains(s.Log.String(), grows) {
			t.Errorf("it grows, or will: %s", stats)
		}
	})
}

package facts

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// Each of these loses the items of a memcached without an agent. What the agent does about it is tested in internal/agent.

// The second signal must arrive before the event loop checks for the first, which it does once a second or at a new
// connection.
func TestMemcachedSavesNothingIfASIGTERMFollowsTheSaveSignal(t *testing.T) {
	t.Parallel()
	for range 5 {
		r := pods.StartCache(t, pods.Newest)
		r.Items() // its event loop has begun
		pods.Must(t, r.Command.Process.Signal(syscall.SIGUSR1))
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
}

// pending reports whether a signal is pending for a process, as in proc_pid_status(5).
func pending(t *testing.T, pid int, signal syscall.Signal) bool {
	t.Helper()
	mask, err := strconv.ParseUint(pods.ProcStatus(t, pid, "ShdPnd"), 16, 64)
	pods.Must(t, err)
	return mask&(1<<(signal-1)) != 0
}

// saved returns a memcached that has stopped, with the items that it has saved, after the second of its stop.
func saved(t *testing.T, size int, edit func(string) string) *pods.Cache {
	t.Helper()
	first := pods.StartCache(t, pods.Newest)
	pods.Fill(t, first.Address(), size)
	first.Stop(syscall.SIGUSR1)
	stopped := pods.StopSecond(t, first.Meta())
	pods.Edit(t, first.Meta(), edit)
	pods.NextSecond(stopped)
	return first
}

func unedited(text string) string { return text }

// Versions below 1.6.25 require a line that newer ones do not write.
func TestMemcachedBelow1625StartsWithoutTheItemsOfANewerOne(t *testing.T) {
	t.Parallel()
	second := pods.StartCacheIn(t, pods.Oldest, saved(t, 10, unedited).Dir)
	if n := second.Items(); n != 0 {
		t.Errorf("it started with %d items: the trap no longer exists", n)
	}
	pods.WantContains(t, "stderr", second.Log.String(), "missing some metadata lines")
}

func TestMemcachedStartsWithoutItemsIfItsStopIsInTheFuture(t *testing.T) {
	t.Parallel()
	first := saved(t, 10, func(text string) string {
		before, rest, _ := strings.Cut(text, "Kstop_time ")
		second, after, _ := strings.Cut(rest, "\n")
		stopped, err := strconv.ParseInt(second, 10, 64)
		pods.Must(t, err)
		return fmt.Sprintf("%sKstop_time %d\n%s", before, stopped+3600, after)
	})
	if n := pods.StartCacheIn(t, pods.Newest, first.Dir).Items(); n != 0 {
		t.Errorf("it started with %d items: the trap no longer exists", n)
	}
}

func TestMemcachedNeverStartsWithATruncatedMetaFile(t *testing.T) {
	t.Parallel()
	first := pods.StartCache(t, pods.Newest)
	first.Stop(syscall.SIGUSR1)
	pods.Edit(t, first.Meta(), func(string) string { return "" })
	for range 2 {
		if r := pods.StartCacheIn(t, pods.Newest, first.Dir); !r.HasExited() {
			t.Error("it runs: the trap no longer exists")
		}
	}
}

// A memcached that exits after it has loaded its items, and before it listens, has destroyed them.
func TestMemcachedLosesItsItemsIfItDoesNotListen(t *testing.T) {
	t.Parallel()
	first := saved(t, 10, unedited)
	if failed := pods.StartCacheIn(t, pods.Newest, first.Dir, "-l", "203.0.113.1"); !failed.HasExited() { // an address for documentation
		t.Fatal("it listens at an address that is not here")
	}
	if n := pods.StartCacheIn(t, pods.Newest, first.Dir).Items(); n != 0 {
		t.Errorf("it started with %d items: the trap no longer exists", n)
	}
}

// A memcached that was stopped before it enlarged its hash table enlarges it at its start, and may then hang. This test
// shows the enlargement only, since memcached hangs too rarely.
func TestMemcachedEnlargesItsHashTableAtItsStart(t *testing.T) {
	t.Parallel()
	const size = 60_000 // a table of 2^15 grows beyond 49,152
	first := saved(t, size, func(text string) string { return strings.Replace(text, "Khashpower 16", "Khashpower 15", 1) })
	second := pods.StartCacheIn(t, pods.Newest, first.Dir, "-vv")
	if !pods.Eventually(func() bool { return strings.Contains(second.Log.String(), "Hash table expansion starting") }) {
		t.Fatal("it does not grow: the trap no longer exists")
	}
}

package process

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// severalPolls is how long a test waits before it decides that the agent ignores a
// change: the agent polls each 200 ms, and then waits for the end of a second.
const severalPolls = 1500 * time.Millisecond

// wantUnchanged checks that the agent has not changed memcached.
func wantUnchanged(s *pods.Shard, before agentwire.Status) {
	s.T.Helper()
	now := s.Status()
	if now.PID != before.PID || now.Phase != agentwire.PhaseServing || !slices.Equal(now.Arguments, before.Arguments) ||
		now.ArgumentsError != "" || now.Restart != before.Restart {
		s.T.Errorf("memcached was changed: %+v, before %+v", now, before)
	}
}

func TestNewVersionAndArgumentsAreAppliedInOneStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to       string
		before, after  []string
		requestRestart bool
	}{
		"upwards":                  {pods.Oldest, pods.Newest, nil, []string{"-t", "2"}, false},
		"downwards":                {pods.Newest, pods.Oldest, nil, []string{"-t", "2", "-o", "no_lru_crawler"}, false},
		"to the next version":      {pods.Middle, pods.Newest, []string{"-v"}, nil, false},
		"with a requested restart": {pods.Oldest, pods.Newest, nil, []string{"-t", "2"}, true},
		"the same size in the unit of an older version": {pods.Newest, pods.Oldest, []string{"-o", "slab_chunk_max=256"}, []string{"-o", "slab_chunk_max=262144"}, false},
		"the same size in the unit of a newer version":  {pods.Oldest, pods.Newest, []string{"-o", "slab_chunk_max=262144"}, []string{"-o", "slab_chunk_max=256"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 10_000
			s := pods.NewShard(t)
			s.Memcached = pods.MemcachedPath(c.from)
			s.Annotate(agentwire.ArgumentsFile, s.Arguments(c.before...))
			s.Run()
			pods.Fill(t, s.Address(), size)
			s.Announce("upgrade")
			first := s.Status()
			s.Annotate(agentwire.ArgumentsFile, s.Arguments(c.after...))
			if c.requestRestart {
				s.Annotate(agentwire.RestartFile, "once")
			}
			time.Sleep(severalPolls)
			wantUnchanged(s, first)
			s.Signal(syscall.SIGTERM)
			if status := s.Exit(); status != 0 {
				t.Errorf("status %d", status)
			}

			s.Memcached = pods.MemcachedPath(c.to)
			status := s.Run()
			pods.WantWarm(t, status, size)
			arguments := s.Arguments(c.after...)
			if got := fmt.Sprintf("%q", status.Arguments); strings.ReplaceAll(got, " ", ",") != arguments || status.ArgumentsError != "" || status.Version != c.to {
				t.Errorf("version %s with %s, %q; want %s with %s", status.Version, got, status.ArgumentsError, c.to, arguments)
			}
			if n := pods.Count(t, s.Address(), size); n < size*99/100 {
				t.Errorf("%d of %d items kept", n, size)
			}
			// The annotation still contains the token, which is consumed.
			time.Sleep(severalPolls)
			wantUnchanged(s, status)
			if n := strings.Count(s.Log.String(), "Started memcached"); n != 1 {
				t.Errorf("memcached was started %d times", n)
			}
		})
	}
}

func TestNewVersionKeepsTheItemsInsteadOfNewArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more []string
		want string
	}{
		"if it does not start with them": {[]string{"-l", "203.0.113.1"}, "memcached does not start with them: memcached exited unexpectedly"},
		"if it would start empty":        {[]string{"-m", "96"}, "they require a new pod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			s.Memcached = pods.MemcachedPath(pods.Oldest)
			first := s.Run()
			pods.Fill(t, s.Address(), 1000)
			s.StopContainer()
			s.Annotate(agentwire.ArgumentsFile, s.Arguments(c.more...))
			s.Memcached = pods.MemcachedPath(pods.Newest)
			status := s.Run()
			pods.WantWarm(t, status, 1000)
			pods.WantContains(t, "the rejection", status.ArgumentsError, c.want)
			if status.Version != pods.Newest || !slices.Equal(status.Arguments, first.Arguments) {
				t.Errorf("version %s with %q", status.Version, status.Arguments)
			}
		})
	}
}

func TestChangesWaitWhileAStopIsAnnounced(t *testing.T) {
	t.Parallel()
	t.Run("and are applied when it is withdrawn", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		s.Run()
		pods.Fill(t, s.Address(), 1000)
		s.Announce("upgrade")
		first := s.Status()
		s.Annotate(agentwire.RestartFile, "once")
		s.Annotate(agentwire.ArgumentsFile, s.Arguments("-t", "2"))
		time.Sleep(severalPolls)
		wantUnchanged(s, first)
		s.Annotate(agentwire.StopFile, "")
		status := s.WaitFor("the restart", func(status agentwire.Status) bool {
			return status.Phase == agentwire.PhaseServing && status.Restart == "once"
		})
		pods.WantWarm(t, status, 1000)
		if !slices.Contains(status.Arguments, "-t") {
			t.Errorf("arguments %q", status.Arguments)
		}
	})
	t.Run("and are not applied when they are withdrawn with it", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		s.Run()
		s.Announce("upgrade")
		first := s.Status()
		s.Annotate(agentwire.ArgumentsFile, s.Arguments("-t", "2"))
		time.Sleep(severalPolls)
		s.Annotate(agentwire.ArgumentsFile, s.Arguments())
		s.Announce("")
		time.Sleep(severalPolls)
		wantUnchanged(s, first)
	})
	t.Run("and are not rejected either", func(t *testing.T) {
		t.Parallel()
		s := pods.NewShard(t)
		s.Run()
		s.Announce("upgrade")
		first := s.Status()
		s.Annotate(agentwire.ArgumentsFile, s.Arguments("-m", "96"))
		time.Sleep(severalPolls)
		wantUnchanged(s, first)
		s.Annotate(agentwire.StopFile, "")
		status := s.WaitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
		pods.WantContains(t, "the rejection", status.ArgumentsError, "require a new pod")
	})
}

// The kubelet may start a container before it updates the annotations.
func TestContainerWaitsForAnnouncedArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrive bool
		want   []string
	}{
		"that arrive a moment later":                     {true, []string{"-t", "2"}},
		"and starts with the previous ones without them": {false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			s.Memcached = pods.MemcachedPath(pods.Middle)
			s.Run()
			pods.Fill(t, s.Address(), 1000)
			s.Announce(agentwire.AnnounceArguments("upgrade", s.Arguments("-t", "2")))
			s.Signal(syscall.SIGTERM)
			if status := s.Exit(); status != 0 {
				t.Errorf("status %d", status)
			}
			s.Memcached = pods.MemcachedPath(pods.Newest)
			if c.arrive {
				time.AfterFunc(500*time.Millisecond, func() { s.Annotate(agentwire.ArgumentsFile, s.Arguments("-t", "2")) })
			}
			status := s.Run()
			pods.WantWarm(t, status, 1000)
			time.Sleep(severalPolls)
			now := s.Status()
			if got, want := fmt.Sprintf("%q", now.Arguments), s.Arguments(c.want...); strings.ReplaceAll(got, " ", ",") != want {
				t.Errorf("arguments %s, want %s", got, want)
			}
			if n := strings.Count(s.Log.String(), "Started memcached"); n != 1 || now.PID != status.PID {
				t.Errorf("memcached was started %d times", n)
			}
		})
	}
}

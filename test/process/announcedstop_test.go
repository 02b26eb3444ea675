package process

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// severalPolls is how long a test waits before it decides that the agent ignores a
// change: the agent polls each 200 ms, and then waits for the end of a second.
const severalPolls = 1500 * time.Millisecond

// wantUnchanged checks that the agent has not changed memcached.
func (s *shard) wantUnchanged(before agentwire.Status) {
	s.t.Helper()
	now := s.status()
	if now.PID != before.PID || now.Phase != agentwire.PhaseServing || !slices.Equal(now.Arguments, before.Arguments) ||
		now.ArgumentsError != "" || now.Restart != before.Restart {
		s.t.Errorf("memcached was changed: %+v, before %+v", now, before)
	}
}

func TestNewVersionAndArgumentsAreAppliedInOneStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to       string
		before, after  []string
		requestRestart bool
	}{
		"upwards":                  {oldest, newest, nil, []string{"-t", "2"}, false},
		"downwards":                {newest, oldest, nil, []string{"-t", "2", "-o", "no_lru_crawler"}, false},
		"to the next version":      {middle, newest, []string{"-v"}, nil, false},
		"with a requested restart": {oldest, newest, nil, []string{"-t", "2"}, true},
		"the same size in the unit of an older version": {newest, oldest, []string{"-o", "slab_chunk_max=256"}, []string{"-o", "slab_chunk_max=262144"}, false},
		"the same size in the unit of a newer version":  {oldest, newest, []string{"-o", "slab_chunk_max=262144"}, []string{"-o", "slab_chunk_max=256"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 10_000
			s := newShard(t)
			s.memcached = memcachedPath(c.from)
			s.annotate(agentwire.ArgumentsFile, s.arguments(c.before...))
			s.run()
			fill(t, s.address(), size)
			s.announce("upgrade")
			first := s.status()
			s.annotate(agentwire.ArgumentsFile, s.arguments(c.after...))
			if c.requestRestart {
				s.annotate(agentwire.RestartFile, "once")
			}
			time.Sleep(severalPolls)
			s.wantUnchanged(first)
			s.signal(syscall.SIGTERM)
			if status := s.exit(); status != 0 {
				t.Errorf("status %d", status)
			}

			s.memcached = memcachedPath(c.to)
			status := s.run()
			wantWarm(t, status, size)
			arguments := s.arguments(c.after...)
			if got := fmt.Sprintf("%q", status.Arguments); strings.ReplaceAll(got, " ", ",") != arguments || status.ArgumentsError != "" || status.Version != c.to {
				t.Errorf("version %s with %s, %q; want %s with %s", status.Version, got, status.ArgumentsError, c.to, arguments)
			}
			if n := count(t, s.address(), size); n < size*99/100 {
				t.Errorf("%d of %d items kept", n, size)
			}
			// The annotation still contains the token, which is consumed.
			time.Sleep(severalPolls)
			s.wantUnchanged(status)
			if n := strings.Count(s.log.String(), "Started memcached"); n != 1 {
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
			s := newShard(t)
			s.memcached = memcachedPath(oldest)
			first := s.run()
			fill(t, s.address(), 1000)
			s.stopContainer()
			s.annotate(agentwire.ArgumentsFile, s.arguments(c.more...))
			s.memcached = memcachedPath(newest)
			status := s.run()
			wantWarm(t, status, 1000)
			wantContains(t, "the rejection", status.ArgumentsError, c.want)
			if status.Version != newest || !slices.Equal(status.Arguments, first.Arguments) {
				t.Errorf("version %s with %q", status.Version, status.Arguments)
			}
		})
	}
}

func TestChangesWaitWhileAStopIsAnnounced(t *testing.T) {
	t.Parallel()
	t.Run("and are applied when it is withdrawn", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.run()
		fill(t, s.address(), 1000)
		s.announce("upgrade")
		first := s.status()
		s.annotate(agentwire.RestartFile, "once")
		s.annotate(agentwire.ArgumentsFile, s.arguments("-t", "2"))
		time.Sleep(severalPolls)
		s.wantUnchanged(first)
		s.annotate(agentwire.StopFile, "")
		status := s.waitFor("the restart", func(status agentwire.Status) bool {
			return status.Phase == agentwire.PhaseServing && status.Restart == "once"
		})
		wantWarm(t, status, 1000)
		if !slices.Contains(status.Arguments, "-t") {
			t.Errorf("arguments %q", status.Arguments)
		}
	})
	t.Run("and are not applied when they are withdrawn with it", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.run()
		s.announce("upgrade")
		first := s.status()
		s.annotate(agentwire.ArgumentsFile, s.arguments("-t", "2"))
		time.Sleep(severalPolls)
		s.annotate(agentwire.ArgumentsFile, s.arguments())
		s.announce("")
		time.Sleep(severalPolls)
		s.wantUnchanged(first)
	})
	t.Run("and are not rejected either", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.run()
		s.announce("upgrade")
		first := s.status()
		s.annotate(agentwire.ArgumentsFile, s.arguments("-m", "96"))
		time.Sleep(severalPolls)
		s.wantUnchanged(first)
		s.annotate(agentwire.StopFile, "")
		status := s.waitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
		wantContains(t, "the rejection", status.ArgumentsError, "require a new pod")
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
			s := newShard(t)
			s.memcached = memcachedPath(middle)
			s.run()
			fill(t, s.address(), 1000)
			s.announce(agentwire.AnnounceArguments("upgrade", s.arguments("-t", "2")))
			s.signal(syscall.SIGTERM)
			if status := s.exit(); status != 0 {
				t.Errorf("status %d", status)
			}
			s.memcached = memcachedPath(newest)
			if c.arrive {
				time.AfterFunc(500*time.Millisecond, func() { s.annotate(agentwire.ArgumentsFile, s.arguments("-t", "2")) })
			}
			status := s.run()
			wantWarm(t, status, 1000)
			time.Sleep(severalPolls)
			now := s.status()
			if got, want := fmt.Sprintf("%q", now.Arguments), s.arguments(c.want...); strings.ReplaceAll(got, " ", ",") != want {
				t.Errorf("arguments %s, want %s", got, want)
			}
			if n := strings.Count(s.log.String(), "Started memcached"); n != 1 || now.PID != status.PID {
				t.Errorf("memcached was started %d times", n)
			}
		})
	}
}

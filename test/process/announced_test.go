package process

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// severalLooks is how long a change stands for that is not to be acted on: the
// agent looks each 200 ms, and then waits for the end of a second.
const severalLooks = 1500 * time.Millisecond

// wantUntouched checks that nothing was done to memcached.
func (s *shard) wantUntouched(before agentapi.Status) {
	s.t.Helper()
	now := s.status()
	if now.PID != before.PID || now.Phase != agentapi.PhaseServing || !slices.Equal(now.Arguments, before.Arguments) ||
		now.ArgumentsError != "" || now.Restart != before.Restart {
		s.t.Errorf("memcached was touched: %+v, before %+v", now, before)
	}
}

// A new version and new arguments come together, and cost one start.
func TestAVersionAndArgumentsAreChangedInOneStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to       string
		before, after  []string
		alsoAskRestart bool
	}{
		"upwards":                                {oldest, newest, nil, []string{"-t", "2"}, false},
		"downwards":                              {newest, oldest, nil, []string{"-t", "2", "-o", "no_lru_crawler"}, false},
		"a step":                                 {middle, newest, []string{"-v"}, nil, false},
		"with a restart that was asked for":      {oldest, newest, nil, []string{"-t", "2"}, true},
		"the same size in another version's way": {newest, oldest, []string{"-o", "slab_chunk_max=256"}, []string{"-o", "slab_chunk_max=262144"}, false},
		"and back":                               {oldest, newest, []string{"-o", "slab_chunk_max=262144"}, []string{"-o", "slab_chunk_max=256"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 10_000
			s := newShard(t)
			s.memcached = memcachedPath(c.from)
			s.annotate(agentapi.ArgumentsFile, s.arguments(c.before...))
			s.run()
			fill(t, s.address(), size)
			s.announce("upgrade")
			first := s.status()
			s.annotate(agentapi.ArgumentsFile, s.arguments(c.after...))
			if c.alsoAskRestart {
				s.annotate(agentapi.RestartFile, "once")
			}
			time.Sleep(severalLooks)
			s.wantUntouched(first)
			s.signal(syscall.SIGTERM)
			if status := s.exit(10 * time.Second); status != 0 {
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
			// The token stands there still; it is used up.
			time.Sleep(severalLooks)
			s.wantUntouched(status)
			if n := strings.Count(s.log.String(), "memcached was started"); n != 1 {
				t.Errorf("memcached was started %d times", n)
			}
		})
	}
}

func TestANewVersionKeepsTheItemsRatherThanArgumentsThatItRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more []string
		want string
	}{
		"since it does not start with them": {[]string{"-l", "203.0.113.1"}, "memcached does not start with them: memcached ended by itself"},
		"since it would start empty":        {[]string{"-m", "96"}, "they need a replacement of the pod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.memcached = memcachedPath(oldest)
			first := s.run()
			fill(t, s.address(), 1000)
			s.stopContainer()
			s.annotate(agentapi.ArgumentsFile, s.arguments(c.more...))
			s.memcached = memcachedPath(newest)
			status := s.run()
			wantWarm(t, status, 1000)
			wantContains(t, "the refusal", status.ArgumentsError, c.want)
			if status.Version != newest || !slices.Equal(status.Arguments, first.Arguments) {
				t.Errorf("version %s with %q", status.Version, status.Arguments)
			}
		})
	}
}

func TestChangesWaitWhileAStopIsAnnounced(t *testing.T) {
	t.Parallel()
	t.Run("and are made when it is withdrawn", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.run()
		fill(t, s.address(), 1000)
		s.announce("upgrade")
		first := s.status()
		s.annotate(agentapi.RestartFile, "once")
		s.annotate(agentapi.ArgumentsFile, s.arguments("-t", "2"))
		time.Sleep(severalLooks)
		s.wantUntouched(first)
		s.annotate(agentapi.StopFile, "")
		status := s.waitFor("the restart", func(status agentapi.Status) bool {
			return status.Phase == agentapi.PhaseServing && status.Restart == "once"
		})
		wantWarm(t, status, 1000)
		if !slices.Contains(status.Arguments, "-t") {
			t.Errorf("arguments %q", status.Arguments)
		}
	})
	t.Run("and are not made when they are withdrawn with it", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.run()
		s.announce("upgrade")
		first := s.status()
		s.annotate(agentapi.ArgumentsFile, s.arguments("-t", "2"))
		time.Sleep(severalLooks)
		s.annotate(agentapi.ArgumentsFile, s.arguments())
		s.announce("")
		time.Sleep(severalLooks)
		s.wantUntouched(first)
	})
	t.Run("and are not even refused", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		s.run()
		s.announce("upgrade")
		first := s.status()
		s.annotate(agentapi.ArgumentsFile, s.arguments("-m", "96"))
		time.Sleep(severalLooks)
		s.wantUntouched(first)
		s.annotate(agentapi.StopFile, "")
		status := s.waitFor("the refusal", func(status agentapi.Status) bool { return status.ArgumentsError != "" })
		wantContains(t, "the refusal", status.ArgumentsError, "replacement of the pod")
	})
	t.Run("also one that was about to be made", func(t *testing.T) {
		t.Parallel()
		s := newShard(t)
		first := s.run()
		fill(t, s.address(), 1000)
		for i := range 10 {
			value := fmt.Sprintf("restart %d", i)
			earlyInSecond()
			second := time.Now().Unix()
			s.annotate(agentapi.RestartFile, value)
			for deadline := time.Now().Add(5 * time.Second); strings.Count(s.log.String(), "to be restarted in place") <= i; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("no restart is about to be made")
				}
			}
			s.announce("upgrade")
			if now := time.Now(); now.Unix() != second || now.Nanosecond() > int(800*time.Millisecond) {
				// It was too late.
				s.announce("")
				first = s.waitFor("the restart", func(status agentapi.Status) bool { return status.Restart == value })
				continue
			}
			time.Sleep(severalLooks)
			s.wantUntouched(first)
			s.annotate(agentapi.StopFile, "")
			wantWarm(t, s.waitFor("the restart", func(status agentapi.Status) bool { return status.Restart == value }), 1000)
			return
		}
		t.Fatal("no announcement came in time")
	})
}

// The kubelet may start a container before it brings the annotations up to date.
func TestAContainerWaitsForTheArgumentsThatWereAnnouncedToIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		comes bool
		want  []string
	}{
		"which come a moment later":               {true, []string{"-t", "2"}},
		"and starts with the former without them": {false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.memcached = memcachedPath(middle)
			s.run()
			fill(t, s.address(), 1000)
			s.announce(agentapi.AnnounceArguments("upgrade", s.arguments("-t", "2")))
			s.signal(syscall.SIGTERM)
			if status := s.exit(10 * time.Second); status != 0 {
				t.Errorf("status %d", status)
			}
			s.memcached = memcachedPath(newest)
			if c.comes {
				time.AfterFunc(500*time.Millisecond, func() { s.annotate(agentapi.ArgumentsFile, s.arguments("-t", "2")) })
			}
			status := s.run()
			wantWarm(t, status, 1000)
			time.Sleep(severalLooks)
			now := s.status()
			if got, want := fmt.Sprintf("%q", now.Arguments), s.arguments(c.want...); strings.ReplaceAll(got, " ", ",") != want {
				t.Errorf("arguments %s, want %s", got, want)
			}
			if n := strings.Count(s.log.String(), "memcached was started"); n != 1 || now.PID != status.PID {
				t.Errorf("memcached was started %d times", n)
			}
		})
	}
}

package process

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// handleAnnotations waits until the agent has handled the pod's annotations. A stop is announced afterwards.
func handleAnnotations(s *pods.Shard) {
	s.T.Helper()
	s.Announce("a stop")
	s.Announce("")
	s.Announce("another stop") // what is handled without an announced stop has been
}

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
			s.Announce("the agent has read this")
			s.Announce("and handled what it read with it")
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
			handleAnnotations(s)
			wantUnchanged(s, status)
			if n := strings.Count(s.Log.String(), "Started memcached"); n != 1 {
				t.Errorf("memcached was started %d times", n)
			}
		})
	}
}

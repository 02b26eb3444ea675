package facts

import (
	"slices"
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/exhaustive"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// changes are arguments with which memcached reloads its items, or rejects them. Each
// is tested with memcached alone and with the agent, whose verdict must be the same.
var changes = []struct {
	name   string
	args   []string
	reject bool
}{
	{"more memory", []string{"-m", "128"}, true},
	{"more memory, in one word", []string{"-m128"}, true},
	{"more memory, by the long name", []string{"--memory-limit=128"}, true},
	{"the same memory, by a shortened long name", []string{"--memory-l", "64"}, false},
	{"larger items", []string{"-I", "2m"}, true},
	{"the same largest item, in KiB", []string{"-I", "1024k"}, false},
	{"another growth factor", []string{"-f", "1.5"}, true},
	{"the default growth factor", []string{"-f", "1.25"}, false},
	{"the default growth factor, written otherwise", []string{"-f", "1.250"}, true},
	{"another smallest item", []string{"-n", "64"}, true},
	{"no CAS", []string{"-C"}, true},
	{"no CAS, within a word", []string{"-vC"}, true},
	{"slab sizes", []string{"-o", "slab_sizes=100-200-400-1000"}, true},
	{"no slab reassignment", []string{"-o", "no_slab_reassign"}, true},
	{"no slab reassignment, overridden", []string{"-o", "no_slab_reassign,slab_reassign"}, false},
	{"no modern", []string{"-o", "no_modern"}, true},
	{"modern", []string{"-o", "modern"}, false},
	{"another largest chunk", []string{"-o", "slab_chunk_max=256"}, true},
	// KiB since 1.6.24, bytes before.
	{"the default largest chunk, in KiB", []string{"-o", "slab_chunk_max=512"}, false},
	{"no chunked items", []string{"--extended=no_chunked_items"}, true},
	{"more threads", []string{"-t", "2"}, false},
	{"more connections", []string{"-c", "2048"}, false},
	{"another hash", []string{"-o", "hash_algorithm=jenkins"}, false},
	{"another hash power", []string{"-o", "hashpower=18"}, false},
	{"no LRU crawler", []string{"-o", "no_lru_crawler"}, false},
	{"no LRU maintainer", []string{"-o", "no_lru_maintainer"}, false},
	{"no automove", []string{"-o", "slab_automove=0"}, false},
	{"verbose", []string{"-v"}, false},
	{"no dumps", []string{"-X"}, false},
	{"no evictions", []string{"-M"}, false},
}

func TestMemcachedRejectsItemsAfterTheseChanges(t *testing.T) {
	t.Parallel()
	for v, version := range pods.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			for i, change := range changes {
				if (i+v)%exhaustive.OneIn(3) != 0 { // each with a version
					continue
				}
				t.Run(change.name, func(t *testing.T) {
					t.Parallel()
					dir := pods.SharedDir(t)
					first := pods.StartCacheIn(t, version, dir)
					pods.Fill(t, first.Address(), 5)
					first.Stop(syscall.SIGUSR1)
					pods.NextSecond(pods.StopSecond(t, first.Meta()))
					second := pods.StartCacheIn(t, version, dir, change.args...)
					want := change.reject || version == pods.Oldest && change.args[len(change.args)-1] == "slab_chunk_max=512"
					if rejected := second.Items() == 0; rejected != want {
						t.Errorf("rejected is %v, want %v", rejected, want)
					}
				})
			}
		})
	}
}

func TestAgentRejectsTheSameChangesAsMemcached(t *testing.T) {
	t.Parallel()
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			first := s.Run()
			pods.Fill(t, s.Address(), 100)
			s.Annotate(agentwire.ArgumentsFile, s.Arguments(change.args...))
			if change.reject {
				status := s.WaitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
				pods.WantContains(t, "the rejection", status.ArgumentsError, "they require a new pod")
				if status.PID != first.PID || status.Items != 100 || !slices.Equal(status.Arguments, first.Arguments) {
					t.Errorf("memcached was changed: %+v", status)
				}
				return
			}
			status := s.WaitFor("the restart", func(status agentwire.Status) bool {
				return status.Phase == agentwire.PhaseServing && status.PID != first.PID
			})
			pods.WantWarm(t, status, 100)
			if status.ArgumentsError != "" || len(status.Arguments) != len(first.Arguments)+len(change.args) {
				t.Errorf("arguments %v, %q", status.Arguments, status.ArgumentsError)
			}
		})
	}
}

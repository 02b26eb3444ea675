package facts

import (
	"syscall"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/exhaustive"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// changes are arguments with which memcached reloads its items, or rejects them, as the agent expects by their geometry.
var changes = []struct {
	name string
	args []string
}{
	{"more memory", []string{"-m", "128"}},
	{"more memory, in one word", []string{"-m128"}},
	{"more memory, by the long name", []string{"--memory-limit=128"}},
	{"the same memory, by a shortened long name", []string{"--memory-l", "64"}},
	{"larger items", []string{"-I", "2m"}},
	{"the same largest item, in KiB", []string{"-I", "1024k"}},
	{"another growth factor", []string{"-f", "1.5"}},
	{"the default growth factor", []string{"-f", "1.25"}},
	{"the default growth factor, written otherwise", []string{"-f", "1.250"}},
	{"another smallest item", []string{"-n", "64"}},
	{"no CAS", []string{"-C"}},
	{"no CAS, within a word", []string{"-vC"}},
	{"slab sizes", []string{"-o", "slab_sizes=100-200-400-1000"}},
	{"no slab reassignment", []string{"-o", "no_slab_reassign"}},
	{"no slab reassignment, overridden", []string{"-o", "no_slab_reassign,slab_reassign"}},
	{"no modern", []string{"-o", "no_modern"}},
	{"modern", []string{"-o", "modern"}},
	{"another largest chunk", []string{"-o", "slab_chunk_max=256"}},
	// KiB since 1.6.24, bytes before.
	{"the default largest chunk, in KiB", []string{"-o", "slab_chunk_max=512"}},
	{"no chunked items", []string{"--extended=no_chunked_items"}},
	{"more threads", []string{"-t", "2"}},
	{"more connections", []string{"-c", "2048"}},
	{"another hash", []string{"-o", "hash_algorithm=jenkins"}},
	{"another hash power", []string{"-o", "hashpower=18"}},
	{"no LRU crawler", []string{"-o", "no_lru_crawler"}},
	{"no LRU maintainer", []string{"-o", "no_lru_maintainer"}},
	{"no automove", []string{"-o", "slab_automove=0"}},
	{"verbose", []string{"-v"}},
	{"no dumps", []string{"-X"}},
	{"no evictions", []string{"-M"}},
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
					first := pods.StartCache(t, version)
					pods.Fill(t, first.Address(), 5)
					first.Stop(syscall.SIGUSR1)
					pods.NextSecond(pods.StopSecond(t, first.Meta()))
					second := pods.StartCacheIn(t, version, first.Dir, change.args...)
					want := slab.Of(nil, version).Difference(slab.Of(change.args, version))
					if rejected := second.Items() == 0; rejected != (want != "") {
						t.Errorf("rejected is %v, the agent's reason %q", rejected, want)
					}
				})
			}
		})
	}
}

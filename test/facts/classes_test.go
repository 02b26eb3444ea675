package facts

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/exhaustive"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// The operator adds a page for each slab class to the memory for items.
func TestMemcachedStartsWithOnePageForEachSlabClass(t *testing.T) {
	t.Parallel()
	for v, version := range pods.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			for i, options := range []string{
				"", "-I 2m", "-I 512k", "-f 1.05", "-f 1.08", "-f 1.5", "-f 2", "-f 16", "-n 8", "-n 100", "-n 1000", "-f 1.1 -n 24", "-C",
				"-o slab_sizes=100-200-400-1000", "-o no_modern", "-o no_chunked_items", "-o no_slab_reassign", "-o slab_chunk_max=16",
				"-o no_chunked_items -I 2m", "-f 1.05 -o no_modern", "-o slab_sizes=512", "-f 1.25 -o slab_sizes=99-203-405", "-f 1.33 -n 17 -I 8m",
				"-f 1.07 -o slab_chunk_max=128", "-f 3.7 -n 1", "-f 1.001 -m 100",
			} {
				if (i+v)%exhaustive.OneIn(3) != 0 { // each with a version
					continue
				}
				if version == pods.Oldest { // in KiB since 1.6.24, in bytes before
					options = strings.NewReplacer("slab_chunk_max=128", "slab_chunk_max=131072", "slab_chunk_max=16", "slab_chunk_max=16384").Replace(options)
				}
				t.Run(options, func(t *testing.T) {
					t.Parallel()
					words := strings.Fields(options)
					server := pods.StartCache(t, version, words...)
					stats := server.Stats("stats slabs")
					want, err := strconv.Atoi(stats["active_slabs"])
					sizes := slab.Of(words, version).ChunkSizes()
					if err != nil || len(sizes) != want {
						t.Errorf("%d classes, and memcached has %d (%v)", len(sizes), want, err)
					}
					for i, size := range sizes {
						if got := stats[fmt.Sprintf("%d:chunk_size", i+1)]; got != strconv.FormatInt(size, 10) {
							t.Errorf("class %d has chunks of %d bytes, and memcached has %s", i+1, size, got)
						}
					}
				})
			}
		})
	}
}

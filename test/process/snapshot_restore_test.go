package process

import (
	"fmt"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// A restore skips no item that memcached accepts, at the limit of what it accepts.
func TestRestoreOfTheLargestItem(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		for _, args := range [][]string{{"-I", "512k", "-m", "256"}, {"-I", "512k", "-m", "256", "-C"}} {
			t.Run(version+strings.Join(args, ""), func(t *testing.T) {
				t.Parallel()
				source, target := pods.StartCache(t, version, args...), pods.StartCache(t, version, args...)
				n := 0
				for size := 512<<10 - 100; size < 512<<10; size++ {
					for flags := range 2 {
						key := fmt.Sprintf("%d-%d", size, flags)
						source.Talk(fmt.Sprintf("ms %s %d F%d\r\n%s\r\n", key, size, flags, strings.Repeat("x", size)))
						if strings.HasPrefix(source.Talk("mg "+key+"\r\n"), "HD") {
							n++
						}
					}
				}
				bucket := memblob.OpenBucket(nil)
				save(t, bucket, pods.SaveTask(source))
				if outcome := load(t, bucket, pods.LoadTask(target)); outcome.Restored != int64(n) || n == 0 || n == 200 {
					t.Errorf("%+v of %d items", outcome, n)
				}
			})
		}
	}
}

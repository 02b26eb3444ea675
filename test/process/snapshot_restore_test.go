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

// A memcached without room rejects items, and the restore continues. It would delete what it
// has under the key of an item that it rejects: the restore must not send it.
func TestRestoreIntoAFullShard(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			source := pods.StartCache(t, pods.Newest, "-m", "128")
			pods.FillSized(t, source.Address(), 100_000, 500)
			own := map[string]entry{}
			for i := range 200 {
				// The last ones: there is no room for them.
				own[fmt.Sprintf("item-%d", 99_999-i)] = entry{"newer", 5, -1}
			}
			own["with spaces in it"] = entry{"newer", 6, -1}
			putItems(source, map[string]entry{"with spaces in it": {strings.Repeat("older", 100), 0, -1}})
			bucket := memblob.OpenBucket(nil)
			save(t, bucket, pods.SaveTask(source))
			target := pods.StartCache(t, version, "-m", "40", "-M")
			putItems(target, own)
			outcome := load(t, bucket, pods.LoadTask(target))
			if outcome.Rejected == 0 || outcome.Restored == 0 || outcome.Kept != int64(len(own)) || outcome.Items != 100_001 ||
				outcome.Restored+outcome.Kept != target.Items() {
				t.Errorf("%+v, and the target has %d items", outcome, target.Items())
			}
			wantItems(t, getItems(target, names(own)), own)
		})
	}
}

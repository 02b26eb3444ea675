package process

import (
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// An invalidated item is not saved, and its next reader is requested to renew it as if
// no client had read it.
func TestStaleItems(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			source := pods.StartCache(t, version)
			const items = 1000
			pods.Fill(t, source.Address(), items)
			source.Talk("ms stale 3 T300\r\nold\r\nmd stale I T100\r\nms b2xk 4 b T300\r\nolds\r\nmd b2xk I b\r\n" +
				"ms renewing 1\r\nx\r\nmd renewing I\r\nmg renewing v\r\n")
			outcome := save(t, memblob.OpenBucket(nil), pods.SaveTask(source))
			if outcome.Items != items {
				t.Errorf("%+v with %d items that are not stale", outcome, items)
			}
			pods.WantContains(t, "the message", outcome.Message, "3 are stale")
			for _, request := range []string{"mg stale v\r\n", "mg b2xk b v\r\n"} {
				if answer := source.Talk(request); !strings.Contains(answer, " X") || !strings.Contains(answer, " W") {
					t.Errorf("after the save, the answer to %q is %q", request, answer)
				}
			}
			// Another client renews this one already.
			if answer := source.Talk("mg renewing v\r\n"); !strings.Contains(answer, " Z") {
				t.Errorf("the answer about an item that is renewed is %q", answer)
			}
		})
	}
}

// The order of the LRU, by which memcached evicts, is not that of a save.
func TestSaveDoesNotCountAsAccess(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest)
	source.Talk("ms a 1\r\n1\r\n")
	save(t, memblob.OpenBucket(nil), pods.SaveTask(source))
	if answer := source.Talk("mg a h u\r\n"); answer != "HD h0\r\n" {
		t.Errorf("after a save, %q", answer)
	}
}

// In another cache the addresses would be wrong.
func TestBackupOmitsTheListOfTheShards(t *testing.T) {
	t.Parallel()
	cache := pods.StartCache(t, pods.Newest)
	pods.Talk(t, cache.Address(), "set AmazonElastiCache:cluster 0 60 2\r\n1\n\r\nset greeting 0 0 5\r\nhello\r\n")
	if outcome := save(t, memblob.OpenBucket(nil), pods.SaveTask(cache)); outcome.Snapshot.Items != 1 {
		t.Errorf("the snapshot has %d items, want 1", outcome.Snapshot.Items)
	}
}

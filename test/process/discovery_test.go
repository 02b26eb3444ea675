package process

import (
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// In another cache the addresses would be wrong.
func TestBackupOmitsTheListOfTheShards(t *testing.T) {
	t.Parallel()
	cache := pods.StartCache(t, pods.Newest)
	pods.Talk(t, cache.Address(), "set AmazonElastiCache:cluster 0 60 2\r\n1\n\r\nset greeting 0 0 5\r\nhello\r\n")
	if outcome := save(t, memblob.OpenBucket(nil), pods.SaveTask(cache)); outcome.Snapshot.Items != 1 {
		t.Errorf("the snapshot has %d items, want 1", outcome.Snapshot.Items)
	}
}

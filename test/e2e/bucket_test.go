package e2e

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/s3"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// bucket runs a server of S3 and returns the store that it is.
func (s *space) bucket(prefix string) v1beta1.SnapshotStore {
	s.Helper()
	store, err := s3.Deploy(s.Ctx, k, testImage, s.Namespace, prefix)
	s.Must(err)
	return store
}

func TestBackupInBucketIsRestoredAndDeletedWithItsObject(t *testing.T) {
	const shards, perShard = 2, 20_000
	s := newSpace(t)
	store := s.bucket("cache/production")
	s.Serve("cache", suite.Small(shards))
	sets := s.fill("cache", shards, perShard)
	b := s.backup("first", v1beta1.MemcachedBackupSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: cluster.Unlimited(), DeletionPolicy: v1beta1.SnapshotDelete})
	s.complete(b)
	s.flush("cache", shards)
	if r := s.restored("again", "cache", "first"); r.Status.Restored != shards*perShard {
		t.Errorf("the restore's status is %+v", r.Status)
	}
	for _, set := range sets {
		s.Holds(set)
	}
	// Where it lies is all that another cluster needs to know.
	s.flush("cache", shards)
	r := s.restore("from-elsewhere", v1beta1.MemcachedRestoreSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: "cache"}, RateLimit: cluster.Unlimited(),
		Snapshot: &v1beta1.SnapshotSource{Store: store, Path: b.Status.Snapshot.Path},
	})
	s.complete(r)
	if r.Status.Restored != shards*perShard {
		t.Errorf("the restore's status is %+v", r.Status)
	}
	s.Must(k.Delete(s.Ctx, b))
	s.Gone(b, b.Name)
	again := s.restore("after-it-went", v1beta1.MemcachedRestoreSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: "cache"},
		Snapshot:     &v1beta1.SnapshotSource{Store: store, Path: b.Status.Snapshot.Path},
	})
	s.contains(s.failsFor(again, v1beta1.ReasonSnapshotNotFound).Message(), b.Status.Snapshot.Path)
}

package e2e

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// slow is a rate at which a backup of slowSize items takes so long that it can be interrupted on a busy machine.
const slow, slowSize = 250, 10_000

// slowBackup fills a shard and returns a backup that has copied some of its items.
func (s *space) slowBackup(policy v1beta1.SnapshotDeletionPolicy) *v1beta1.MemcachedBackup {
	s.Helper()
	s.Serve("cache", suite.Small(1))
	s.fill("cache", 1, slowSize)
	b := s.backup("first", v1beta1.MemcachedBackupSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: "cache"}, Store: s.Claim(), RateLimit: rate(slow), DeletionPolicy: policy,
	})
	s.copies(b)
	return b
}

func TestBackupCompletesAfterItsPodIsKilled(t *testing.T) {
	s := newSpace(t)
	b := s.slowBackup(v1beta1.SnapshotRetain)
	s.Must(k.DeleteAllOf(s.Ctx, &corev1.Pod{}, client.InNamespace(s.Namespace), client.MatchingLabels{batchv1.JobNameLabel: b.Status.JobName}, client.GracePeriodSeconds(0)))
	s.complete(b)
	if b.Status.Snapshot.Items != slowSize {
		t.Errorf("the snapshot holds %d items of %d", b.Status.Snapshot.Items, slowSize)
	}
}

func TestRestoreCompletesAfterItsPodIsKilled(t *testing.T) {
	s := newSpace(t)
	s.Serve("cache", suite.Small(1))
	sets := s.fill("cache", 1, slowSize)
	s.backedUp("first", "cache", s.Claim())
	s.flush("cache", 1)
	r := s.restore("again", v1beta1.MemcachedRestoreSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: "cache"}, BackupRef: &v1beta1.BackupReference{Name: "first"}, RateLimit: rate(slow),
	})
	s.copies(r)
	s.Must(k.DeleteAllOf(s.Ctx, &corev1.Pod{}, client.InNamespace(s.Namespace), client.MatchingLabels{batchv1.JobNameLabel: r.Status.JobName}, client.GracePeriodSeconds(0)))
	s.complete(r)
	s.Holds(sets[0])
}

// It is the one test on a cluster in which the operator deletes a Job.
func TestDeletedRunningBackupLeavesNothingInItsStore(t *testing.T) {
	s := newSpace(t)
	b := s.slowBackup(v1beta1.SnapshotDelete)
	s.Must(k.Delete(s.Ctx, b))
	s.Gone(&v1beta1.MemcachedBackup{}, b.Name)
	r := s.restore("of-it", v1beta1.MemcachedRestoreSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: "cache"},
		Snapshot:     &v1beta1.SnapshotSource{Store: b.Spec.Store, Path: s.Namespace + "/cache/first-" + string(b.UID[:8])},
	})
	s.failsFor(r, v1beta1.ReasonSnapshotNotFound)
}

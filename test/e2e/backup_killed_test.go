package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/operator"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// The operator is killed after three writes of a backup, its restore and the deletion of both in turn, each time with a cache
// of its own.
func TestBackupAndRestoreCompleteWhereverTheOperatorIsKilled(t *testing.T) {
	killAfterWrites(t, 15, operators.backUpAndRestore)
}

// backUpAndRestore takes a backup, loses the items, restores them, and deletes the
// backup with its snapshot. The operator is killed after the last write; it is not
// when that is zero.
func (o operators) backUpAndRestore(t *testing.T, last operator.Write) upgrade {
	t.Helper()
	const size = 2000
	s := newSpace(t)
	one := o.start(s)
	store := s.claim("backups")
	s.Apply("cache", suite.Small(1))
	s.Available("cache")
	sets := s.fill("cache", 1, size)

	one.Note(last)
	began := time.Now()
	b := s.backup("first", v1alpha1.MemcachedBackupSpec{
		MemcachedRef: v1alpha1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: cluster.Unlimited(), DeletionPolicy: v1alpha1.SnapshotDelete,
	})
	s.complete(b)
	s.flush("cache", 1)
	r := s.restored("again", "cache", "first")
	s.Holds(sets[0])
	u := upgrade{end: s.endOfRuns(b, r)}
	s.noJobAfter(b)
	s.noJobAfter(r)
	s.Must(k.Delete(s.Ctx, b))
	s.Gone(&v1alpha1.MemcachedBackup{}, b.Name)
	u.took = time.Since(began).Round(100 * time.Millisecond)
	var err error
	u.writes, u.killed, err = one.Noted()
	s.Must(err)
	return u
}

// endOfRuns describes how a backup and its restore finished, with how many Jobs and pods,
// without what differs from run to run.
func (s *space) endOfRuns(b *v1alpha1.MemcachedBackup, r *v1alpha1.MemcachedRestore) string {
	s.Helper()
	var lines []string
	add := func(format string, a ...any) { lines = append(lines, fmt.Sprintf(format, a...)) }
	for _, o := range []client.Object{b, r} {
		status := cluster.RunStatus(o)
		add("%s: %s, %s, %d items, %d percent", o.GetName(), status.Phase, status.Reason, status.Progress.Items, status.Progress.Percent)
		for _, c := range status.Conditions {
			add("%s: %s is %s: %s", o.GetName(), c.Type, c.Status, c.Reason)
		}
	}
	add("snapshot: %d items, %d bytes of %d shards", b.Status.Snapshot.Items, b.Status.Snapshot.Bytes, b.Status.Snapshot.Shards)
	add("restored %d, kept %d, expired %d, rejected %d", r.Status.Restored, r.Status.Kept, r.Status.Expired, r.Status.Rejected)
	var jobs batchv1.JobList
	s.Must(k.List(s.Ctx, &jobs, client.InNamespace(s.Namespace)))
	add("%d jobs", len(jobs.Items))
	for _, job := range jobs.Items {
		var pods corev1.PodList
		s.Must(k.List(s.Ctx, &pods, client.InNamespace(s.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}))
		add("a job of %d pods, %d succeeded", len(pods.Items), job.Status.Succeeded)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// slow is a rate at which a backup of slowSize items takes so long that it can be interrupted on a busy machine.
const slow, slowSize = 250, 10_000

// slowBackup fills a shard and returns a backup that has copied some of its items, and what it is to contain.
func (s *space) slowBackup(policy v1alpha1.SnapshotDeletionPolicy) (*v1alpha1.MemcachedBackup, []*items.Set) {
	s.Helper()
	store := s.claim("backups")
	s.Apply("cache", suite.Small(1))
	s.Available("cache")
	sets := s.fill("cache", 1, slowSize)
	b := s.backup("first", v1alpha1.MemcachedBackupSpec{
		MemcachedRef: v1alpha1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: rate(slow), DeletionPolicy: policy,
	})
	s.copies(b)
	return b, sets
}

func TestBackupCompletesAfterItsPodIsKilled(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	b, sets := s.slowBackup(v1alpha1.SnapshotRetain)
	s.Must(k.DeleteAllOf(s.Ctx, &corev1.Pod{}, client.InNamespace(s.Namespace), client.MatchingLabels{batchv1.JobNameLabel: b.Status.JobName}, client.GracePeriodSeconds(0)))
	s.complete(b)
	if b.Status.Snapshot.Items != slowSize {
		t.Errorf("the snapshot holds %d items of %d", b.Status.Snapshot.Items, slowSize)
	}
	r := s.restore("again", v1alpha1.MemcachedRestoreSpec{
		MemcachedRef: v1alpha1.MemcachedReference{Name: "cache"}, BackupRef: &v1alpha1.BackupReference{Name: "first"}, RateLimit: rate(slow),
	})
	s.flush("cache", 1)
	s.copies(r)
	s.Must(k.DeleteAllOf(s.Ctx, &corev1.Pod{}, client.InNamespace(s.Namespace), client.MatchingLabels{batchv1.JobNameLabel: r.Status.JobName}, client.GracePeriodSeconds(0)))
	s.complete(r)
	s.Holds(sets[0])
}

func TestBackupContinuesAfterWarmRestartOfShard(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	b, _ := s.slowBackup(v1alpha1.SnapshotRetain)
	_, err := k.Restart(s.Ctx, s.Key("cache"), 0, "now", suite.Soon)
	s.Must(err)
	s.complete(b)
	if b.Status.Snapshot.Items < slowSize*999/1000 {
		t.Errorf("the snapshot holds %d items of %d", b.Status.Snapshot.Items, slowSize)
	}
}

func TestBackupFailsWhenShardIsLostAndNextBackupSucceeds(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	b, _ := s.slowBackup(v1alpha1.SnapshotRetain)
	pod := s.Pods("cache")["cache-0"]
	s.Must(k.Delete(s.Ctx, &pod, client.GracePeriodSeconds(0)))
	status := s.failsFor(b, v1alpha1.ReasonShardLostItems)
	s.contains(status.Message, "shard 0")
	if b.Status.Snapshot != nil {
		t.Errorf("it reports a snapshot: %+v", b.Status.Snapshot)
	}
	// Half of a snapshot is none.
	s.Available("cache")
	r := s.restore("of-it", v1alpha1.MemcachedRestoreSpec{MemcachedRef: v1alpha1.MemcachedReference{Name: "cache"}, BackupRef: &v1alpha1.BackupReference{Name: "first"}})
	s.failsFor(r, v1alpha1.ReasonBackupNotComplete)
}

func TestDeletedRunningBackupLeavesNothingInItsStore(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	b, _ := s.slowBackup(v1alpha1.SnapshotDelete)
	s.Must(k.Delete(s.Ctx, b))
	s.Gone(&v1alpha1.MemcachedBackup{}, b.Name)
	r := s.restore("of-it", v1alpha1.MemcachedRestoreSpec{
		MemcachedRef: v1alpha1.MemcachedReference{Name: "cache"},
		Snapshot:     &v1alpha1.SnapshotSource{Store: b.Spec.Store, Path: s.Namespace + "/cache/first-" + string(b.UID[:8])},
	})
	s.failsFor(r, v1alpha1.ReasonSnapshotNotFound)
}

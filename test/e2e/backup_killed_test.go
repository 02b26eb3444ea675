package e2e

import (
	"context"
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
	"github.com/memcached-operator/memcached-operator/test/internal/operator"
)

// The operator is killed after each write of a backup, its restore and the end of
// both in turn, each time with a cache of its own.
func TestABackupAndItsRestoreEndTheSameWhereverTheOperatorIsKilled(t *testing.T) {
	began := time.Now()
	operators := withoutOperator(t)
	var whole upgrade
	if !t.Run("nowhere", func(t *testing.T) { whole = operators.backUpAndRestore(t, operator.Write{}) }) {
		return
	}
	t.Logf("done after %s and %d writes, and it ends so:\n%s", whole.took, len(whole.writes), whole.end)
	for i, w := range whole.writes {
		t.Run(fmt.Sprintf("after write %d, %s", i+1, w), func(t *testing.T) {
			t.Parallel()
			u := operators.backUpAndRestore(t, w)
			t.Logf("killed %t after %s: done after %s and %d writes", u.killed, w, u.took, len(u.writes))
			// How often progress is told depends on what is seen in between.
			if !u.killed && w.Time == 1 {
				t.Errorf("there was no such write among %q", u.writes)
			}
			if u.end != whole.end {
				t.Errorf("it ends so:\n%s\nand otherwise when the operator is not killed:\n%s", u.end, whole.end)
			}
		})
	}
	t.Cleanup(func() {
		t.Logf("killed after each of %d writes within %s", len(whole.writes), time.Since(began).Round(time.Second))
	})
}

// backUpAndRestore takes a backup, loses the items, brings them back, and deletes the
// backup with its snapshot. The operator is killed after the last write; it is not
// when that is zero.
func (o operators) backUpAndRestore(t *testing.T, last operator.Write) upgrade {
	t.Helper()
	const size = 2000
	s := newSpace(t)
	one, err := operator.Start(operator.Options{Program: o.program, Environment: o.environment, Namespace: s.namespace, Dir: t.TempDir()})
	s.must(err)
	t.Cleanup(func() {
		if err := one.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("what the operator told:\n" + one.Log())
		}
	})
	store := s.claim("backups")
	s.apply("cache", small(1))
	s.available("cache")
	sets := s.fill("cache", 1, size)

	one.Note(last)
	began := time.Now()
	b := s.backup("first", v1alpha1.MemcachedBackupSpec{
		Memcached: v1alpha1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: unlimited(), DeletionPolicy: v1alpha1.SnapshotDelete,
	})
	s.complete(b)
	s.flush("cache", 1)
	r := s.restored("again", "cache", "first")
	s.holds(sets[0])
	u := upgrade{end: s.endOfRuns(b, r)}
	s.noJobAfter(b)
	s.noJobAfter(r)
	s.must(k.Delete(s.ctx, b))
	s.eventually("the end of the backup", func(ctx context.Context) error {
		err := k.Get(ctx, client.ObjectKeyFromObject(b), &v1alpha1.MemcachedBackup{})
		if err == nil {
			return fmt.Errorf("it is there")
		}
		return client.IgnoreNotFound(err)
	})
	u.took = time.Since(began).Round(100 * time.Millisecond)
	u.writes, u.killed, err = one.Noted()
	s.must(err)
	return u
}

// endOfRuns tells how a backup and its restore ended, and of how many Jobs and pods,
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
	add("restored %d, kept %d, expired %d, refused %d", r.Status.Restored, r.Status.Kept, r.Status.Expired, r.Status.Refused)
	var jobs batchv1.JobList
	s.must(k.List(s.ctx, &jobs, client.InNamespace(s.namespace)))
	add("%d jobs", len(jobs.Items))
	for _, job := range jobs.Items {
		var pods corev1.PodList
		s.must(k.List(s.ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}))
		add("a job of %d pods, %d succeeded", len(pods.Items), job.Status.Succeeded)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// slow is a rate at which a backup of a few thousand items takes some seconds.
const slow = 1000

func TestABackupWhosePodIsKilledIsDoneByAnotherAndIsWhole(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := newSpace(t)
	store := s.claim("backups")
	s.apply("cache", small(1))
	s.available("cache")
	sets := s.fill("cache", 1, size)
	b := s.backup("first", v1alpha1.MemcachedBackupSpec{Memcached: v1alpha1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: rate(slow)})
	s.copies(b)
	s.must(k.DeleteAllOf(s.ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.MatchingLabels{batchv1.JobNameLabel: b.Status.Job}, client.GracePeriodSeconds(0)))
	s.complete(b)
	if b.Status.Snapshot.Items != size {
		t.Errorf("the snapshot holds %d items of %d", b.Status.Snapshot.Items, size)
	}
	r := s.restore("again", v1alpha1.MemcachedRestoreSpec{
		Memcached: v1alpha1.MemcachedReference{Name: "cache"}, Backup: &v1alpha1.BackupReference{Name: "first"}, RateLimit: rate(slow),
	})
	s.flush("cache", 1)
	s.copies(r)
	s.must(k.DeleteAllOf(s.ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.MatchingLabels{batchv1.JobNameLabel: r.Status.Job}, client.GracePeriodSeconds(0)))
	s.complete(r)
	s.holds(sets[0])
}

func TestABackupGoesOnOverAWarmRestartOfAShard(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := newSpace(t)
	store := s.claim("backups")
	s.apply("cache", small(1))
	s.available("cache")
	s.fill("cache", 1, size)
	b := s.backup("first", v1alpha1.MemcachedBackupSpec{Memcached: v1alpha1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: rate(slow)})
	s.copies(b)
	_, err := k.Restart(s.ctx, s.key("cache"), 0, "now", soon)
	s.must(err)
	s.complete(b)
	if b.Status.Snapshot.Items < size*999/1000 {
		t.Errorf("the snapshot holds %d items of %d", b.Status.Snapshot.Items, size)
	}
}

func TestABackupOfAShardThatIsLostMeanwhileFailsAndTheNextOneIsTold(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := newSpace(t)
	store := s.claim("backups")
	s.apply("cache", small(1))
	s.available("cache")
	s.fill("cache", 1, size)
	b := s.backup("first", v1alpha1.MemcachedBackupSpec{Memcached: v1alpha1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: rate(slow)})
	s.copies(b)
	pod := s.pods("cache")["cache-0"]
	s.must(k.Delete(s.ctx, &pod, client.GracePeriodSeconds(0)))
	status := s.failsFor(b, v1alpha1.ReasonShardLostItems)
	s.says(status.Message, "shard 0")
	if b.Status.Snapshot != nil {
		t.Errorf("it tells of a snapshot: %+v", b.Status.Snapshot)
	}
	// Half of a snapshot is none.
	s.available("cache")
	r := s.restore("of-it", v1alpha1.MemcachedRestoreSpec{Memcached: v1alpha1.MemcachedReference{Name: "cache"}, Backup: &v1alpha1.BackupReference{Name: "first"}})
	s.failsFor(r, v1alpha1.ReasonBackupNotComplete)
}

func TestABackupThatIsDeletedWhileItRunsLeavesNothingInItsStore(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := newSpace(t)
	store := s.claim("backups")
	s.apply("cache", small(1))
	s.available("cache")
	s.fill("cache", 1, size)
	b := s.backup("first", v1alpha1.MemcachedBackupSpec{
		Memcached: v1alpha1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: rate(slow), DeletionPolicy: v1alpha1.SnapshotDelete,
	})
	s.copies(b)
	s.must(k.Delete(s.ctx, b))
	s.eventually("the end of the backup", func(ctx context.Context) error {
		err := k.Get(ctx, client.ObjectKeyFromObject(b), &v1alpha1.MemcachedBackup{})
		if err == nil {
			return fmt.Errorf("it is there")
		}
		return client.IgnoreNotFound(err)
	})
	r := s.restore("of-it", v1alpha1.MemcachedRestoreSpec{
		Memcached: v1alpha1.MemcachedReference{Name: "cache"},
		Snapshot:  &v1alpha1.SnapshotSource{Store: store, Path: s.namespace + "/cache/first-" + string(b.UID[:8])},
	})
	s.failsFor(r, v1alpha1.ReasonSnapshotNotFound)
}

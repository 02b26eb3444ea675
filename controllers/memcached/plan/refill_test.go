package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// A Memcached may have been created again to get rid of the items of the one before.
func TestBackupOfDeletedMemcachedIsNotUsed(t *testing.T) {
	now := time.Unix(1_795_000_000, 0)
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	backup := func(name string, created, taken time.Duration) *v1alpha1.MemcachedBackup {
		b := &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-created))}}
		b.Status.Phase, b.Status.Snapshot = v1alpha1.TransferComplete, &v1alpha1.SnapshotStatus{TakenAt: metav1.NewTime(now.Add(-taken))}
		return b
	}
	former, first, newer := backup("former", 2*time.Hour, 30*time.Minute), backup("first", time.Hour, 59*time.Minute), backup("newer", 50*time.Minute, 50*time.Minute)
	for _, c := range []struct {
		backups []*v1alpha1.MemcachedBackup
		want    *v1alpha1.MemcachedBackup
	}{
		{[]*v1alpha1.MemcachedBackup{former}, nil},
		{[]*v1alpha1.MemcachedBackup{former, first}, first},
		{[]*v1alpha1.MemcachedBackup{first, newer, former}, newer},
	} {
		if got := newestBackup(m, c.backups, now.Add(-24*time.Hour), now); got != c.want {
			t.Errorf("of %d backups, it uses %v", len(c.backups), got)
		}
	}
}

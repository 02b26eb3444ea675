package memcached

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// What somebody else's restore or backup came to tells nothing of this Memcached.

func TestARestoreOfSomebodyElseFillsNothingHoweverItEnded(t *testing.T) {
	for _, phase := range []v1alpha1.RunPhase{"", v1alpha1.RunRunning, v1alpha1.RunComplete, v1alpha1.RunFailed} {
		for owner, want := range map[ownership]v1alpha1.RunPhase{orphaned: v1alpha1.RunFailed, foreign: v1alpha1.RunFailed, predecessors: v1alpha1.RunRunning} {
			seen := smallWorld(1, "good", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"none", "none"})
			m := seen.memcached
			m.Spec.Bootstrap = &v1alpha1.Bootstrap{}
			m.Status.Bootstrap = &v1alpha1.BootstrapStatus{Restore: "cache-bootstrap", Phase: v1alpha1.RunRunning, Deadline: metav1.NewTime(seen.now.Add(time.Minute))}
			restore := &v1alpha1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Name: "cache-bootstrap"}}
			restore.Status.Phase, restore.Status.Restored = phase, 1000
			seen.restores = map[string]object{"cache-bootstrap": {restore, owner}}
			p := planOf(seen)
			if p.bootstrap.Phase != want || strings.Contains(p.bootstrap.Message, "1,000") || len(p.creates) > 0 {
				t.Errorf("one of phase %q that is %d's: %+v, and %d are made", phase, owner, p.bootstrap, len(p.creates))
			}
		}
	}
}

func TestABackupOfSomebodyElseIsNotTheLastOne(t *testing.T) {
	for name, c := range map[string]struct {
		of     string
		labels map[string]string
		want   string
	}{
		"the operator's":                     {"cache", manifests.Labels("cache"), "holds the last 7 items"},
		"of another Memcached":               {"sessions", manifests.Labels("cache"), "exists and is not the operator's"},
		"a person's":                         {"cache", nil, "exists and is not the operator's"},
		"one that another program has made":  {"cache", map[string]string{v1alpha1.LabelManagedBy: "Helm"}, "exists and is not the operator's"},
		"a person's, of another one as well": {"sessions", nil, "exists and is not the operator's"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := smallWorld(1, "being deleted", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"ready", "none"})
			m := seen.memcached
			m.Finalizers = []string{v1alpha1.FinalizerBackup}
			m.Spec.DeletionPolicy, m.Spec.Backup = v1alpha1.DeletionBackup, &v1alpha1.FinalBackup{}
			seen.final = &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: finalName(m), Labels: c.labels}}
			seen.final.Spec.Memcached.Name = c.of
			seen.final.Status.Phase, seen.final.Status.Snapshot = v1alpha1.RunComplete, &v1alpha1.SnapshotStatus{Items: 7}
			p := planOf(seen)
			if !p.deletion.letGo || p.deletion.told == nil || !strings.Contains(p.deletion.told.message, c.want) {
				t.Errorf("let go: %v, %+v; want %s", p.deletion.letGo, p.deletion.told, c.want)
			}
		})
	}
}

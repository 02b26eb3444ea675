package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

func TestFinalizerIsNotAddedToDeletedMemcached(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"ready", "none"})
		obs.Memcached.Spec.DeletionPolicy = v1alpha1.DeletionBackup
		if deleted { // has another finalizer
			obs.Memcached.DeletionTimestamp = &metav1.Time{Time: obs.Now}
		}
		if p := plantest.Plan(obs); p.Actions.Finalizer.Add == deleted || p.Actions.Finalizer.Remove {
			t.Errorf("deleted: %v; added: %v, removed: %v", deleted, p.Actions.Finalizer.Add, p.Actions.Finalizer.Remove)
		}
	}
}

func TestForeignBackupIsNotTheFinalBackup(t *testing.T) {
	const foreignBackup = "deleting without a final backup: MemcachedBackup cache-final-ours exists and isn't managed by the operator"
	for name, c := range map[string]struct {
		of     string
		labels map[string]string
		want   string
	}{
		"the operator's":                     {"cache", resources.Labels("cache"), "MemcachedBackup cache-final-ours contains the last 7 items"},
		"of another Memcached":               {"sessions", resources.Labels("cache"), foreignBackup},
		"a user's":                           {"cache", nil, foreignBackup},
		"another program's":                  {"cache", map[string]string{v1alpha1.LabelManagedBy: "Helm"}, foreignBackup},
		"a user's, and of another Memcached": {"sessions", nil, foreignBackup},
	} {
		t.Run(name, func(t *testing.T) {
			obs := deletedObservation()
			m := obs.Memcached
			m.Spec.FinalBackup = &v1alpha1.FinalBackup{}
			obs.FinalBackup = &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: plan.FinalBackupName(m), Labels: c.labels}}
			obs.FinalBackup.Spec.MemcachedRef.Name = c.of
			obs.FinalBackup.Status.Phase, obs.FinalBackup.Status.Snapshot = v1alpha1.TransferComplete, &v1alpha1.SnapshotStatus{Items: 7}
			change := plantest.Plan(obs).Actions.Finalizer
			if !change.Remove || change.Event == nil || change.Event.Message != c.want {
				t.Errorf("%+v with event %+v, want %s", change, change.Event, c.want)
			}
		})
	}
}

// deletedObservation returns an observation of a deleted Memcached that wants a final backup.
func deletedObservation() *plan.Observation {
	obs := plantest.Observation(1, "being deleted", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"ready", "none"})
	obs.Memcached.Finalizers = []string{v1alpha1.FinalizerFinalBackup}
	obs.Memcached.Spec.DeletionPolicy = v1alpha1.DeletionBackup
	return obs
}

package plan

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// A Memcached whose deletionPolicy is Backup has a finalizer. When it is deleted, the shards
// keep serving, the operator creates a MemcachedBackup that outlives the Memcached, and
// removes the finalizer when the backup has finished or failed, or at a deadline. With
// --cascade=foreground the garbage collector deletes the shards at the same time; then there
// is no backup, but the Memcached is deleted all the same.

// planFinalBackup decides about the finalizer and the final backup. Pausing a Memcached
// delays neither its deletion nor its backup.
func planFinalBackup(obs *observation.Observation) FinalBackup {
	m := obs.Memcached
	wanted := m.Spec.DeletionPolicy == v1beta1.DeletionBackup
	has := slices.Contains(m.Finalizers, v1beta1.FinalizerFinalBackup)
	if m.DeletionTimestamp != nil && has && wanted {
		return planDeletion(obs)
	}
	return FinalBackup{Actions: Actions{Finalizer: FinalizerChange{
		Add: wanted && !has && m.DeletionTimestamp == nil, Remove: has && !wanted,
	}}}
}

// planDeletion decides how the deletion of a Memcached that wants a backup continues.
func planDeletion(obs *observation.Observation) FinalBackup {
	m, name, backup := obs.Memcached, observation.FinalBackupName(obs.Memcached), obs.FinalBackup
	limit := v1beta1.Seconds(m.Spec.Backup.Final.DeadlineSeconds, v1beta1.DefaultFinalBackupDeadlineSeconds)
	deadline := m.DeletionTimestamp.Add(limit)
	change, message := FinalizerChange{}, ""
	switch {
	case backup != nil && !isFinalBackup(m, backup):
		change = WithoutBackup(fmt.Sprintf("MemcachedBackup %s exists and isn't managed by the operator", name))
	case backup != nil && backup.Status.Phase == v1beta1.TransferComplete:
		change = removeFinalizer(event.Normal(v1beta1.EventFinalBackup, "MemcachedBackup %s contains the last %s items", name, text.Thousands(snapshotItems(backup))))
	case backup != nil && backup.Status.Phase == v1beta1.TransferFailed:
		change = WithoutBackup(fmt.Sprintf("MemcachedBackup %s failed: %s", name, backup.Status.Message()))
	case !obs.Now.Before(deadline):
		change = WithoutBackup(fmt.Sprintf("MemcachedBackup %s did not finish within %s", name, limit))
	case backup != nil:
		message = fmt.Sprintf("MemcachedBackup %s %s; the Memcached is deleted when it is done, or at %s",
			name, backupProgress(backup), deadline.UTC().Format("15:04 MST"))
	case !hasPod(obs):
		change = removeFinalizer(event.Normal(v1beta1.EventFinalBackup, "no shard exists to back up"))
	case m.Status.Bootstrap.IsRunning():
		change = WithoutBackup("its shards had not been filled yet")
	default:
		change, message = FinalizerChange{Backup: newFinalBackup(m, obs.Owned.Labels)}, fmt.Sprintf("starting MemcachedBackup %s", name)
	}
	p := FinalBackup{Message: message, Actions: Actions{Finalizer: change}}
	if message != "" {
		p.Actions.RequeueAfter = deadline.Sub(obs.Now)
	}
	return p
}

func removeFinalizer(e event.Event) FinalizerChange {
	return FinalizerChange{Remove: true, Event: &e}
}

// WithoutBackup removes the finalizer although there is no final backup.
func WithoutBackup(why string) FinalizerChange {
	return removeFinalizer(event.Warning(v1beta1.EventFinalBackup, "deleting without a final backup: %s", why))
}

// newFinalBackup returns the final backup. It has no owner, so that it outlives the
// Memcached.
func newFinalBackup(m *v1beta1.Memcached, labels map[string]string) *v1beta1.MemcachedBackup {
	spec := m.Spec.Backup.Final.DeepCopy()
	return &v1beta1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: observation.FinalBackupName(m), Labels: maps.Clone(labels)},
		Spec: v1beta1.MemcachedBackupSpec{
			MemcachedRef: v1beta1.MemcachedReference{Name: m.Name},
			Store:        spec.Store, RateLimit: spec.RateLimit, DeadlineSeconds: spec.DeadlineSeconds, DeletionPolicy: v1beta1.SnapshotRetain,
		},
	}
}

// isFinalBackup reports whether the operator created a backup with that name.
func isFinalBackup(m *v1beta1.Memcached, backup *v1beta1.MemcachedBackup) bool {
	return backup.Spec.MemcachedRef.Name == m.Name && backup.Labels[v1beta1.LabelManagedBy] == v1beta1.ManagedByValue
}

// snapshotItems returns how many items a backup contains.
func snapshotItems(backup *v1beta1.MemcachedBackup) int64 {
	if backup.Status.Snapshot == nil {
		return 0
	}
	return backup.Status.Snapshot.Items
}

// backupProgress describes how far a backup is.
func backupProgress(backup *v1beta1.MemcachedBackup) string {
	progress := backup.Status.Progress
	if progress == nil || progress.TotalItems == 0 {
		return "has copied no items yet"
	}
	return fmt.Sprintf("has copied %d%% of %s items", progress.Percent, text.Thousands(progress.TotalItems))
}

// hasPod reports whether any shard has a pod.
func hasPod(obs *observation.Observation) bool {
	for _, pods := range obs.Pods {
		if len(pods) > 0 {
			return true
		}
	}
	return false
}

// FinalBackup is how the deletion continues.
type FinalBackup struct {
	// Message is what the deletion waits for; empty when it doesn't.
	Message string
	Actions Actions
}

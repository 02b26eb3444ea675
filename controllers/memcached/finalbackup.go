package memcached

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// A Memcached whose deletionPolicy is Backup has a finalizer. When it is deleted, the shards
// keep serving, the operator creates a MemcachedBackup that outlives the Memcached, and
// removes the finalizer when the backup has finished or failed, or at a deadline. With
// --cascade=foreground the garbage collector deletes the shards at the same time; then there
// is no backup, but the Memcached is deleted all the same.

// planFinalBackup decides about the finalizer and the final backup. Pausing a Memcached
// delays neither its deletion nor its backup.
func planFinalBackup(obs *observation) finalBackupPlan {
	m := obs.memcached
	wanted := m.Spec.DeletionPolicy == v1alpha1.DeletionBackup
	has := slices.Contains(m.Finalizers, v1alpha1.FinalizerFinalBackup)
	if m.DeletionTimestamp != nil && has && wanted {
		return planDeletion(obs)
	}
	return finalBackupPlan{actions: Actions{Finalizer: finalizerChange{
		add: wanted && !has && m.DeletionTimestamp == nil, remove: has && !wanted,
	}}}
}

// planDeletion decides how the deletion of a Memcached that wants a backup continues.
func planDeletion(obs *observation) finalBackupPlan {
	m, name, backup := obs.memcached, finalBackupName(obs.memcached), obs.finalBackup
	limit := v1alpha1.Seconds(m.Spec.FinalBackup.DeadlineSeconds, v1alpha1.DefaultFinalBackupDeadlineSeconds)
	deadline := m.DeletionTimestamp.Add(limit)
	change, message := finalizerChange{}, ""
	switch {
	case backup != nil && !isFinalBackup(m, backup):
		change = withoutBackup(fmt.Sprintf("MemcachedBackup %s exists and isn't managed by the operator", name))
	case backup != nil && backup.Status.Phase == v1alpha1.TransferComplete:
		change = removeFinalizer(corev1.EventTypeNormal, fmt.Sprintf("MemcachedBackup %s contains the last %s items", name, text.Thousands(snapshotItems(backup))))
	case backup != nil && backup.Status.Phase == v1alpha1.TransferFailed:
		change = withoutBackup(fmt.Sprintf("MemcachedBackup %s failed: %s", name, backup.Status.Message))
	case !obs.now.Before(deadline):
		change = withoutBackup(fmt.Sprintf("MemcachedBackup %s did not finish within %s", name, limit))
	case backup != nil:
		message = fmt.Sprintf("MemcachedBackup %s %s; the Memcached is deleted when it is done, or at %s",
			name, backupProgress(backup), deadline.UTC().Format("15:04 MST"))
	case !hasPod(obs):
		change = removeFinalizer(corev1.EventTypeNormal, "no shard exists to back up")
	case m.Status.Bootstrap.IsRunning():
		change = withoutBackup("its shards had not been filled yet")
	default:
		change, message = finalizerChange{backup: newFinalBackup(m, obs.owned.Labels)}, fmt.Sprintf("starting MemcachedBackup %s", name)
	}
	p := finalBackupPlan{message: message, actions: Actions{Finalizer: change}}
	if message != "" {
		p.actions.RequeueAfter = deadline.Sub(obs.now)
	}
	return p
}

func removeFinalizer(kind, message string) finalizerChange {
	return finalizerChange{remove: true, event: &event{kind: kind, reason: v1alpha1.EventFinalBackup, message: message}}
}

func withoutBackup(why string) finalizerChange {
	return removeFinalizer(corev1.EventTypeWarning, "deleting without a final backup: "+why)
}

// newFinalBackup returns the final backup. It has no owner, so that it outlives the
// Memcached.
func newFinalBackup(m *v1alpha1.Memcached, labels map[string]string) *v1alpha1.MemcachedBackup {
	spec := m.Spec.FinalBackup.DeepCopy()
	return &v1alpha1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: finalBackupName(m), Labels: maps.Clone(labels)},
		Spec: v1alpha1.MemcachedBackupSpec{
			MemcachedRef: v1alpha1.MemcachedReference{Name: m.Name},
			Store:        spec.Store, RateLimit: spec.RateLimit, DeadlineSeconds: spec.DeadlineSeconds, DeletionPolicy: v1alpha1.SnapshotRetain,
		},
	}
}

// isFinalBackup reports whether the operator created a backup with that name.
func isFinalBackup(m *v1alpha1.Memcached, backup *v1alpha1.MemcachedBackup) bool {
	return backup.Spec.MemcachedRef.Name == m.Name && backup.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue
}

// snapshotItems returns how many items a backup contains.
func snapshotItems(backup *v1alpha1.MemcachedBackup) int64 {
	if backup.Status.Snapshot == nil {
		return 0
	}
	return backup.Status.Snapshot.Items
}

// backupProgress describes how far a backup is.
func backupProgress(backup *v1alpha1.MemcachedBackup) string {
	progress := backup.Status.Progress
	if progress == nil || progress.TotalItems == 0 {
		return "has copied no items yet"
	}
	return fmt.Sprintf("has copied %d%% of %s items", progress.Percent, text.Thousands(progress.TotalItems))
}

// hasPod reports whether any shard has a pod.
func hasPod(obs *observation) bool {
	for _, pods := range obs.pods {
		if len(pods) > 0 {
			return true
		}
	}
	return false
}

// finalBackupPlan is how the deletion continues.
type finalBackupPlan struct {
	// message is what the deletion waits for; empty when it doesn't.
	message string
	actions Actions
}

// finalBackupName returns the name of the final backup of a Memcached. It differs for
// another Memcached of the same name.
func finalBackupName(m *v1alpha1.Memcached) string {
	return m.Name + "-final-" + string(m.UID[:min(len(m.UID), 8)])
}

// finalizerChange adds or removes the finalizer, and records an event when it is removed.
type finalizerChange struct {
	add, remove bool
	event       *event
	// backup is created first. Where that is impossible, because the namespace is being
	// deleted too, the finalizer is removed.
	backup *v1alpha1.MemcachedBackup
}

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// A Memcached whose deletionPolicy is Backup has a finalizer. When it is deleted, the shards
// keep serving, the operator creates a MemcachedBackup that outlives the Memcached, repeats one that
// fails, and removes the finalizer when a backup is complete or, if the spec says so, at a deadline. With
// --cascade=foreground the garbage collector deletes the shards at the same time; then there
// is no backup, but the Memcached is deleted all the same.

// finalBackupRetry is how long a final backup that failed stays before it is repeated.
const finalBackupRetry = time.Minute

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
	deadline, deletes := m.DeletionTimestamp.Add(limit), m.Spec.Backup.Final.OnFailure == v1beta1.FinalBackupDelete
	failure, isLate := finalBackupFailure(m, backup), !obs.Now.Before(deadline)
	switch {
	case backup != nil && failure == "" && backup.Status.Phase == v1beta1.TransferComplete:
		return end(removeFinalizer(event.Normal(v1beta1.EventFinalBackup, "MemcachedBackup %s contains the last %s items", name, text.Thousands(snapshotItems(backup)))))
	case failure != "" && (isLate && deletes || !hasPod(obs)):
		return end(WithoutBackup(failure))
	case isLate && deletes:
		return end(WithoutBackup(fmt.Sprintf("MemcachedBackup %s was not complete within %s", name, limit)))
	case backup == nil && !hasPod(obs):
		return end(removeFinalizer(event.Normal(v1beta1.EventFinalBackup, "no shard exists to back up")))
	case backup == nil && m.Status.Bootstrap.IsRunning():
		return end(WithoutBackup("its shards had not been filled yet"))
	}
	p := repeatFinalBackup(obs, failure, deadline)
	p.Problem = lateBackup(obs, deadline, limit, cmp.Or(failure, p.Message), failure != "")
	p.Actions.RequeueAfter = Soonest(p.Actions.RequeueAfter, deadline.Add(-limit/4).Sub(obs.Now), deadline.Sub(obs.Now))
	return p
}

// end returns the end of a deletion.
func end(change FinalizerChange) FinalBackup { return FinalBackup{Actions: Actions{Finalizer: change}} }

// finalBackupFailure returns why there is no final backup, as far as that is known; else it is empty.
func finalBackupFailure(m *v1beta1.Memcached, backup *v1beta1.MemcachedBackup) string {
	switch {
	case backup != nil && !isFinalBackup(m, backup):
		return fmt.Sprintf("MemcachedBackup %s exists and isn't managed by the operator", backup.Name)
	case backup != nil && backup.Status.Phase == v1beta1.TransferFailed:
		failure := fmt.Sprintf("MemcachedBackup %s failed: %s", backup.Name, backup.Status.Message())
		if backup.Status.Reason() == v1beta1.ReasonDeadlineExceeded { // the spec of the backup is immutable
			failure += "; its deadline is spec.backup.final.deadlineSeconds of the Memcached"
		}
		return failure
	case backup == nil:
		was := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionProgressing)
		if was != nil && was.Reason == v1beta1.ReasonApplyRejected { // it is the last attempt to create the backup that was rejected
			return was.Message
		}
	}
	return ""
}

// repeatFinalBackup creates the final backup, waits for it, or deletes one that failed, to create it again.
func repeatFinalBackup(obs *observation.Observation, failure string, deadline time.Time) FinalBackup {
	m, backup := obs.Memcached, obs.FinalBackup
	switch {
	case backup == nil:
		return FinalBackup{Message: fmt.Sprintf("starting MemcachedBackup %s", observation.FinalBackupName(m)),
			Actions: Actions{Finalizer: FinalizerChange{Backup: newFinalBackup(m, obs.Owned.Labels)}}}
	case failure == "":
		message := fmt.Sprintf("MemcachedBackup %s %s; the Memcached is deleted when it is done", backup.Name, backupProgress(backup))
		if m.Spec.Backup.Final.OnFailure == v1beta1.FinalBackupDelete {
			message += ", or at " + clockTime(deadline)
		}
		return FinalBackup{Message: message}
	case !isFinalBackup(m, backup):
		return FinalBackup{Message: failure, Actions: Actions{RequeueAfter: ConflictRecheck}}
	}
	failed := ptr.Deref(backup.Status.CompletionTime, backup.CreationTimestamp)
	if left := finalBackupRetry - obs.Now.Sub(failed.Time); left > 0 {
		return FinalBackup{Message: failure + "; it is repeated soon", Actions: Actions{RequeueAfter: left}}
	}
	return FinalBackup{Message: failure + "; repeating it", Actions: Actions{Delete: []resources.APIObject{backup}}}
}

// lateBackup returns what requires manual intervention in a deletion: its backup has failed, or a quarter of the time is left. It stays
// while the backup is repeated.
func lateBackup(obs *observation.Observation, deadline time.Time, limit time.Duration, state string, failed bool) *shard.Problem {
	m, reason := obs.Memcached, v1beta1.ReasonFinalBackupLate
	was := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionDegraded)
	isRepeated := was != nil && was.Reason == reason
	switch left := deadline.Sub(obs.Now); {
	case left <= 0:
		reason = v1beta1.ReasonFinalBackupFailed
	case !failed && !isRepeated && left > limit/4:
		return nil
	case m.Spec.Backup.Final.OnFailure == v1beta1.FinalBackupDelete:
		return &shard.Problem{Reason: reason, Message: fmt.Sprintf(
			"%s; without a backup, the Memcached is deleted at %s; to keep it, set spec.backup.final.onFailure to Keep", state, clockTime(deadline))}
	}
	return &shard.Problem{Reason: reason, Message: fmt.Sprintf("%s; the Memcached stays until a backup is complete; to delete it without one: "+
		`kubectl patch memcached %s -n %s --type=merge -p '{"spec":{"deletionPolicy":"Delete"}}'`, state, m.Name, m.Namespace)}
}

func clockTime(at time.Time) string { return at.UTC().Format("15:04 MST") }

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
	// Problem is what requires manual intervention; nil when nothing does.
	Problem *shard.Problem
	Actions Actions
}

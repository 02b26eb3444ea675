package memcached

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// A Memcached whose deletionPolicy is Backup has a finalizer. When it is deleted the
// shards serve on, a MemcachedBackup is made which stays, and once that has ended,
// or at a deadline, the finalizer goes. Nothing else is waited for: with
// --cascade=foreground the garbage collector ends the shards meanwhile, and then
// there is no backup; but the Memcached goes all the same.

// finalDeadline is the API's default.
const finalDeadline = 30 * time.Minute

// deletion is what to do about the finalizer and about the last backup.
type deletion struct {
	memcached *v1alpha1.Memcached
	// hold adds the finalizer; letGo takes it away, and tells with an event if there
	// is something to tell.
	hold, letGo bool
	told        *event
	// backup that is to be made.
	backup *v1alpha1.MemcachedBackup
	// message says what is waited for; empty when nothing is.
	message string
}

// finalName returns the name of the last backup of a Memcached, which is another one
// for one of the same name that follows it.
func finalName(m *v1alpha1.Memcached) string {
	return m.Name + "-final-" + string(m.UID[:min(len(m.UID), 8)])
}

// observeFinal reads the last backup.
func (r *Reconciler) observeFinal(ctx context.Context, seen *observed) error {
	m := seen.memcached
	if m.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(m, v1alpha1.FinalizerBackup) {
		return nil
	}
	backup := &v1alpha1.MemcachedBackup{}
	found, err := r.lookUp(ctx, m.Namespace, finalName(m), backup)
	if found {
		seen.final = backup
	}
	return err
}

// planDeletion decides about the finalizer and the last backup. A Memcached that is
// paused is not kept from going, nor from its backup.
func (p *plan) planDeletion(seen *observed) {
	m, d := seen.memcached, &p.deletion
	d.memcached = m
	wanted := m.Spec.DeletionPolicy == v1alpha1.DeletionBackup
	held := controllerutil.ContainsFinalizer(m, v1alpha1.FinalizerBackup)
	if m.DeletionTimestamp == nil || !held {
		d.hold, d.letGo = wanted && !held && m.DeletionTimestamp == nil, !wanted && held
		return
	}
	without := func(why string) {
		d.letGo, d.told = true, &event{corev1.EventTypeWarning, v1alpha1.EventFinalBackup, "the Memcached goes without a backup: " + why}
	}
	name, backup := finalName(m), seen.final
	if !wanted {
		d.letGo = true
		return
	}
	if m.Spec.Backup == nil {
		without("spec.backup does not say where to")
		return
	}
	took := ptr.Deref(m.Spec.Backup.Deadline, metav1.Duration{Duration: finalDeadline}).Duration
	deadline := m.DeletionTimestamp.Add(took)
	switch {
	case backup != nil && !isFinal(m, backup):
		without(fmt.Sprintf("MemcachedBackup %s exists and is not the operator's", name))
	case backup != nil && backup.Status.Phase == v1alpha1.RunComplete:
		d.letGo, d.told = true, &event{corev1.EventTypeNormal, v1alpha1.EventFinalBackup, fmt.Sprintf("MemcachedBackup %s holds the last %s items", name, thousands(snapshotItems(backup)))}
	case backup != nil && backup.Status.Phase == v1alpha1.RunFailed:
		without(fmt.Sprintf("MemcachedBackup %s failed: %s", name, backup.Status.Message))
	case !seen.now.Before(deadline):
		without(fmt.Sprintf("MemcachedBackup %s did not end within %s", name, took))
	case backup != nil:
		d.message = fmt.Sprintf("MemcachedBackup %s %s; the Memcached goes when it is done, at %s at the latest", name, copying(backup), deadline.UTC().Format("15:04 MST"))
		p.lookAfter(deadline.Sub(seen.now))
	case !hasPod(seen):
		d.letGo, d.told = true, &event{corev1.EventTypeNormal, v1alpha1.EventFinalBackup, "there is no shard that could be backed up"}
	case isBootstrapping(m.Status.Bootstrap):
		without("its shards were not filled yet")
	default:
		d.backup = finalBackup(m)
		d.message = fmt.Sprintf("MemcachedBackup %s begins", name)
		p.lookAfter(deadline.Sub(seen.now))
	}
}

// finalBackup returns the last backup. It has no owner, so that it stays.
func finalBackup(m *v1alpha1.Memcached) *v1alpha1.MemcachedBackup {
	how := m.Spec.Backup.DeepCopy()
	return &v1alpha1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: finalName(m), Labels: manifests.Labels(m.Name)},
		Spec: v1alpha1.MemcachedBackupSpec{
			Memcached: v1alpha1.MemcachedReference{Name: m.Name},
			Store:     how.Store, RateLimit: how.RateLimit, Deadline: how.Deadline, DeletionPolicy: v1alpha1.SnapshotRetain,
		},
	}
}

// isFinal says whether a backup of that name is the operator's.
func isFinal(m *v1alpha1.Memcached, backup *v1alpha1.MemcachedBackup) bool {
	return backup.Spec.Memcached.Name == m.Name && backup.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue
}

// snapshotItems returns how many items a backup holds.
func snapshotItems(backup *v1alpha1.MemcachedBackup) int64 {
	if backup.Status.Snapshot == nil {
		return 0
	}
	return backup.Status.Snapshot.Items
}

// copying says how far a backup is.
func copying(backup *v1alpha1.MemcachedBackup) string {
	progress := backup.Status.Progress
	if progress == nil || progress.TotalItems == 0 {
		return "has copied nothing yet"
	}
	return fmt.Sprintf("has copied %d %% of %s items", progress.Percent, thousands(progress.TotalItems))
}

// hasPod says whether any shard has a pod.
func hasPod(seen *observed) bool {
	for _, pods := range seen.pods {
		if len(pods) > 0 {
			return true
		}
	}
	return false
}

// settleDeletion makes the last backup, and adds or takes away the finalizer. It
// returns whether the finalizer has gone from a Memcached that is deleted: then
// there is nothing more to tell of it.
func (r *Reconciler) settleDeletion(ctx context.Context, d deletion, a *applied) (isGone bool) {
	m := d.memcached
	if d.backup != nil {
		err := r.Client.Create(ctx, d.backup, client.FieldOwner(v1alpha1.ManagedByValue))
		switch {
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			d.letGo, d.told = true, &event{corev1.EventTypeWarning, v1alpha1.EventFinalBackup, "the Memcached goes without a backup: its namespace goes too"}
		case apierrors.IsAlreadyExists(err):
			a.outrun = true
		default:
			a.add(manifests.Key{Kind: kindBackup, Name: d.backup.Name}, err)
		}
	}
	if !d.hold && !d.letGo {
		return false
	}
	changed := m.DeepCopy()
	if d.hold {
		controllerutil.AddFinalizer(changed, v1alpha1.FinalizerBackup)
	} else {
		controllerutil.RemoveFinalizer(changed, v1alpha1.FinalizerBackup)
	}
	patch := client.MergeFromWithOptions(m.DeepCopy(), client.MergeFromWithOptimisticLock{})
	switch err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(v1alpha1.ManagedByValue)); {
	case apierrors.IsNotFound(err):
		return true
	case apierrors.IsConflict(err):
		a.outrun = true
		return false
	case err != nil:
		a.failures = append(a.failures, fmt.Errorf("writing the finalizer: %w", err))
		return false
	}
	m.ResourceVersion, m.Finalizers = changed.ResourceVersion, changed.Finalizers
	if d.told != nil {
		r.Recorder.Eventf(m, nil, d.told.kind, d.told.reason, "Reconcile", "%s", d.told.message)
	}
	return d.letGo && m.DeletionTimestamp != nil
}

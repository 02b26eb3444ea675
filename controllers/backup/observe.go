package backup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// observed is all that a reconcile saw.
type observed struct {
	backup *v1alpha1.MemcachedBackup
	// memcached that is copied; nil when there is none of that name.
	memcached *v1alpha1.Memcached
	// save is the Job that copies, erase the one that deletes the copy.
	save, erase snapshotjob.Observed
	// readers, by name, restore from the snapshot just now. They are looked for when
	// the backup is being deleted.
	readers []string
	// now is when it was seen.
	now time.Time
}

// observe reads all that a reconcile needs.
func (r *Reconciler) observe(ctx context.Context, b *v1alpha1.MemcachedBackup) (*observed, error) {
	seen := &observed{backup: b, now: r.Clock.Now()}
	var err error
	if seen.memcached, err = r.memcachedOf(ctx, b); err != nil {
		return nil, err
	}
	deletes := b.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(b, v1alpha1.FinalizerSnapshot)
	observer := snapshotjob.Observer{Cache: r.Client, Live: r.Live, Progress: r.Progress}
	if seen.save, err = observer.Observe(ctx, snapshotjob.Backup, b, deletes || b.Status.Phase == v1alpha1.RunRunning, seen.now); err != nil {
		return nil, err
	}
	if !deletes {
		return seen, nil
	}
	if seen.erase, err = observer.Observe(ctx, snapshotjob.Delete, b, true, seen.now); err != nil {
		return nil, err
	}
	from := client.Reader(r.Client)
	if seen.erase.Job == nil { // it is about to be made
		from = r.Live
	}
	if seen.readers, err = readersOf(ctx, from, b); err != nil {
		return nil, err
	}
	return seen, nil
}

// memcachedOf returns the Memcached of a backup, or nil. One that is not in the cache
// may be newer than it.
func (r *Reconciler) memcachedOf(ctx context.Context, b *v1alpha1.MemcachedBackup) (*v1alpha1.Memcached, error) {
	key := client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.Memcached.Name}
	m := &v1alpha1.Memcached{}
	err := r.Client.Get(ctx, key, m)
	if apierrors.IsNotFound(err) && !snapshotjob.HasEnded(b.Status.RunStatus) {
		err = r.Live.Get(ctx, key, m)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking up Memcached %s: %w", key.Name, err)
	}
	return m, nil
}

// readersOf returns the restores that read the snapshot of a backup.
func readersOf(ctx context.Context, from client.Reader, b *v1alpha1.MemcachedBackup) ([]string, error) {
	var restores v1alpha1.MemcachedRestoreList
	if err := from.List(ctx, &restores, client.InNamespace(b.Namespace)); err != nil {
		return nil, fmt.Errorf("listing restores: %w", err)
	}
	var readers []string
	for i := range restores.Items {
		if restore := &restores.Items[i]; restore.Status.Phase == v1alpha1.RunRunning && reads(restore, b) {
			readers = append(readers, "MemcachedRestore "+restore.Name)
		}
	}
	slices.Sort(readers)
	return readers, nil
}

// reads says whether a restore reads the snapshot of a backup, by whichever name.
func reads(restore *v1alpha1.MemcachedRestore, b *v1alpha1.MemcachedBackup) bool {
	if restore.Spec.Backup != nil {
		return restore.Spec.Backup.Name == b.Name
	}
	s := restore.Spec.Snapshot
	return s != nil && s.Path == snapshotjob.SnapshotPath(b) && equality.Semantic.DeepEqual(s.Store, b.Spec.Store)
}

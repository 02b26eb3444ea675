package backup

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
)

type observation struct {
	transfer.Observation
	backup *v1beta1.MemcachedBackup
	// deletion is the Job that deletes the snapshot. It is read, as are the restores,
	// when the backup is being deleted.
	deletion transfer.JobObservation
	// activeRestores are the names of those that read the snapshot.
	activeRestores []string
}

func observe(ctx context.Context, r transfer.Observer, common transfer.Observation) (*observation, error) {
	obs := &observation{Observation: common, backup: common.Object.(*v1beta1.MemcachedBackup)}
	if obs.backup.DeletionTimestamp == nil || !hasFinalizer(obs.backup) {
		return obs, nil
	}
	var err error
	if obs.deletion, err = r.ObserveJob(ctx, transfer.Delete, obs.backup, true, obs.Now); err != nil {
		return nil, err
	}
	from := r.Cache
	if obs.deletion.Job == nil { // the plan may create it
		from = r.API
	}
	obs.activeRestores, err = activeRestores(ctx, from, obs.backup, obs.Now)
	return obs, err
}

func activeRestores(ctx context.Context, from client.Reader, b *v1beta1.MemcachedBackup, now time.Time) (names []string, err error) {
	var restores v1beta1.MemcachedRestoreList
	if err := from.List(ctx, &restores, client.InNamespace(b.Namespace)); err != nil {
		return nil, fmt.Errorf("listing restores: %w", err)
	}
	for i := range restores.Items {
		if restore := &restores.Items[i]; restore.IsActive(now) && reads(restore, b) {
			names = append(names, "MemcachedRestore "+restore.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// reads reports whether a restore reads the snapshot of a backup, by either reference. The last element of a path is unique, and the
// others may be in the store instead, which has many spellings.
func reads(restore *v1beta1.MemcachedRestore, b *v1beta1.MemcachedBackup) bool {
	if restore.Spec.BackupRef != nil {
		return restore.Spec.BackupRef.Name == b.Name
	}
	s := restore.Spec.Snapshot
	return s != nil && path.Base(s.Path) == path.Base(transfer.SnapshotPath(b))
}

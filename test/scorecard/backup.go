package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

var (
	// transferDeadline of a backup and a restore is less than stepTimeout, so that the operator reports what they wait for.
	transferDeadline = ptr.To(int32((stepTimeout * 5 / 6).Seconds()))
	// claimSize is many times the size of the items.
	claimSize = "64Mi"
)

// backupRestore tests that a backup copies the items of a Memcached to a volume, and that a restore reloads them
// after the shards have lost them.
func backupRestore(ctx context.Context, e *environment) error {
	const shards = 2
	i, err := e.createAvailable(ctx, "scorecard-backup", small(shards))
	if err != nil {
		return err
	}
	sets, err := i.fillAll(ctx, shards)
	if err != nil {
		return err
	}
	claim := cluster.Claim(i.generateName(), claimSize)
	if err := e.createObject(ctx, claim); err != nil {
		return err
	}
	backup, err := i.backup(ctx, claim.Name)
	if err != nil {
		return err
	}
	if err := i.flush(sets); err != nil {
		return err
	}
	if err := i.restore(ctx, backup); err != nil {
		return err
	}
	if err := keepAll(sets); err != nil {
		return fmt.Errorf("after the restore: %w", err)
	}
	e.logf("all items are back, with their values")
	return nil
}

func (i *instance) generateName() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: i.namespace, GenerateName: i.key.Name + "-"}
}

// backup copies the items to a claim and returns the complete backup.
func (i *instance) backup(ctx context.Context, claim string) (*v1beta1.MemcachedBackup, error) {
	b := &v1beta1.MemcachedBackup{
		ObjectMeta: i.generateName(),
		Spec: v1beta1.MemcachedBackupSpec{
			MemcachedRef:    v1beta1.MemcachedReference{Name: i.key.Name},
			Store:           v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: claim}},
			DeadlineSeconds: transferDeadline,
		},
	}
	if err := i.transfer(ctx, b); err != nil {
		return nil, err
	}
	return b, checkSnapshot(b.Status.Snapshot, *i.last.Spec.Size)
}

func (i *instance) restore(ctx context.Context, b *v1beta1.MemcachedBackup) error {
	r := &v1beta1.MemcachedRestore{
		ObjectMeta: i.generateName(),
		Spec: v1beta1.MemcachedRestoreSpec{
			MemcachedRef:    v1beta1.MemcachedReference{Name: i.key.Name},
			BackupRef:       &v1beta1.BackupReference{Name: b.Name},
			DeadlineSeconds: transferDeadline,
		},
	}
	if err := i.transfer(ctx, r); err != nil {
		return err
	}
	return checkRestore(&r.Status, int64(*i.last.Spec.Size)*itemsPerShard)
}

// transfer creates a backup or a restore and waits until it is complete.
func (i *instance) transfer(ctx context.Context, o client.Object) error {
	if err := i.createObject(ctx, o); err != nil {
		return err
	}
	i.logf("created a %T", o)
	waiting, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err := i.Complete(waiting, o, func(status *v1beta1.TransferStatus) {
		i.logf("  %s: %d of %d items", status.Phase, status.Progress.Items, status.Progress.TotalItems)
	})
	status := cluster.RunStatus(o)
	i.logf("%s is %q: %s: %s", o.GetName(), status.Phase, status.Reason(), status.Message())
	if err != nil && status.ObservedGeneration <= 0 && status.Phase == "" && ctx.Err() == nil {
		return fmt.Errorf("%s has no status after %s: %w", o.GetName(), stepTimeout, errNoOperator)
	}
	return err
}

// checkSnapshot returns an error unless a snapshot contains all items of so many shards.
func checkSnapshot(snapshot *v1beta1.SnapshotStatus, shards int32) error {
	switch want := int64(shards) * itemsPerShard; {
	case snapshot == nil:
		return errors.New("the backup is complete, but its status has no snapshot")
	case snapshot.Shards != shards || snapshot.Items != want:
		return fmt.Errorf("the snapshot contains %d items of %d shards, want %d of %d", snapshot.Items, snapshot.Shards, want, shards)
	case snapshot.Path == "" || snapshot.StoredBytes <= 0 || snapshot.SnapshotTime.IsZero():
		return fmt.Errorf("the status of the snapshot is incomplete: %+v", *snapshot)
	}
	return nil
}

// checkRestore returns an error unless a restore reports that it wrote so many items and skipped none.
func checkRestore(status *v1beta1.MemcachedRestoreStatus, want int64) error {
	if status.Restored != want || status.Kept != 0 || status.Expired != 0 || status.Rejected != 0 {
		return fmt.Errorf("%d items were restored, %d kept, %d expired and %d rejected, want %d restored and no others",
			status.Restored, status.Kept, status.Expired, status.Rejected, want)
	}
	return nil
}

// flush removes all items from the shards.
func (i *instance) flush(sets []*items.Set) error {
	for ordinal, server := range i.last.Status.Servers {
		if err := items.Flush(server); err != nil {
			return err
		}
		if n, err := sets[ordinal].Count(); err != nil {
			return err
		} else if n != 0 {
			return fmt.Errorf("%s has %d items after it was flushed", server, n)
		}
	}
	i.logf("flushed the shards")
	return nil
}

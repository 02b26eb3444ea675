package demo

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// backupName is the name of the claim, the backup and the restore.
const backupName = "demo"

// backup writes a backup to a volume, deletes the Memcached, and restores its items to a new one.
func (d *demo) backup(ctx context.Context) error {
	d.chapter("Create a backup, lose every shard, and restore the items")
	count, err := d.write()
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: d.key.Namespace, Name: backupName}
	claim := cluster.Claim(meta, "1Gi")
	b := &v1beta1.MemcachedBackup{ObjectMeta: meta, Spec: v1beta1.MemcachedBackupSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: d.key.Name},
		Store:        v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: backupName}},
	}}
	r := &v1beta1.MemcachedRestore{ObjectMeta: meta, Spec: v1beta1.MemcachedRestoreSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: d.key.Name}, BackupRef: &v1beta1.BackupReference{Name: backupName},
	}}
	for _, o := range []client.Object{r, b, claim} { // of an earlier demo
		err := d.Delete(ctx, o)
		if err == nil {
			err = d.Gone(ctx, o)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	d.command("kubectl apply -f claim.yaml -f backup.yaml    # a claim of 1Gi and a MemcachedBackup to it")
	if err := d.Create(ctx, claim); err != nil {
		return fmt.Errorf("creating a claim: %w", err)
	}
	if err := d.transfer(ctx, b); err != nil {
		return err
	}
	s := b.Status.Snapshot
	d.good("the snapshot contains %d items in %.1f MiB, and the cache kept serving", s.Items, float64(s.StoredBytes)/(1<<20))

	d.command("kubectl delete memcached %s", d.key.Name)
	d.command("kubectl apply -f %s", sample)
	o, err := d.sample()
	if err != nil {
		return err
	}
	if _, err := d.deleteMemcached(ctx, o.DeepCopy()); err != nil {
		return err
	}
	if _, err := d.applySample(ctx, o); err != nil {
		return err
	}
	if err := d.connect(ctx); err != nil {
		return err
	}
	left, err := d.count(0, 0, 1, 2)
	if err != nil {
		return err
	}
	d.result("the new shards have %d of %d items", left, count)
	d.command("kubectl apply -f restore.yaml                 # a MemcachedRestore of the backup")
	began := time.Now()
	if err := d.transfer(ctx, r); err != nil {
		return err
	}
	restored, err := d.count(minWarm, 0, 1, 2)
	if err != nil {
		return err
	}
	d.good("the client reads %d of %d items after %.1f s", restored, count, time.Since(began).Seconds())
	return nil
}

// transfer creates a backup or a restore and waits until it is complete.
func (d *demo) transfer(ctx context.Context, o client.Object) error {
	if err := d.Create(ctx, o); err != nil {
		return fmt.Errorf("creating %T: %w", o, err)
	}
	return d.Complete(ctx, o, func(s *v1beta1.TransferStatus) {
		d.result("%d of %d items", s.Progress.Items, s.Progress.TotalItems)
	})
}

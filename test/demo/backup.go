package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// backupName is what the claim, the backup and the restore are called.
const backupName = "demo"

// backup takes a backup to a volume, loses the whole Memcached, and brings its items
// back into a new one.
func (d *demo) backup(ctx context.Context) error {
	d.chapter("A backup, the loss of every shard, and a restore")
	count, err := d.write()
	if err != nil {
		return err
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: backupName},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	b := &v1alpha1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: backupName},
		Spec: v1alpha1.MemcachedBackupSpec{
			Memcached: v1alpha1.MemcachedReference{Name: d.key.Name},
			Store:     v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: backupName}},
		},
	}
	r := &v1alpha1.MemcachedRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.key.Namespace, Name: backupName},
		Spec: v1alpha1.MemcachedRestoreSpec{
			Memcached: v1alpha1.MemcachedReference{Name: d.key.Name}, Backup: &v1alpha1.BackupReference{Name: backupName},
		},
	}
	for _, o := range []client.Object{r, b, claim} { // of an earlier demo
		if err := d.deleted(ctx, o); err != nil {
			return err
		}
	}
	d.command("kubectl apply -f claim.yaml -f backup.yaml    # 1Gi of the default storage; a MemcachedBackup to it")
	for _, o := range []client.Object{claim, b} {
		o.SetResourceVersion("")
		if err := d.Create(ctx, o); err != nil {
			return fmt.Errorf("making %T: %w", o, err)
		}
	}
	if err := d.Complete(ctx, b, within, d.progress); err != nil {
		return err
	}
	s := b.Status.Snapshot
	d.good("%d items are in the snapshot, %.1f MiB stored, while the cache served", s.Items, float64(s.StoredBytes)/(1<<20))

	d.command("kubectl delete memcached %s", d.key.Name)
	d.command("kubectl apply -f %s", sample)
	o, err := d.sample()
	if err != nil {
		return err
	}
	if _, err := d.deleteMemcached(ctx, o.DeepCopy()); err != nil {
		return err
	}
	if err := d.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s: %w", sample, err)
	}
	if _, err := d.Await(ctx, d.key, within, "available", cluster.Available); err != nil {
		return err
	}
	if err := d.connect(ctx); err != nil {
		return err
	}
	lost, err := d.kept(0, 0, 1, 2)
	if err != nil {
		return err
	}
	d.result("every shard is a new one: %d of %d items", lost, count)
	d.command("kubectl apply -f restore.yaml                 # a MemcachedRestore of the backup")
	began := time.Now()
	r.SetResourceVersion("")
	if err := d.Create(ctx, r); err != nil {
		return fmt.Errorf("making the restore: %w", err)
	}
	if err := d.Complete(ctx, r, within, d.progress); err != nil {
		return err
	}
	back, err := d.kept(warm, 0, 1, 2)
	if err != nil {
		return err
	}
	d.good("after %.1f s the client reads %d of %d items", time.Since(began).Seconds(), back, count)
	return nil
}

// progress tells how far a copy is.
func (d *demo) progress(s *v1alpha1.RunStatus) {
	d.result("%d of %d items", s.Progress.Items, s.Progress.TotalItems)
}

// deleted deletes what an earlier demo left, and waits until it is gone.
func (d *demo) deleted(ctx context.Context, o client.Object) error {
	if err := d.Delete(ctx, o); err != nil {
		return client.IgnoreNotFound(err)
	}
	return cluster.Eventually(ctx, within, "the end of an earlier demo's "+o.GetName(), func(ctx context.Context) error {
		gone := o.DeepCopyObject().(client.Object)
		err := d.Get(ctx, client.ObjectKeyFromObject(o), gone)
		if err == nil {
			return fmt.Errorf("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}

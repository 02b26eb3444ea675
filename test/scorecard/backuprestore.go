package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

const (
	// copying bounds a backup and a restore. It is less than patience, so that the
	// operator is the one to say what they wait for.
	copying = 100 * time.Second
	// claimSize holds the items many times over.
	claimSize = "64Mi"
)

// errNoStorage is the error of a cluster on which the test has nowhere to put a backup.
var errNoStorage = errors.New("no StorageClass of this cluster is the default one, so the backup has nowhere to go")

// defaultClassAnnotations are true on the StorageClass of claims that name none.
var defaultClassAnnotations = []string{"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}

// backupRestore tests that the items of a Memcached are copied to a volume, and are
// back after a restore when the shards have lost them.
func backupRestore(ctx context.Context, t *trial) error {
	const shards = 2
	if err := t.hasStorage(ctx); err != nil {
		return err
	}
	s, err := t.create(ctx, "scorecard-backup", small(shards))
	if err != nil {
		return err
	}
	if err := s.available(ctx); err != nil {
		return err
	}
	var sets []*items.Set
	for ordinal := range shards {
		set, err := s.written(ctx, ordinal)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: s.named("PersistentVolumeClaim"),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(claimSize)}},
		},
	}
	if err := t.make(ctx, claim); err != nil {
		return err
	}
	backup, err := s.backUp(ctx, claim.Name)
	if err != nil {
		return errors.Join(err, t.tellClaim(ctx, claim))
	}
	if err := s.forget(sets); err != nil {
		return err
	}
	if err := s.restore(ctx, backup); err != nil {
		return err
	}
	for _, set := range sets {
		if _, err := set.Keep(1); err != nil {
			return fmt.Errorf("after the restore: %w", err)
		}
	}
	t.tell("all items are back, with their values")
	return nil
}

// hasStorage is errNoStorage unless claims that name no StorageClass get a volume.
func (t *trial) hasStorage(ctx context.Context) error {
	var classes storagev1.StorageClassList
	if err := t.List(ctx, &classes); err != nil {
		return fmt.Errorf("listing StorageClasses: %w", err)
	}
	for _, class := range classes.Items {
		for _, annotation := range defaultClassAnnotations {
			if class.Annotations[annotation] == "true" {
				t.tell("claims get their volumes by StorageClass %s", class.Name)
				return nil
			}
		}
	}
	return errNoStorage
}

// named begins an object's name with that of the Memcached.
func (s *subject) named(kind string) metav1.ObjectMeta {
	s.tell("making a %s", kind)
	return metav1.ObjectMeta{Namespace: s.namespace, GenerateName: s.key.Name + "-"}
}

// make makes an object that is deleted after the test.
func (t *trial) make(ctx context.Context, o client.Object) error {
	if err := t.Create(ctx, o); err != nil {
		return fmt.Errorf("creating a %T: %w", o, err)
	}
	t.others = append(t.others, o)
	return nil
}

// backUp copies the items to a claim and returns the backup that is Complete.
func (s *subject) backUp(ctx context.Context, claim string) (*v1alpha1.MemcachedBackup, error) {
	b := &v1alpha1.MemcachedBackup{
		ObjectMeta: s.named("MemcachedBackup"),
		Spec: v1alpha1.MemcachedBackupSpec{
			Memcached: v1alpha1.MemcachedReference{Name: s.key.Name},
			Store:     v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: claim}},
			Deadline:  &metav1.Duration{Duration: copying},
		},
	}
	if err := s.make(ctx, b); err != nil {
		return nil, err
	}
	if err := s.complete(ctx, b); err != nil {
		return nil, err
	}
	return b, holds(b.Status.Snapshot, *s.last.Spec.Size)
}

// restore brings the items of a backup back.
func (s *subject) restore(ctx context.Context, b *v1alpha1.MemcachedBackup) error {
	r := &v1alpha1.MemcachedRestore{
		ObjectMeta: s.named("MemcachedRestore"),
		Spec: v1alpha1.MemcachedRestoreSpec{
			Memcached: v1alpha1.MemcachedReference{Name: s.key.Name},
			Backup:    &v1alpha1.BackupReference{Name: b.Name},
			Deadline:  &metav1.Duration{Duration: copying},
		},
	}
	if err := s.make(ctx, r); err != nil {
		return err
	}
	if err := s.complete(ctx, r); err != nil {
		return err
	}
	return restored(&r.Status, int64(*s.last.Spec.Size)*itemsPerShard)
}

// complete waits until a backup or a restore is Complete.
func (s *subject) complete(ctx context.Context, o client.Object) error {
	seen := func(status *v1alpha1.RunStatus) {
		s.tell("  %s: %d of %d items", status.Phase, status.Progress.Items, status.Progress.TotalItems)
	}
	err := s.Complete(ctx, o, patience, seen)
	status := cluster.RunStatus(o)
	s.tell("%s is %q: %s: %s", o.GetName(), status.Phase, status.Reason, status.Message)
	if err == nil {
		return nil
	}
	if status.ObservedGeneration == 0 && status.Phase == "" && ctx.Err() == nil {
		return fmt.Errorf("after %s %s has no status: %w", patience, o.GetName(), errNoOperator)
	}
	return &runError{reason: status.Reason, err: err}
}

// runError is the error of a backup or a restore that is not Complete.
type runError struct {
	reason string
	err    error
}

func (e *runError) Error() string { return e.err.Error() }

func (e *runError) Unwrap() error { return e.err }

// holds is an error unless a snapshot has all items of so many shards.
func holds(snapshot *v1alpha1.SnapshotStatus, shards int32) error {
	switch want := int64(shards) * itemsPerShard; {
	case snapshot == nil:
		return errors.New("the backup is Complete, and its status tells of no snapshot")
	case snapshot.Shards != shards || snapshot.Items != want:
		return fmt.Errorf("the snapshot holds %d items of %d shards, want %d of %d", snapshot.Items, snapshot.Shards, want, shards)
	case snapshot.Path == "" || snapshot.StoredBytes <= 0 || snapshot.TakenAt.IsZero():
		return fmt.Errorf("the status does not tell all of the snapshot: %+v", *snapshot)
	}
	return nil
}

// restored is an error unless a restore tells that it wrote so many items, and
// that there were no others.
func restored(status *v1alpha1.MemcachedRestoreStatus, want int64) error {
	if status.Restored != want || status.Kept != 0 || status.Expired != 0 || status.Refused != 0 {
		return fmt.Errorf("%d items were restored, %d kept, %d expired and %d refused, want %d restored and no others",
			status.Restored, status.Kept, status.Expired, status.Refused, want)
	}
	return nil
}

// forget has the shards lose all of their items.
func (s *subject) forget(sets []*items.Set) error {
	for ordinal, server := range s.last.Status.Servers {
		if err := items.Flush(server); err != nil {
			return err
		}
		n, err := sets[ordinal].Count()
		if err != nil {
			return err
		}
		if n != 0 {
			return fmt.Errorf("%s has %d items after it was flushed", server, n)
		}
	}
	s.tell("the shards are flushed and have none of the items")
	return nil
}

// tellClaim adds to the log how a claim stands, which a Job may wait for.
func (t *trial) tellClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := t.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	t.tell("PersistentVolumeClaim %s is %s", claim.Name, claim.Status.Phase)
	return nil
}

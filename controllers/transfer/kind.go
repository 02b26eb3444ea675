package transfer

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// Prefix begins the name of a Job and says what the Job does.
type Prefix string

// The prefixes.
const (
	Backup  Prefix = "backup"
	Restore Prefix = "restore"
	Delete  Prefix = "delete"
)

// transferObject is what a MemcachedBackup and a MemcachedRestore have in common.
type transferObject struct {
	kind            string
	prefix          Prefix
	memcached       string
	deadlineSeconds *int32
	status          Status
	// reasons of the events of each phase.
	reasons map[v1beta1.TransferPhase]string
}

// Status is the status of a transfer of either kind.
type Status struct {
	v1beta1.TransferStatus
	Snapshot *v1beta1.SnapshotStatus
	// ImagePullSecrets are of a backup, and the numbers of items of a restore.
	ImagePullSecrets                  []corev1.LocalObjectReference
	Restored, Kept, Expired, Rejected int64
}

var (
	backupReasons = map[v1beta1.TransferPhase]string{v1beta1.TransferRunning: v1beta1.EventBackupStarted,
		v1beta1.TransferComplete: v1beta1.EventBackupComplete, v1beta1.TransferFailed: v1beta1.EventBackupFailed}
	restoreReasons = map[v1beta1.TransferPhase]string{v1beta1.TransferRunning: v1beta1.EventRestoreStarted,
		v1beta1.TransferComplete: v1beta1.EventRestoreComplete, v1beta1.TransferFailed: v1beta1.EventRestoreFailed}
)

// transferOf returns the common part of an object.
func transferOf(o client.Object) transferObject {
	switch o := o.(type) {
	case *v1beta1.MemcachedBackup:
		status := Status{TransferStatus: o.Status.TransferStatus, Snapshot: o.Status.Snapshot, ImagePullSecrets: o.Status.ImagePullSecrets}
		return transferObject{"MemcachedBackup", Backup, o.Spec.MemcachedRef.Name, o.Spec.DeadlineSeconds, status, backupReasons}
	case *v1beta1.MemcachedRestore:
		s := o.Status
		status := Status{TransferStatus: s.TransferStatus, Snapshot: s.Snapshot, Restored: s.Restored, Kept: s.Kept, Expired: s.Expired, Rejected: s.Rejected}
		return transferObject{"MemcachedRestore", Restore, o.Spec.MemcachedRef.Name, o.Spec.DeadlineSeconds, status, restoreReasons}
	}
	panic(fmt.Sprintf("%T is neither a MemcachedBackup nor a MemcachedRestore", o))
}

// setStatus sets the status of an object.
func setStatus(o client.Object, s Status) {
	switch o := o.(type) {
	case *v1beta1.MemcachedBackup:
		o.Status = v1beta1.MemcachedBackupStatus{TransferStatus: s.TransferStatus, Snapshot: s.Snapshot, ImagePullSecrets: s.ImagePullSecrets}
	case *v1beta1.MemcachedRestore:
		o.Status = v1beta1.MemcachedRestoreStatus{TransferStatus: s.TransferStatus, Snapshot: s.Snapshot,
			Restored: s.Restored, Kept: s.Kept, Expired: s.Expired, Rejected: s.Rejected}
	}
}

package transfer

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// Prefix begins the name of a Job and says what the Job does.
type Prefix string

// The prefixes.
const (
	Backup  Prefix = "backup"
	Restore Prefix = "restore"
	Delete  Prefix = "delete"
)

// transferObject gives access to what a MemcachedBackup and a MemcachedRestore have in common.
type transferObject struct {
	kind            string
	prefix          Prefix
	memcached       string
	deadlineSeconds *int32
	status          *v1alpha1.TransferStatus
	// reasons of the events of each phase.
	reasons map[v1alpha1.TransferPhase]string
}

var (
	backupReasons = map[v1alpha1.TransferPhase]string{v1alpha1.TransferRunning: v1alpha1.EventBackupStarted,
		v1alpha1.TransferComplete: v1alpha1.EventBackupComplete, v1alpha1.TransferFailed: v1alpha1.EventBackupFailed}
	restoreReasons = map[v1alpha1.TransferPhase]string{v1alpha1.TransferRunning: v1alpha1.EventRestoreStarted,
		v1alpha1.TransferComplete: v1alpha1.EventRestoreComplete, v1alpha1.TransferFailed: v1alpha1.EventRestoreFailed}
)

// transferOf returns the common part of an object; its status is the object's own.
func transferOf(o client.Object) transferObject {
	switch o := o.(type) {
	case *v1alpha1.MemcachedBackup:
		return transferObject{"MemcachedBackup", Backup, o.Spec.MemcachedRef.Name, o.Spec.DeadlineSeconds, &o.Status.TransferStatus, backupReasons}
	case *v1alpha1.MemcachedRestore:
		return transferObject{"MemcachedRestore", Restore, o.Spec.MemcachedRef.Name, o.Spec.DeadlineSeconds, &o.Status.TransferStatus, restoreReasons}
	}
	panic(fmt.Sprintf("%T is neither a MemcachedBackup nor a MemcachedRestore", o))
}

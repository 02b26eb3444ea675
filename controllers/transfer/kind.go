package transfer

import (
	"fmt"

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

// isWaiting reports whether a transfer has no Job yet, so that it may wait for another object.
func (t transferObject) isWaiting() bool { return t.status.JobUID == "" && !t.status.IsFinished() }

// Status is the status of a transfer of either kind.
type Status struct {
	v1beta1.TransferStatus `json:",inline"`

	Snapshot *v1beta1.SnapshotStatus `json:"snapshot,omitempty"`
	// The numbers of items are of a restore.
	Restored int64 `json:"restored,omitempty"`
	Kept     int64 `json:"kept,omitempty"`
	Expired  int64 `json:"expired,omitempty"`
	Rejected int64 `json:"rejected,omitempty"`
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
		status := Status{TransferStatus: o.Status.TransferStatus, Snapshot: o.Status.Snapshot}
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
		o.Status = v1beta1.MemcachedBackupStatus{TransferStatus: s.TransferStatus, Snapshot: s.Snapshot}
	case *v1beta1.MemcachedRestore:
		o.Status = v1beta1.MemcachedRestoreStatus{TransferStatus: s.TransferStatus, Snapshot: s.Snapshot,
			Restored: s.Restored, Kept: s.Kept, Expired: s.Expired, Rejected: s.Rejected}
	}
}

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedRestoreSpec is the desired restore. It is immutable.
//
// Restored items are as old as their snapshot: when the database behind the cache has
// changed since, clients get the old value until it expires or is written again.
// maxAgeSeconds and maxTTLSeconds limit how old and for how long.
//
// +kubebuilder:validation:XValidation:rule="has(self.backupRef) != has(self.snapshot)",message="a restore requires exactly one of backupRef and snapshot"
type MemcachedRestoreSpec struct {
	// MemcachedRef names the Memcached that the items are restored into. Its shards keep
	// serving.
	//
	// +required
	MemcachedRef MemcachedReference `json:"memcachedRef"`

	// BackupRef names the MemcachedBackup whose snapshot is restored. The restore waits until
	// that backup is Complete.
	//
	// +optional
	BackupRef *BackupReference `json:"backupRef,omitempty"`

	// Snapshot is restored directly, for example one from another cluster.
	//
	// +optional
	Snapshot *SnapshotSource `json:"snapshot,omitempty"`

	// ExistingItems is what happens when the Memcached already contains a key of the snapshot:
	// Keep keeps the Memcached's value, which is newer, Replace writes the snapshot's.
	// Default Keep.
	//
	// +optional
	// +kubebuilder:default=Keep
	ExistingItems ExistingItems `json:"existingItems,omitempty"`

	// MaxAgeSeconds is the maximum age of the snapshot, in seconds, such as 21600 for six
	// hours. The restore fails when the snapshot is older. Default: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`

	// MaxTTLSeconds limits how long a restored item lives from its restore on, in seconds, such
	// as 900 for 15 minutes, and with it how long a stale value is served. Items that expire
	// earlier still do. Default: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxTTLSeconds *int32 `json:"maxTTLSeconds,omitempty"`

	// Shards are the ordinals of the shards that items are restored into, such as [0, 2].
	// Default: all shards.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:Minimum=0
	Shards []int32 `json:"shards,omitempty"`

	// RateLimit limits the load that the copy puts on each shard. Default: 20,000 items and
	// 32 MiB per second.
	//
	// +optional
	// +kubebuilder:default={}
	RateLimit *RateLimit `json:"rateLimit,omitempty"`

	// Resources of the Job that copies the items.
	//
	// +optional
	Resources JobResources `json:"resources,omitzero"`

	// DeadlineSeconds is how long the restore may take, in seconds; after that it is
	// Failed. Default 21600 (6 hours).
	//
	// +optional
	// +kubebuilder:default=21600
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=604800
	DeadlineSeconds *int32 `json:"deadlineSeconds,omitempty"`
}

// ExistingItems is what happens to items that the Memcached already contains.
//
// +kubebuilder:validation:Enum=Keep;Replace
type ExistingItems string

// The choices for existing items.
const (
	ExistingKeep    ExistingItems = "Keep"
	ExistingReplace ExistingItems = "Replace"
)

// MemcachedRestoreStatus is the observed state of a restore.
type MemcachedRestoreStatus struct {
	TransferStatus `json:",inline"`

	// Snapshot that is restored; absent until it is found.
	//
	// +optional
	Snapshot *SnapshotStatus `json:"snapshot,omitempty"`

	// Restored is the number of items that were written.
	//
	// +optional
	// +kubebuilder:default=0
	Restored int64 `json:"restored"`

	// Kept is the number of items that were not written because the Memcached already contained
	// their key.
	//
	// +optional
	// +kubebuilder:default=0
	Kept int64 `json:"kept"`

	// Expired is the number of items that were not written because they had expired.
	//
	// +optional
	// +kubebuilder:default=0
	Expired int64 `json:"expired"`

	// Rejected is the number of items that memcached did not accept because they are too large
	// or it is out of memory.
	//
	// +optional
	// +kubebuilder:default=0
	Rejected int64 `json:"rejected"`
}

// jobEndTimeout is how long after its deadline a Job's pod may still run, such as one on a
// node that does not respond.
const jobEndTimeout = 10 * time.Minute

// IsActive reports whether the restore may write or read at a time. One that is Running is
// active for at most twice its deadline, since its Job may start that late, even if its Job
// never finishes.
func (r *MemcachedRestore) IsActive(now time.Time) bool {
	return r.Status.IsActive(now, r.Spec.DeadlineSeconds)
}

// IsActive reports whether the backup may read at a time. It is active as long as a restore with its deadline.
func (b *MemcachedBackup) IsActive(now time.Time) bool {
	return b.Status.IsActive(now, b.Spec.DeadlineSeconds)
}

// IsActive reports whether a transfer with a deadline in seconds, nil for the default, may run at a time.
func (s *TransferStatus) IsActive(now time.Time, deadline *int32) bool {
	if s.Phase != TransferRunning {
		return false
	}
	return s.StartTime == nil || now.Before(s.StartTime.Add(2*Seconds(deadline, DefaultTransferDeadlineSeconds)+jobEndTimeout))
}

// MemcachedRestore writes the items of a snapshot to a Memcached, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mcr,categories=memcached-operator
// +kubebuilder:printcolumn:name="Memcached",type=string,JSONPath=".spec.memcachedRef.name"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="Why it is in this phase, such as BackupNotComplete"
// +kubebuilder:printcolumn:name="Percent",type=integer,JSONPath=".status.progress.percent"
// +kubebuilder:printcolumn:name="Restored",type=integer,JSONPath=".status.restored"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Completed",type=date,priority=1,JSONPath=".status.completionTime"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
type MemcachedRestore struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired restore.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a restore runs once and its spec is immutable: create another MemcachedRestore"
	Spec MemcachedRestoreSpec `json:"spec"`
	// Status is the observed state.
	//
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status MemcachedRestoreStatus `json:"status,omitzero"`
}

// MemcachedRestoreList is a list of MemcachedRestore objects.
//
// +kubebuilder:object:root=true
type MemcachedRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemcachedRestore `json:"items"`
}

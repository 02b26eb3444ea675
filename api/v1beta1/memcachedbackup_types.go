package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedBackupSpec is the desired backup. It is immutable, except for deletionPolicy.
type MemcachedBackupSpec struct {
	// MemcachedRef names the Memcached whose items are copied. Its shards keep serving.
	//
	// +required
	MemcachedRef MemcachedReference `json:"memcachedRef"`

	// Store that the snapshot is written to.
	//
	// +required
	Store SnapshotStore `json:"store"`

	// RateLimit limits the load that the copy puts on each shard. Default: 20,000 items and
	// 32 MiB per second.
	//
	// +optional
	// +kubebuilder:default={}
	RateLimit *RateLimit `json:"rateLimit,omitempty"`

	// DeletionPolicy is what happens to the snapshot when this object is deleted: Retain keeps
	// it in the store, Delete deletes it there first. Default Retain, and Delete for backups of
	// a MemcachedScheduledBackup with a retention. It can be changed until the object is deleted.
	//
	// +optional
	DeletionPolicy SnapshotDeletionPolicy `json:"deletionPolicy,omitempty"`

	// Resources of the Job that copies the items.
	//
	// +optional
	Resources JobResources `json:"resources,omitzero"`

	// DeadlineSeconds is how long the backup may take, in seconds; after that it is
	// Failed. Default 21600 (6 hours).
	//
	// +optional
	// +kubebuilder:default=21600
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=604800
	DeadlineSeconds *int32 `json:"deadlineSeconds,omitempty"`
}

// SnapshotDeletionPolicy is what happens to a snapshot when its MemcachedBackup is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type SnapshotDeletionPolicy string

// The deletion policies of a snapshot.
const (
	SnapshotRetain SnapshotDeletionPolicy = "Retain"
	SnapshotDelete SnapshotDeletionPolicy = "Delete"
)

// FinalizerSnapshot keeps a MemcachedBackup until its snapshot is deleted.
const FinalizerSnapshot = "cache.memcached-operator.io/snapshot"

// MemcachedBackupStatus is the observed state of a backup.
type MemcachedBackupStatus struct {
	TransferStatus `json:",inline"`

	// Snapshot that was written; absent until it is complete.
	//
	// +optional
	Snapshot *SnapshotStatus `json:"snapshot,omitempty"`
}

// SnapshotStatus describes a complete snapshot.
type SnapshotStatus struct {
	// Path of the snapshot in its store, for spec.snapshot.path of a MemcachedRestore.
	//
	// +required
	Path string `json:"path"`

	// SnapshotTime is when the copy began. No value is older than the one that memcached contained
	// then; values that were written later may be missing.
	//
	// +required
	SnapshotTime metav1.Time `json:"snapshotTime"`

	// Shards is the number of shards whose items the snapshot contains.
	//
	// +required
	Shards int32 `json:"shards"`

	// Items is the number of items that the snapshot contains.
	//
	// +required
	Items int64 `json:"items"`

	// Bytes is the size of the items' keys and values, in bytes.
	//
	// +required
	Bytes int64 `json:"bytes"`

	// StoredBytes is the size of the snapshot in the store, in bytes.
	//
	// +required
	StoredBytes int64 `json:"storedBytes"`

	// FormatVersion is the version of the snapshot format.
	//
	// +required
	FormatVersion int32 `json:"formatVersion"`
}

// MemcachedBackup copies the items of a Memcached to a store, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mcb,categories=memcached-operator
// +kubebuilder:printcolumn:name="Memcached",type=string,JSONPath=".spec.memcachedRef.name"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="Why it is in this phase, such as JobCannotStart"
// +kubebuilder:printcolumn:name="Percent",type=integer,JSONPath=".status.progress.percent"
// +kubebuilder:printcolumn:name="Items",type=integer,JSONPath=".status.progress.items"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Bytes",type=integer,priority=1,JSONPath=".status.snapshot.storedBytes",description="Size of the snapshot in the store"
// +kubebuilder:printcolumn:name="Completed",type=date,priority=1,JSONPath=".status.completionTime"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
type MemcachedBackup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired backup.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.memcachedRef == oldSelf.memcachedRef && self.store == oldSelf.store && has(self.rateLimit) == has(oldSelf.rateLimit) && (!has(self.rateLimit) || self.rateLimit == oldSelf.rateLimit) && has(self.resources) == has(oldSelf.resources) && (!has(self.resources) || self.resources == oldSelf.resources) && has(self.deadlineSeconds) == has(oldSelf.deadlineSeconds) && (!has(self.deadlineSeconds) || self.deadlineSeconds == oldSelf.deadlineSeconds)",message="a backup runs once and its spec is immutable, except for deletionPolicy: create another MemcachedBackup"
	Spec MemcachedBackupSpec `json:"spec"`
	// Status is the observed state.
	//
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status MemcachedBackupStatus `json:"status,omitzero"`
}

// MemcachedBackupList is a list of MemcachedBackup objects.
//
// +kubebuilder:object:root=true
type MemcachedBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemcachedBackup `json:"items"`
}

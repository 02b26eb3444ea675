package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedBackupSpec is what a person asks for.
type MemcachedBackupSpec struct {
	// Memcached whose items are copied while it serves.
	Memcached MemcachedReference `json:"memcached"`

	// Store that the snapshot goes to.
	Store SnapshotStore `json:"store"`

	// RateLimit bounds what the copy asks of each shard. A gentle one is the
	// default.
	//
	// +optional
	// +kubebuilder:default={}
	RateLimit *RateLimit `json:"rateLimit,omitempty"`

	// DeletionPolicy says what becomes of the snapshot when this object is deleted:
	// Retain leaves it in the store, Delete deletes it there first. Default Retain,
	// and Delete for those that a MemcachedScheduledBackup with a retention makes.
	//
	// +optional
	DeletionPolicy SnapshotDeletionPolicy `json:"deletionPolicy,omitempty"`

	// Deadline is how long it may take before it is Failed. Default 6h.
	//
	// +optional
	// +kubebuilder:default="6h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('168h')",message="deadline must be from 10s to 168h"
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// SnapshotDeletionPolicy says what becomes of a snapshot whose object is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type SnapshotDeletionPolicy string

// The policies.
const (
	SnapshotRetain SnapshotDeletionPolicy = "Retain"
	SnapshotDelete SnapshotDeletionPolicy = "Delete"
)

// FinalizerSnapshot keeps a MemcachedBackup until its snapshot is deleted.
const FinalizerSnapshot = "cache.memcached-operator.io/snapshot"

// MemcachedBackupStatus is what the operator saw last.
type MemcachedBackupStatus struct {
	RunStatus `json:",inline"`

	// Snapshot that was written; absent until it is whole.
	//
	// +optional
	Snapshot *SnapshotStatus `json:"snapshot,omitempty"`
}

// SnapshotStatus describes a snapshot that is whole.
type SnapshotStatus struct {
	// Path of the snapshot in its store.
	Path string `json:"path"`

	// TakenAt is when the copy began: no value in it is older than memcached held
	// then, and what was written later may be missing.
	TakenAt metav1.Time `json:"takenAt"`

	// Shards that it holds.
	Shards int32 `json:"shards"`

	// Items that it holds.
	Items int64 `json:"items"`

	// Bytes of their keys and values.
	Bytes int64 `json:"bytes"`

	// StoredBytes that it takes in the store.
	StoredBytes int64 `json:"storedBytes"`

	// FormatVersion that it was written in.
	FormatVersion int32 `json:"formatVersion"`
}

// MemcachedBackup copies the items of a Memcached to a store, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mcb,categories=all
// +kubebuilder:printcolumn:name="Memcached",type=string,JSONPath=".spec.memcached.name"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Percent",type=integer,JSONPath=".status.progress.percent"
// +kubebuilder:printcolumn:name="Items",type=integer,JSONPath=".status.progress.items"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=".status.reason"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.message"
type MemcachedBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Not self == oldSelf: a program that writes all of it makes 6h0m0s of 6h.

	// +required
	// +kubebuilder:validation:XValidation:rule="self.memcached == oldSelf.memcached && self.store == oldSelf.store && self.rateLimit == oldSelf.rateLimit && has(self.deletionPolicy) == has(oldSelf.deletionPolicy) && (!has(self.deletionPolicy) || self.deletionPolicy == oldSelf.deletionPolicy) && duration(self.deadline) == duration(oldSelf.deadline)",message="a backup runs once and cannot be changed: make another one"
	Spec MemcachedBackupSpec `json:"spec"`
	// +optional
	Status MemcachedBackupStatus `json:"status,omitempty"`
}

// MemcachedBackupList is a list of MemcachedBackups.
//
// +kubebuilder:object:root=true
type MemcachedBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemcachedBackup `json:"items"`
}

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedRestoreSpec is what a person asks for.
//
// What a restore brings back is as old as its snapshot: a value that the
// database behind the cache has changed since is served stale until it expires or
// is written again. maxAge and maxTTL bound it.
//
// +kubebuilder:validation:XValidation:rule="has(self.backup) != has(self.snapshot)",message="a restore is either of a backup or of a snapshot"
type MemcachedRestoreSpec struct {
	// Memcached that the items go into. It serves meanwhile.
	Memcached MemcachedReference `json:"memcached"`

	// Backup whose snapshot is restored.
	//
	// +optional
	Backup *BackupReference `json:"backup,omitempty"`

	// Snapshot that is restored, of another cluster for example.
	//
	// +optional
	Snapshot *SnapshotSource `json:"snapshot,omitempty"`

	// ExistingItems says which value wins where the Memcached has the key already:
	// Keep leaves its own, which is newer, Replace writes the snapshot's. Default
	// Keep.
	//
	// +optional
	// +kubebuilder:default=Keep
	ExistingItems ExistingItems `json:"existingItems,omitempty"`

	// MaxAge of the snapshot, such as 6h: an older one is refused. Default none.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="maxAge must be positive"
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`

	// MaxTTL is the longest that a restored item may live from now on, such as 15m;
	// items that expire sooner still do. It bounds how long a stale value is
	// served. Default none.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="maxTTL must be at least 1s"
	MaxTTL *metav1.Duration `json:"maxTTL,omitempty"`

	// Shards of the Memcached, by ordinal, that items are restored into. Default all.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:Minimum=0
	Shards []int32 `json:"shards,omitempty"`

	// RateLimit bounds what the copy asks of each shard. A gentle one is the
	// default.
	//
	// +optional
	// +kubebuilder:default={}
	RateLimit *RateLimit `json:"rateLimit,omitempty"`

	// Deadline is how long it may take before it is Failed. Default 6h.
	//
	// +optional
	// +kubebuilder:default="6h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('168h')",message="deadline must be from 10s to 168h"
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// ExistingItems says which value wins where there are two.
//
// +kubebuilder:validation:Enum=Keep;Replace
type ExistingItems string

// The choices.
const (
	ExistingKeep    ExistingItems = "Keep"
	ExistingReplace ExistingItems = "Replace"
)

// MemcachedRestoreStatus is what the operator saw last.
type MemcachedRestoreStatus struct {
	RunStatus `json:",inline"`

	// Snapshot that is restored.
	//
	// +optional
	Snapshot *SnapshotStatus `json:"snapshot,omitempty"`

	// Restored is how many items were written.
	//
	// +optional
	Restored int64 `json:"restored,omitempty"`

	// Kept is how many were not, as the Memcached had the key already.
	//
	// +optional
	Kept int64 `json:"kept,omitempty"`

	// Expired is how many were not, as their time was over.
	//
	// +optional
	Expired int64 `json:"expired,omitempty"`

	// Refused is how many memcached did not take, being too large for it or out of
	// memory.
	//
	// +optional
	Refused int64 `json:"refused,omitempty"`
}

// MemcachedRestore brings the items of a snapshot into a Memcached, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mcr,categories=all
// +kubebuilder:printcolumn:name="Memcached",type=string,JSONPath=".spec.memcached.name"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Percent",type=integer,JSONPath=".status.progress.percent"
// +kubebuilder:printcolumn:name="Restored",type=integer,JSONPath=".status.restored"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=".status.reason"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.message"
type MemcachedRestore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Not self == oldSelf: a program that writes all of it makes 6h0m0s of 6h.

	// +required
	// +kubebuilder:validation:XValidation:rule="self.memcached == oldSelf.memcached && has(self.backup) == has(oldSelf.backup) && (!has(self.backup) || self.backup == oldSelf.backup) && has(self.snapshot) == has(oldSelf.snapshot) && (!has(self.snapshot) || self.snapshot == oldSelf.snapshot) && self.existingItems == oldSelf.existingItems && has(self.shards) == has(oldSelf.shards) && (!has(self.shards) || self.shards == oldSelf.shards) && self.rateLimit == oldSelf.rateLimit",message="a restore runs once and cannot be changed: make another one"
	// +kubebuilder:validation:XValidation:rule="has(self.maxAge) == has(oldSelf.maxAge) && (!has(self.maxAge) || duration(self.maxAge) == duration(oldSelf.maxAge)) && has(self.maxTTL) == has(oldSelf.maxTTL) && (!has(self.maxTTL) || duration(self.maxTTL) == duration(oldSelf.maxTTL)) && duration(self.deadline) == duration(oldSelf.deadline)",message="a restore runs once and cannot be changed: make another one"
	Spec MemcachedRestoreSpec `json:"spec"`
	// +optional
	Status MemcachedRestoreStatus `json:"status,omitempty"`
}

// MemcachedRestoreList is a list of MemcachedRestores.
//
// +kubebuilder:object:root=true
type MemcachedRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemcachedRestore `json:"items"`
}

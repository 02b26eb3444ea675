package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedReference names a Memcached of the same namespace.
type MemcachedReference struct {
	// Name of the Memcached.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	Name string `json:"name"`
}

// BackupReference names a MemcachedBackup of the same namespace.
type BackupReference struct {
	// Name of the MemcachedBackup.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SnapshotStore says where snapshots are kept.
//
// +kubebuilder:validation:XValidation:rule="has(self.persistentVolumeClaim) != has(self.s3)",message="a store is either persistentVolumeClaim or s3"
type SnapshotStore struct {
	// PersistentVolumeClaim of the same namespace. The Job that writes or reads it
	// must be able to mount it while others do: a ReadWriteOnce volume on one node.
	//
	// +optional
	PersistentVolumeClaim *PersistentVolumeClaimStore `json:"persistentVolumeClaim,omitempty"`

	// S3 is a bucket of Amazon S3, or of any server that speaks its protocol.
	//
	// +optional
	S3 *S3Store `json:"s3,omitempty"`
}

// PersistentVolumeClaimStore is a folder of a volume.
type PersistentVolumeClaimStore struct {
	// ClaimName of the PersistentVolumeClaim.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`

	// Folder in the volume. Default its root.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '.')",message="folder is relative to the volume and must not hold . or .. as a part"
	Folder string `json:"folder,omitempty"`
}

// S3Store is a bucket, or a part of one.
type S3Store struct {
	// Bucket must exist.
	//
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	Bucket string `json:"bucket"`

	// Prefix of the names of all objects, such as cache/production. Default none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '.')",message="prefix must not start with / and must not hold . or .. as a part"
	Prefix string `json:"prefix,omitempty"`

	// Endpoint of a server that is not Amazon's, such as https://minio.storage.svc:9000.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#]+/?$')",message="endpoint must be https://host:port, or http:// without encryption"
	Endpoint string `json:"endpoint,omitempty"`

	// Region of the bucket. Default us-east-1, which most other servers ignore.
	//
	// +optional
	// +kubebuilder:default=us-east-1
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`

	// CredentialsSecret names a Secret of the same namespace with the keys
	// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY and, for temporary ones,
	// AWS_SESSION_TOKEN. The operator does not read it: the Job gets it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CredentialsSecret string `json:"credentialsSecret"`

	// CASecret names a Secret of the same namespace whose key ca.crt holds the
	// certificates, as PEM, by which the endpoint's own is judged. Default: the
	// well-known authorities.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CASecret string `json:"caSecret,omitempty"`
}

// SnapshotSource is a snapshot in a store, wherever it was taken.
type SnapshotSource struct {
	// Store that holds it.
	Store SnapshotStore `json:"store"`

	// Path of the snapshot in the store, as status.snapshot.path of its
	// MemcachedBackup tells.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '.')",message="path is relative to the store and must not hold . or .. as a part"
	Path string `json:"path"`
}

// RateLimit bounds what a Job asks of one shard.
type RateLimit struct {
	// ItemsPerSecond of each shard; 0 is no limit. Default 20000.
	//
	// +optional
	// +kubebuilder:default=20000
	// +kubebuilder:validation:Minimum=0
	ItemsPerSecond *int32 `json:"itemsPerSecond,omitempty"`

	// MebibytesPerSecond of each shard; 0 is no limit. Default 32.
	//
	// +optional
	// +kubebuilder:default=32
	// +kubebuilder:validation:Minimum=0
	MebibytesPerSecond *int32 `json:"mebibytesPerSecond,omitempty"`
}

// RunPhase says how far something that runs once has come.
//
// +kubebuilder:validation:Enum=Running;Complete;Failed
type RunPhase string

// The phases. Before the first it is empty.
const (
	RunRunning  RunPhase = "Running"
	RunComplete RunPhase = "Complete"
	RunFailed   RunPhase = "Failed"
)

// RunStatus is what is told of something that runs once.
type RunStatus struct {
	// ObservedGeneration is the generation of the spec that this status answers.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase is Running from before the Job is made, and ends as Complete or Failed.
	//
	// +optional
	Phase RunPhase `json:"phase,omitempty"`

	// Reason of the phase, in one word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says it in a sentence, and what to do about a failure.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// StartTime is when it began.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when it ended, either way.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Job that does it. Its name comes of the UID, so that there is one.
	//
	// +optional
	Job string `json:"job,omitempty"`

	// JobUID of the Job, once it was seen.
	//
	// +optional
	JobUID string `json:"jobUID,omitempty"`

	// Progress while it runs, and how much it was in the end.
	//
	// +optional
	Progress *RunProgress `json:"progress,omitempty"`

	// Conditions are Complete and Failed, always both, as those of a Job.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RunProgress tells how far a copy of items has come.
type RunProgress struct {
	// Items that are done with.
	Items int64 `json:"items"`

	// TotalItems that there are to do, as far as it is known.
	//
	// +optional
	TotalItems int64 `json:"totalItems,omitempty"`

	// Bytes of keys and values that are done with.
	Bytes int64 `json:"bytes"`

	// Percent of the items that are done with.
	Percent int32 `json:"percent"`

	// ItemsPerSecond over the last seconds, or in all once it has ended.
	//
	// +optional
	ItemsPerSecond int64 `json:"itemsPerSecond,omitempty"`
}

// Conditions of what runs once.
const (
	ConditionComplete = "Complete"
	ConditionFailed   = "Failed"
)

// Reasons of what runs once.
const (
	ReasonStarting  = "Starting"
	ReasonCopying   = "Copying"
	ReasonSucceeded = "Succeeded"

	ReasonMemcachedNotFound  = "MemcachedNotFound"
	ReasonMemcachedDeleting  = "MemcachedDeleting"
	ReasonNothingRuns        = "NothingRuns"
	ReasonBackupNotFound     = "BackupNotFound"
	ReasonBackupNotComplete  = "BackupNotComplete"
	ReasonBackupDeleting     = "BackupDeleting"
	ReasonSizeDiffers        = "SizeDiffers"
	ReasonShardNotFound      = "ShardNotFound"
	ReasonJobDeleted         = "JobDeleted"
	ReasonJobFailed          = "JobFailed"
	ReasonJobCannotStart     = "JobCannotStart"
	ReasonDeadlineExceeded   = "DeadlineExceeded"
	ReasonShardUnreachable   = "ShardUnreachable"
	ReasonShardLostItems     = "ShardLostItems"
	ReasonDumpForbidden      = "DumpForbidden"
	ReasonStoreUnreachable   = "StoreUnreachable"
	ReasonStoreNotFound      = "StoreNotFound"
	ReasonStoreAccessDenied  = "StoreAccessDenied"
	ReasonStoreFull          = "StoreFull"
	ReasonStoreReadOnly      = "StoreReadOnly"
	ReasonStoreCertificate   = "StoreCertificateInvalid"
	ReasonStoreFailed        = "StoreFailed"
	ReasonSnapshotNotFound   = "SnapshotNotFound"
	ReasonSnapshotUnfinished = "SnapshotUnfinished"
	ReasonSnapshotCorrupt    = "SnapshotCorrupt"
	ReasonSnapshotTooNew     = "SnapshotTooNew"
	ReasonSnapshotNotOurs    = "SnapshotNotOurs"
	ReasonSnapshotTooOld     = "SnapshotTooOld"
)

// Events of what runs once, on it and on its Memcached.
const (
	EventBackupStarted   = "BackupStarted"
	EventBackupComplete  = "BackupComplete"
	EventBackupFailed    = "BackupFailed"
	EventSnapshotDeleted = "SnapshotDeleted"
	EventSnapshotKept    = "SnapshotKept"
	EventDeletionWaits   = "DeletionWaits"
	EventRestoreStarted  = "RestoreStarted"
	EventRestoreComplete = "RestoreComplete"
	EventRestoreFailed   = "RestoreFailed"
)

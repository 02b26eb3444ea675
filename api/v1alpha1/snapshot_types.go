package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedReference names a Memcached in the same namespace.
type MemcachedReference struct {
	// Name of the Memcached.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	Name string `json:"name"`
}

// BackupReference names a MemcachedBackup in the same namespace.
type BackupReference struct {
	// Name of the MemcachedBackup.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SnapshotStore is where snapshots are stored.
//
// +kubebuilder:validation:XValidation:rule="has(self.persistentVolumeClaim) != has(self.s3)",message="a store requires exactly one of persistentVolumeClaim and s3"
type SnapshotStore struct {
	// PersistentVolumeClaim in the same namespace. The Job's pod mounts it: when another pod
	// uses a ReadWriteOnce volume, both have to run on the same node.
	//
	// +optional
	PersistentVolumeClaim *PersistentVolumeClaimStore `json:"persistentVolumeClaim,omitempty"`

	// S3 is a bucket of Amazon S3 or of a server with a compatible API.
	//
	// +optional
	S3 *S3Store `json:"s3,omitempty"`
}

// PersistentVolumeClaimStore is a directory in a volume.
type PersistentVolumeClaimStore struct {
	// ClaimName of the PersistentVolumeClaim.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`

	// SubPath is a directory in the volume, such as backups/cache. Default: the volume's root.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '.')",message="subPath is relative to the volume and must not contain . or .. as an element"
	SubPath string `json:"subPath,omitempty"`
}

// S3Store is a bucket or a prefix in one.
type S3Store struct {
	// Bucket is the name of an existing bucket.
	//
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	Bucket string `json:"bucket"`

	// Prefix of all object names, such as cache/production. Default: none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '.')",message="prefix must not start with / and must not contain . or .. as an element"
	Prefix string `json:"prefix,omitempty"`

	// Endpoint of an S3-compatible server, such as https://minio.storage.svc:9000. With http://
	// the items are sent without encryption. Default: Amazon S3 in the region.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#]+/?$')",message="endpoint must be https://host:port, or http:// without encryption"
	Endpoint string `json:"endpoint,omitempty"`

	// Region of the bucket, such as eu-central-1. Default us-east-1; most S3-compatible servers
	// ignore it.
	//
	// +optional
	// +kubebuilder:default=us-east-1
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`

	// CredentialsSecretName is the name of a Secret in the same namespace with the keys
	// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY and, for temporary credentials,
	// AWS_SESSION_TOKEN. Only the Job's pod reads it, the operator doesn't.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CredentialsSecretName string `json:"credentialsSecretName"`

	// CASecretName is the name of a Secret in the same namespace whose key ca.crt contains the
	// CA bundle (PEM) that verifies the endpoint's certificate. Default: the public
	// certificate authorities.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CASecretName string `json:"caSecretName,omitempty"`
}

// SnapshotSource is a snapshot in a store, possibly of another cluster.
type SnapshotSource struct {
	// Store that contains the snapshot.
	Store SnapshotStore `json:"store"`

	// Path of the snapshot in the store: status.snapshot.path of its MemcachedBackup.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '.')",message="path is relative to the store and must not contain . or .. as an element"
	Path string `json:"path"`
}

// RateLimit limits the load that a Job puts on each shard.
type RateLimit struct {
	// ItemsPerSecond limits the items per second and shard. 0 is no limit. Default 20000.
	//
	// +optional
	// +kubebuilder:default=20000
	// +kubebuilder:validation:Minimum=0
	ItemsPerSecond *int32 `json:"itemsPerSecond,omitempty"`

	// MebibytesPerSecond limits the mebibytes per second and shard. 0 is no limit. Default 32.
	//
	// +optional
	// +kubebuilder:default=32
	// +kubebuilder:validation:Minimum=0
	MebibytesPerSecond *int32 `json:"mebibytesPerSecond,omitempty"`
}

// TransferPhase is the phase of a backup or a restore.
//
// +kubebuilder:validation:Enum=Pending;Running;Complete;Failed
type TransferPhase string

// The phases of a transfer.
const (
	// TransferPending: the transfer waits for something that reason names, such as its backup,
	// and has no Job.
	TransferPending  TransferPhase = "Pending"
	TransferRunning  TransferPhase = "Running"
	TransferComplete TransferPhase = "Complete"
	TransferFailed   TransferPhase = "Failed"
)

// TransferStatus is the state of a backup or a restore. Both run once.
type TransferStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase is Pending while the transfer waits, Running from before its Job is created, and
	// finally Complete or Failed.
	//
	// +optional
	Phase TransferPhase `json:"phase,omitempty"`

	// Reason of the phase, such as Copying, JobCannotStart or StoreFull.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message explains the phase and what to do about a failure.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// StartTime is when the transfer started.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the transfer became Complete or Failed.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// JobName is the name of the Job that copies the items. It is derived from this object's
	// UID, so that there is only one Job.
	//
	// +optional
	JobName string `json:"jobName,omitempty"`

	// JobUID is the UID of the Job; empty until the operator has seen the Job.
	//
	// +optional
	JobUID string `json:"jobUID,omitempty"`

	// Progress of the transfer; once it has finished, its totals.
	//
	// +optional
	Progress *TransferProgress `json:"progress,omitempty"`

	// Conditions are Complete and Failed, as those of a Job. Both are always present.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TransferProgress is the progress of a backup or a restore.
type TransferProgress struct {
	// Items is the number of items that were processed.
	Items int64 `json:"items"`

	// TotalItems is the number of items to process, as far as it is known.
	//
	// +optional
	TotalItems int64 `json:"totalItems,omitempty"`

	// Bytes is the size of the keys and values that were processed, in bytes.
	Bytes int64 `json:"bytes"`

	// Percent of the items that were processed.
	Percent int32 `json:"percent"`

	// ItemsPerSecond over the last seconds; once the transfer has finished, its average.
	//
	// +optional
	ItemsPerSecond int64 `json:"itemsPerSecond,omitempty"`
}

// Condition types of a backup and a restore.
const (
	ConditionComplete = "Complete"
	ConditionFailed   = "Failed"
)

// Reasons of a backup's and a restore's phase.
const (
	ReasonStarting  = "Starting"
	ReasonCopying   = "Copying"
	ReasonSucceeded = "Succeeded"

	ReasonMemcachedNotFound       = "MemcachedNotFound"
	ReasonMemcachedDeleting       = "MemcachedDeleting"
	ReasonBackupNotFound          = "BackupNotFound"
	ReasonBackupNotComplete       = "BackupNotComplete"
	ReasonBackupDeleting          = "BackupDeleting"
	ReasonSizeDiffers             = "SizeDiffers"
	ReasonShardNotFound           = "ShardNotFound"
	ReasonJobDeleted              = "JobDeleted"
	ReasonJobFailed               = "JobFailed"
	ReasonJobCannotStart          = "JobCannotStart"
	ReasonDeadlineExceeded        = "DeadlineExceeded"
	ReasonShardUnreachable        = "ShardUnreachable"
	ReasonShardLostItems          = "ShardLostItems"
	ReasonKeyDumpDisabled         = "KeyDumpDisabled"
	ReasonStoreUnreachable        = "StoreUnreachable"
	ReasonStoreNotFound           = "StoreNotFound"
	ReasonStoreAccessDenied       = "StoreAccessDenied"
	ReasonStoreFull               = "StoreFull"
	ReasonStoreReadOnly           = "StoreReadOnly"
	ReasonStoreCertificateInvalid = "StoreCertificateInvalid"
	ReasonStoreFailed             = "StoreFailed"
	ReasonSnapshotNotFound        = "SnapshotNotFound"
	ReasonSnapshotIncomplete      = "SnapshotIncomplete"
	ReasonSnapshotCorrupt         = "SnapshotCorrupt"
	ReasonSnapshotTooNew          = "SnapshotTooNew"
	ReasonSnapshotOwnedByOther    = "SnapshotOwnedByOther"
	ReasonSnapshotTooOld          = "SnapshotTooOld"
)

// Reasons of the events of backups and restores, which are recorded on their Memcached too.
const (
	EventBackupStarted    = "BackupStarted"
	EventBackupComplete   = "BackupComplete"
	EventBackupFailed     = "BackupFailed"
	EventSnapshotDeleted  = "SnapshotDeleted"
	EventSnapshotRetained = "SnapshotRetained"
	EventDeletionBlocked  = "DeletionBlocked"
	EventRestoreStarted   = "RestoreStarted"
	EventRestoreComplete  = "RestoreComplete"
	EventRestoreFailed    = "RestoreFailed"
)

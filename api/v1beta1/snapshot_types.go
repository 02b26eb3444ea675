package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedReference names a Memcached in the same namespace.
type MemcachedReference struct {
	// Name of the Memcached.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
}

// BackupReference names a MemcachedBackup in the same namespace.
type BackupReference struct {
	// Name of the MemcachedBackup.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
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
	// ClaimName of the PersistentVolumeClaim. Backups write to its volume, restores mount it
	// read-only.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ClaimName string `json:"claimName"`

	// SubPath is a directory in the volume, such as backups/cache. Default: the volume's root.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '.')",message="subPath is relative to the volume and must not contain . or .. as an element"
	SubPath string `json:"subPath,omitempty"`

	// FSGroup is the group that the kubelet gives the volume and its files, with write permission, when a
	// backup mounts it. Set it for a new volume that belongs to root, and only for one that contains
	// nothing but snapshots: another program that uses it may no longer start. Default: the volume stays
	// as it is, and must be writable for user or group 65532. On OpenShift it has no effect.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	FSGroup *int64 `json:"fsGroup,omitempty"`
}

// S3Store is a bucket or a prefix in one.
//
// +kubebuilder:validation:XValidation:rule="has(self.credentialsSecretName) != has(self.serviceAccountName)",message="s3 requires exactly one of credentialsSecretName and serviceAccountName"
type S3Store struct {
	// Bucket is the name of an existing bucket.
	//
	// +required
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
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#@]+/?$')",message="endpoint must be https://host:port, or http:// without encryption; credentials belong into the Secret that credentialsSecretName names"
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
	// AWS_SESSION_TOKEN. The optional key HTTPS_PROXY is the URL of a proxy that requires a
	// password. Only the Job's pod reads the Secret, the operator doesn't.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`

	// ServiceAccountName is the name of a ServiceAccount in the same namespace under which the
	// Job's pod runs, instead of a Secret with keys. Your platform must inject AWS_ROLE_ARN and
	// AWS_WEB_IDENTITY_TOKEN_FILE into its pods, as Amazon EKS does for a ServiceAccount with
	// the annotation eks.amazonaws.com/role-arn. The pod gets no token of the Kubernetes API.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// CASecretName is the name of a Secret in the same namespace whose key ca.crt contains the
	// CA bundle (PEM) that verifies the endpoint's certificate. Default: the public
	// certificate authorities.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	CASecretName string `json:"caSecretName,omitempty"`
}

// SnapshotSource is a snapshot in a store, possibly of another cluster.
type SnapshotSource struct {
	// Store that contains the snapshot.
	//
	// +required
	Store SnapshotStore `json:"store"`

	// Path of the snapshot in the store: status.snapshot.path of its MemcachedBackup.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '.')",message="path is relative to the store and must not contain . or .. as an element"
	Path string `json:"path"`
}

// RateLimit limits the load that a Job puts on each shard.
type RateLimit struct {
	// ItemsPerSecond limits the items per second and shard, such as 50000. 0 is no limit.
	// Default 20000.
	//
	// +optional
	// +kubebuilder:default=20000
	// +kubebuilder:validation:Minimum=0
	ItemsPerSecond *int32 `json:"itemsPerSecond,omitempty"`

	// BytesPerSecond limits the bytes of keys and values per second and shard, such as 100Mi.
	// 0 is no limit. Default 32Mi.
	//
	// +optional
	// +kubebuilder:default="32Mi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1Ti')) <= 0",message="bytesPerSecond must be a quantity from 0 to 1Ti, such as 32Mi"
	BytesPerSecond *resource.Quantity `json:"bytesPerSecond,omitempty"`
}

// JobResources are the resources of the container of a Job. Those that are not set have these
// defaults: 100m CPU and 64Mi memory as requests, and as the memory limit 128Mi plus 64Mi per
// TiB of cache memory. The limit of a backup's ephemeral-storage, where it spools the keys of up
// to four shards at a time, is the memory of these shards, at least 256Mi; the request is 1/32
// of it, at least 64Mi.
//
// The rules reject quantities such as 1e1.5, which match the schema's pattern and which
// resource.Quantity can't decode: one such object would make the list of all objects
// undecodable.
type JobResources struct {
	// Limits are the maximum amounts that the container can use, such as memory: 512Mi. A Job
	// that exceeds its memory is retried and then Failed.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(name, isQuantity(string(self[name])))",message="each of resources.limits must be a quantity such as 500m or 2Gi"
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// Requests are the amounts that a node must have available for the container, such as
	// cpu: 200m.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(name, isQuantity(string(self[name])))",message="each of resources.requests must be a quantity such as 500m or 2Gi"
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// TransferPhase is the phase of a backup or a restore. Releases may add phases.
type TransferPhase string

// The phases of a transfer.
const (
	// TransferPending: the transfer waits for something that the condition Succeeded names, such
	// as its backup, and has no Job.
	TransferPending  TransferPhase = "Pending"
	TransferRunning  TransferPhase = "Running"
	TransferComplete TransferPhase = "Complete"
	TransferFailed   TransferPhase = "Failed"
)

// TransferStatus is the state of a backup or a restore. Both run once.
type TransferStatus struct {
	// Conditions are Succeeded, and Ready, Reconciling and Stalled, which tools such as kstatus
	// read. Succeeded is Unknown until the transfer is Complete, which is True, or Failed, which
	// is False. Its reason, such as Copying or StoreFull, and its message explain the phase.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until
	// the operator has seen the object.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase is Pending while the transfer waits, Running from before its Job is created, and
	// finally Complete or Failed.
	//
	// +optional
	Phase TransferPhase `json:"phase,omitempty"`

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
}

// IsFinished reports whether the transfer is Complete or Failed, which is final.
func (s *TransferStatus) IsFinished() bool {
	return s.Phase == TransferComplete || s.Phase == TransferFailed
}

// Reason of the phase, which is that of Succeeded.
func (s *TransferStatus) Reason() string { return s.succeeded().Reason }

// Message explains the phase, and is that of Succeeded.
func (s *TransferStatus) Message() string { return s.succeeded().Message }

func (s *TransferStatus) succeeded() metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, ConditionSucceeded); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// TransferProgress is the progress of a backup or a restore.
type TransferProgress struct {
	// Items is the number of items that were processed.
	//
	// +required
	Items int64 `json:"items"`

	// TotalItems is the number of items to process, as far as it is known.
	//
	// +optional
	TotalItems int64 `json:"totalItems,omitempty"`

	// Bytes is the size of the keys and values that were processed, in bytes.
	//
	// +required
	Bytes int64 `json:"bytes"`

	// Percent of the items that were processed.
	//
	// +required
	Percent int32 `json:"percent"`

	// ItemsPerSecond over the last seconds; once the transfer has finished, its average.
	//
	// +optional
	ItemsPerSecond int64 `json:"itemsPerSecond,omitempty"`
}

// ConditionSucceeded of a backup or a restore is True when it is Complete, False when it is Failed, and Unknown until then.
const ConditionSucceeded = "Succeeded"

// Reasons of a backup's and a restore's phase.
const (
	// ReasonStarting: the Job was created, or is about to be.
	//
	// Do: Wait.
	ReasonStarting = "Starting"
	// ReasonCopying: the Job is copying items; status.progress shows how far it is.
	//
	// Do: Wait.
	ReasonCopying = "Copying"
	// ReasonSucceeded: the backup or the restore is complete.
	//
	// Do: Nothing.
	ReasonSucceeded = "Succeeded"

	// ReasonMemcachedNotFound: no Memcached of that name exists in this namespace. The operator
	// waits 5 minutes for it.
	//
	// Do: create the Memcached, or create the backup or the restore with another name of it.
	ReasonMemcachedNotFound = "MemcachedNotFound"
	// ReasonMemcachedDeleting: the Memcached is being deleted, and its shards can't be
	// reached or must not be filled.
	//
	// Do: restore into another Memcached. For a backup before deletion, set
	// spec.deletionPolicy to Backup.
	ReasonMemcachedDeleting = "MemcachedDeleting"
	// ReasonBackupNotFound: no MemcachedBackup of that name exists in this namespace. The operator
	// waits 5 minutes for it.
	//
	// Do: create the backup, or create a restore with another name, or one that names the snapshot
	// by spec.snapshot.
	ReasonBackupNotFound = "BackupNotFound"
	// ReasonBackupNotComplete: the backup is running, and the restore waits for it; or the
	// backup failed.
	//
	// Do: Wait, or restore from another backup.
	ReasonBackupNotComplete = "BackupNotComplete"
	// ReasonBackupDeleting: the backup is being deleted.
	//
	// Do: restore from another backup.
	ReasonBackupDeleting = "BackupDeleting"
	// ReasonSizeDiffers: the snapshot has another number of shards, and spec.access.hashing of the
	// Memcached doesn't declare how the clients hash, or the hash ring can't be computed.
	//
	// Do: declare spec.access.hashing of the Memcached, or restore into a Memcached of the same
	// size.
	ReasonSizeDiffers = "SizeDiffers"
	// ReasonShardNotFound: spec.shards names an ordinal that the Memcached doesn't have.
	//
	// Do: name ordinals from 0 to its size less 1.
	ReasonShardNotFound = "ShardNotFound"
	// ReasonShardReplaced: a shard of the Memcached is being replaced, or is next, and the new
	// pod would not have the restored items. The restore waits.
	//
	// Do: Wait. If it lasts, look at status.update of the Memcached.
	ReasonShardReplaced = "ShardReplaced"
	// ReasonItemsMoving: the number of shards changes, and moved items that only one of two shards has would be deleted at the end. The
	// restore waits. Or the shards delete copies of items, at that end or for a purge, and the backup waits.
	//
	// Do: Wait. If it lasts, look at status.scaling, or status.purge, of the Memcached.
	ReasonItemsMoving    = "ItemsMoving"
	ReasonRestoreRunning = string(GateRestoreRunning)
	// ReasonJobDeleted: a user or another controller deleted the Job before it had finished.
	//
	// Do: create another backup or restore.
	ReasonJobDeleted = "JobDeleted"
	// ReasonJobFailed: the Job terminated without a message, for example because it ran out
	// of memory, was evicted, or its pod was deleted; or its own volume failed.
	//
	// Do: read the message and the pod's log, then create another backup or restore.
	ReasonJobFailed = "JobFailed"
	// ReasonJobCannotStart: the Job or its pod can't be created or started: a quota, an
	// admission policy, no node, an image, a missing claim or Secret. The operator gives up
	// on a pod that can't start after 5 minutes.
	//
	// Do: fix what the message names, then create another backup or restore.
	ReasonJobCannotStart = "JobCannotStart"
	// ReasonDeadlineExceeded: spec.deadlineSeconds have passed, while the backup or the restore was copying, or
	// waited for what the message names.
	//
	// Do: fix what the message names. If it was copying, set a longer deadline or a higher rate limit. Then create
	// another backup or restore.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonShardUnreachable: a shard didn't answer for 2 minutes, requires a password, or
	// another dump of its keys ran for 10 minutes.
	//
	// Do: check whether its pod is ready, and whether a NetworkPolicy of yours blocks the
	// connection.
	ReasonShardUnreachable = "ShardUnreachable"
	// ReasonShardLostItems: while a shard was copied, it restarted empty, was flushed, or lost
	// more than half of the items that it had listed, so the snapshot of the remaining items
	// was discarded. Or a shard lost the items that a restore had written. Older snapshots
	// aren't affected.
	//
	// Do: read the cause in the Memcached's status, and create another backup or restore
	// when the shard is stable. If clients or evictions remove most items while they are
	// copied, set a higher rateLimit.
	ReasonShardLostItems = "ShardLostItems"
	// ReasonSpoolFull: the keys of the shards need more space than the Job's volume has, or a
	// shard lists far more keys than it has items.
	//
	// Do: set a higher limit of ephemeral-storage in spec.resources. If the message says that a
	// shard lists too many keys, check the Memcached's image.
	ReasonSpoolFull = "SpoolFull"
	// ReasonKeyDumpDisabled: memcached doesn't list its keys.
	//
	// Do: remove -X or no_lru_crawler from spec.config.extraArgs of the Memcached.
	ReasonKeyDumpDisabled = "KeyDumpDisabled"
	// ReasonStoreUnreachable: the store doesn't respond.
	//
	// Do: check the endpoint, that the server runs, and that network policies and proxies
	// allow the Job to connect.
	ReasonStoreUnreachable = "StoreUnreachable"
	// ReasonStoreNotFound: there is no such bucket, it is in another region, or a file
	// exists where the directory should be.
	//
	// Do: create it, or fix bucket, region, endpoint or subPath.
	ReasonStoreNotFound = "StoreNotFound"
	// ReasonStoreAccessDenied: the store rejects the credentials, or the volume its user; or
	// the clocks differ by minutes.
	//
	// Do: fix the Secret or the role of the ServiceAccount, its permissions (list, read, write,
	// delete), or the permissions of the volume: see fsGroup.
	ReasonStoreAccessDenied = "StoreAccessDenied"
	// ReasonStoreFull: the store has no space or quota left.
	//
	// Do: free space: a shorter retention, a larger volume or a higher quota.
	ReasonStoreFull = "StoreFull"
	// ReasonStoreReadOnly: the volume is read-only.
	//
	// Do: use a writable volume.
	ReasonStoreReadOnly = "StoreReadOnly"
	// ReasonStoreCertificateInvalid: the endpoint's certificate isn't trusted, or the
	// endpoint doesn't answer with TLS.
	//
	// Do: add its CA to ca.crt of caSecretName; check host name, port and https://.
	ReasonStoreCertificateInvalid = "StoreCertificateInvalid"
	// ReasonStoreFailed: the store reported another error, which the message contains. The
	// Job has retried several times.
	//
	// Do: read the message.
	ReasonStoreFailed = "StoreFailed"
	// ReasonSnapshotNotFound: there is nothing at that path of the store.
	//
	// Do: check store and path; snapshot inspect lists the snapshots.
	ReasonSnapshotNotFound = "SnapshotNotFound"
	// ReasonSnapshotIncomplete: there is data without a manifest: its backup didn't finish,
	// or the snapshot is being deleted.
	//
	// Do: use another snapshot.
	ReasonSnapshotIncomplete = "SnapshotIncomplete"
	// ReasonSnapshotCorrupt: a part of the snapshot is missing, truncated or has another
	// checksum.
	//
	// Do: use another snapshot.
	ReasonSnapshotCorrupt = "SnapshotCorrupt"
	// ReasonSnapshotTooNew: a newer operator wrote the snapshot in a format that this one
	// can't read.
	//
	// Do: upgrade the operator.
	ReasonSnapshotTooNew = "SnapshotTooNew"
	// ReasonSnapshotOwnedByOther: another program or another backup wrote the data at that
	// path.
	//
	// Do: name another path, or clear the path.
	ReasonSnapshotOwnedByOther = "SnapshotOwnedByOther"
	// ReasonSnapshotTooOld: the snapshot was taken longer ago than maxAgeSeconds.
	//
	// Do: take a newer one, or set a larger maxAgeSeconds.
	ReasonSnapshotTooOld = "SnapshotTooOld"
)

// Reasons of the events of backups and restores, which are recorded on their Memcached too.
const (
	// EventBackupStarted: a backup of this Memcached began.
	//
	// Do: Nothing.
	EventBackupStarted = "BackupStarted"
	// EventBackupComplete: a backup of this Memcached is complete.
	//
	// Do: Nothing.
	EventBackupComplete = "BackupComplete"
	// EventBackupFailed: a backup of this Memcached failed; the message has the reason.
	//
	// Do: look up the reason of the MemcachedBackup.
	EventBackupFailed = "BackupFailed"
	// EventSnapshotDeleted: a snapshot was deleted together with its MemcachedBackup.
	//
	// Do: Nothing.
	EventSnapshotDeleted = "SnapshotDeleted"
	// EventSnapshotRetained: a MemcachedBackup was deleted and its snapshot stays in the
	// store; the message has its path.
	//
	// Do: delete the data yourself if you don't need it.
	EventSnapshotRetained = "SnapshotRetained"
	// EventDeletionBlocked: the deletion of a MemcachedBackup waits for a restore that reads
	// its snapshot.
	//
	// Do: Wait, or delete the restore.
	EventDeletionBlocked = "DeletionBlocked"
	// EventRestoreStarted: a restore into this Memcached began.
	//
	// Do: Nothing.
	EventRestoreStarted = "RestoreStarted"
	// EventRestoreComplete: a restore into this Memcached is complete.
	//
	// Do: Nothing.
	EventRestoreComplete = "RestoreComplete"
	// EventRestoreFailed: a restore into this Memcached failed; the message has the reason.
	//
	// Do: look up the reason of the MemcachedRestore.
	EventRestoreFailed = "RestoreFailed"
)

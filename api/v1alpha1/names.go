package v1alpha1

// Condition types. All three are always present.
const (
	// ConditionAvailable is True when every shard that was asked for serves.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the operator or Kubernetes is still
	// bringing about what was asked for.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when a person has to look.
	ConditionDegraded = "Degraded"
)

// Reasons of Available.
const (
	ReasonAllShardsReady = "AllShardsReady"
	ReasonShardsNotReady = "ShardsNotReady"
	ReasonNoShards       = "NoShards"
)

// Reasons of Progressing.
const (
	ReasonSettled         = "Settled"
	ReasonScalingOut      = "ScalingOut"
	ReasonScalingIn       = "ScalingIn"
	ReasonShardsStarting  = "ShardsStarting"
	ReasonUpdatingShard   = "UpdatingShard"
	ReasonProvingImage    = "ProvingImage"
	ReasonPaused          = "Paused"
	ReasonDeleting        = "Deleting"
	ReasonWaitingForOwner = "WaitingForGarbageCollection"
	ReasonRetrying        = "Retrying"
	ReasonBootstrapping   = "Bootstrapping"
	ReasonBackingUp       = "BackingUp"
)

// Gates that hold a change of the spec back before it reaches the next shard, in
// the order in which they are asked. Each is also a reason of Progressing.
const (
	GatePaused              = ReasonPaused
	GateSpecInvalid         = "SpecInvalid"
	GateUpdateFailed        = "UpdateFailed"
	GatePathNotAllowed      = "PathNotAllowed"
	GateImageNotProven      = "ImageNotProven"
	GateShardsNotSettled    = "ShardsNotSettled"
	GateShardOut            = "ShardOut"
	GateMinTimeBetween      = "MinTimeBetweenShards"
	GateMaintenanceWindow   = "MaintenanceWindow"
	GateHitRatio            = "HitRatio"
	GateEmptyShardAnnounced = "EmptyShardAnnounced"
)

// Reasons of Degraded. Where several hold, the first of this list is told.
const (
	ReasonAsExpected         = "AsExpected"
	ReasonVersionUnsupported = "VersionUnsupported"
	ReasonImageInvalid       = "ImageInvalid"
	ReasonSpecUnreadable     = "SpecUnreadable"
	ReasonNameConflict       = "NameConflict"
	ReasonApplyRefused       = "ApplyRefused"
	ReasonImagePull          = "ImageCannotBePulled"
	ReasonShardCrashes       = "ShardCrashes"
	ReasonUnschedulable      = "Unschedulable"
	ReasonNodeLost           = "NodeLost"
	ReasonVersionMismatch    = "VersionMismatch"
	ReasonStrategyInvalid    = "UpdateStrategyInvalid"
	ReasonPathNotAllowed     = "UpdatePathNotAllowed"
	ReasonImageUnusable      = "ImageUnusable"
	ReasonUpdateStopped      = "UpdateStopped"
	ReasonHitRatioNotBack    = "HitRatioNotBack"

	ReasonDeletionPolicyInvalid = "DeletionPolicyInvalid"
)

// Reasons of events.
const (
	EventShardReady        = "ShardReady"
	EventShardNotReady     = "ShardNotReady"
	EventShardStartedEmpty = "ShardStartedEmpty"
	EventShardKeptItems    = "ShardKeptItems"
	EventScaled            = "Scaled"
	EventUpdateStarted     = "UpdateStarted"
	EventUpdateFinished    = "UpdateFinished"
	EventShardToStartEmpty = "ShardToStartEmpty"
	EventShardRolledBack   = "ShardRolledBack"
	EventBootstrapEnded    = "BootstrapEnded"
	EventRewarmStarted     = "RewarmStarted"
	EventNotRewarmed       = "NotRewarmed"
	EventFinalBackup       = "FinalBackup"
)

// Phase says in one word how a Memcached is.
//
// +kubebuilder:validation:Enum=Running;Progressing;Degraded;Paused;Deleting
type Phase string

// The phases.
const (
	PhaseRunning     Phase = "Running"
	PhaseProgressing Phase = "Progressing"
	PhaseDegraded    Phase = "Degraded"
	PhasePaused      Phase = "Paused"
	PhaseDeleting    Phase = "Deleting"
)

// StartResult says whether memcached came up with its items.
//
// +kubebuilder:validation:Enum=Warm;Cold
type StartResult string

// The results of a start.
const (
	StartWarm StartResult = "Warm"
	StartCold StartResult = "Cold"
)

// Labels of everything that the operator makes.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelShard holds the shard's ordinal.
	LabelShard = "cache.memcached-operator.io/shard"

	// NameValue is the value of LabelName.
	NameValue = "memcached"
	// ProofNameValue is that of pods which prove an image on a node: no Service,
	// budget or policy of a shard selects them.
	ProofNameValue = "memcached-proof"
	// SnapshotNameValue is that of what copies items to a store and back: neither
	// does any select it.
	SnapshotNameValue = "memcached-snapshot"
	// ManagedByValue is the value of LabelManagedBy and the field owner of every
	// write.
	ManagedByValue = "memcached-operator"
)

// Annotations of a shard's pod. The kubelet brings the first three to the agent.
const (
	// AnnotationArguments holds memcached's argument words as a JSON array.
	AnnotationArguments = "cache.memcached-operator.io/arguments"
	// AnnotationRestart restarts memcached in place, with its items, whenever its
	// value changes. A person may set it.
	AnnotationRestart = "cache.memcached-operator.io/restart"
	// AnnotationStop announces that the next stop ends the container, not the pod.
	AnnotationStop = "cache.memcached-operator.io/stop"
	// AnnotationRevision holds the hash of what was asked of the pod last. What the
	// operator itself adds is not in it, so that a new operator does not make a
	// shard look outdated.
	AnnotationRevision = "cache.memcached-operator.io/revision"
	// AnnotationSpec holds, as JSON, the part of the spec that the hash is of.
	AnnotationSpec = "cache.memcached-operator.io/spec"
	// AnnotationStep holds, as JSON, what the operator noted when it last changed
	// the shard: on its pod for a change in place, on its ReplicaSet for another pod.
	AnnotationStep = "cache.memcached-operator.io/step"
	// AnnotationFailed holds, as JSON, on a shard's ReplicaSet, which change failed
	// on the shard and why.
	AnnotationFailed = "cache.memcached-operator.io/failed"
	// AnnotationHoldUntil has a shard not serve, while it is filled, until this time (RFC
	// 3339) or until it is taken away. The kubelet brings it to the agent.
	AnnotationHoldUntil = "cache.memcached-operator.io/hold-until"
)

// AnnotationRewarms of a MemcachedRestore that the operator made holds the UID of the
// pod that it fills.
const AnnotationRewarms = "cache.memcached-operator.io/rewarms"

// AnnotationRetry of a Memcached has an update that was stopped tried again,
// whenever its value changes.
const AnnotationRetry = "cache.memcached-operator.io/retry"

// AnnotationRunOf of a Job that copies items, and of its pod, holds whose work it
// is, such as MemcachedBackup/nightly: names are too long for a label.
const AnnotationRunOf = "cache.memcached-operator.io/run-of"

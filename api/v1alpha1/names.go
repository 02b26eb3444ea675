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
	ReasonShardsOutdated  = "ShardsOutdated"
	ReasonPaused          = "Paused"
	ReasonDeleting        = "Deleting"
	ReasonWaitingForOwner = "WaitingForGarbageCollection"
	ReasonRetrying        = "Retrying"
)

// Reasons of Degraded. Where several hold, the first of this list is told.
const (
	ReasonAsExpected         = "AsExpected"
	ReasonVersionUnsupported = "VersionUnsupported"
	ReasonImageInvalid       = "ImageInvalid"
	ReasonNameConflict       = "NameConflict"
	ReasonApplyRefused       = "ApplyRefused"
	ReasonImagePull          = "ImageCannotBePulled"
	ReasonShardCrashes       = "ShardCrashes"
	ReasonUnschedulable      = "Unschedulable"
	ReasonNodeLost           = "NodeLost"
	ReasonVersionMismatch    = "VersionMismatch"
)

// Reasons of events.
const (
	EventShardReady        = "ShardReady"
	EventShardNotReady     = "ShardNotReady"
	EventShardStartedEmpty = "ShardStartedEmpty"
	EventShardKeptItems    = "ShardKeptItems"
	EventScaled            = "Scaled"
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
	// AnnotationRevision holds the hash of what the spec asked of a pod when it was
	// made. What the operator itself adds is not in it, so that a new operator does
	// not make a shard look outdated.
	AnnotationRevision = "cache.memcached-operator.io/revision"
)

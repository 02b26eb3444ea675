package v1alpha1

// Condition types of a Memcached. All of them are always present.
const (
	// ConditionReady is True when all desired shards are ready and match the spec:
	// Available is True, Progressing and Degraded are False. Its reason and message are those
	// of the condition that decides.
	ConditionReady = "Ready"
	// ConditionAvailable is True when all desired shards are ready.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the operator or Kubernetes applies the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when a problem requires manual intervention.
	ConditionDegraded = "Degraded"
)

// Reasons of Available.
const (
	ReasonAllShardsReady = "AllShardsReady"
	ReasonShardsNotReady = "ShardsNotReady"
	ReasonNoShards       = "NoShards"
)

// Reasons of Progressing. Each Gate is one, too.
const (
	ReasonUpToDate                    = "UpToDate"
	ReasonScalingOut                  = "ScalingOut"
	ReasonScalingIn                   = "ScalingIn"
	ReasonShardsStarting              = "ShardsStarting"
	ReasonUpdatingShard               = "UpdatingShard"
	ReasonPaused                      = "Paused"
	ReasonDeleting                    = "Deleting"
	ReasonWaitingForGarbageCollection = "WaitingForGarbageCollection"
	ReasonRetrying                    = "Retrying"
	ReasonBootstrapping               = "Bootstrapping"
	ReasonBackingUp                   = "BackingUp"
)

// Gate names what blocks the update of the next shard.
//
// +kubebuilder:validation:Enum=Paused;UpdateStrategyInvalid;UpdateFailed;UpdatePathNotAllowed;ImageNotVerified;ShardInTransition;ShardUnavailable;MinIntervalNotElapsed;OutsideMaintenanceWindow;HitRatioNotRecovered;EmptyStartNotAnnounced
type Gate string

// The gates, in the order in which the operator checks them.
const (
	GatePaused                   Gate = "Paused"
	GateUpdateStrategyInvalid    Gate = "UpdateStrategyInvalid"
	GateUpdateFailed             Gate = "UpdateFailed"
	GateUpdatePathNotAllowed     Gate = "UpdatePathNotAllowed"
	GateImageNotVerified         Gate = "ImageNotVerified"
	GateShardInTransition        Gate = "ShardInTransition"
	GateShardUnavailable         Gate = "ShardUnavailable"
	GateMinIntervalNotElapsed    Gate = "MinIntervalNotElapsed"
	GateOutsideMaintenanceWindow Gate = "OutsideMaintenanceWindow"
	GateHitRatioNotRecovered     Gate = "HitRatioNotRecovered"
	GateEmptyStartNotAnnounced   Gate = "EmptyStartNotAnnounced"
)

// Reasons of Degraded. When several apply, the condition has the first of this list.
const (
	ReasonAsExpected            = "AsExpected"
	ReasonVersionUnsupported    = "VersionUnsupported"
	ReasonImageInvalid          = "ImageInvalid"
	ReasonNameConflict          = "NameConflict"
	ReasonApplyRejected         = "ApplyRejected"
	ReasonImageCannotBePulled   = "ImageCannotBePulled"
	ReasonShardCrashes          = "ShardCrashes"
	ReasonUnschedulable         = "Unschedulable"
	ReasonNodeLost              = "NodeLost"
	ReasonVersionMismatch       = "VersionMismatch"
	ReasonUpdateStrategyInvalid = "UpdateStrategyInvalid"
	ReasonUpdatePathNotAllowed  = "UpdatePathNotAllowed"
	ReasonImageUnusable         = "ImageUnusable"
	ReasonUpdateFailed          = "UpdateFailed"
	ReasonHitRatioNotRecovered  = "HitRatioNotRecovered"
)

// Reasons of a Memcached's events.
const (
	EventShardReady          = "ShardReady"
	EventShardNotReady       = "ShardNotReady"
	EventShardStartedEmpty   = "ShardStartedEmpty"
	EventShardKeptItems      = "ShardKeptItems"
	EventScaled              = "Scaled"
	EventUpdateStarted       = "UpdateStarted"
	EventUpdateFinished      = "UpdateFinished"
	EventEmptyStartAnnounced = "EmptyStartAnnounced"
	EventShardRolledBack     = "ShardRolledBack"
	EventBootstrapFinished   = "BootstrapFinished"
	EventRefillStarted       = "RefillStarted"
	EventRefillSkipped       = "RefillSkipped"
	EventFinalBackup         = "FinalBackup"
)

// Phase summarizes the conditions of a Memcached in one word.
//
// +kubebuilder:validation:Enum=Running;Progressing;Blocked;Degraded;Paused;Deleting
type Phase string

// The phases.
const (
	PhaseRunning     Phase = "Running"
	PhaseProgressing Phase = "Progressing"
	// PhaseBlocked: all desired shards are ready, and a change of the spec can't be applied.
	PhaseBlocked Phase = "Blocked"
	// PhaseDegraded: shards aren't ready, and a problem requires manual intervention.
	PhaseDegraded Phase = "Degraded"
	PhasePaused   Phase = "Paused"
	PhaseDeleting Phase = "Deleting"
)

// StartResult is whether memcached started with its items.
//
// +kubebuilder:validation:Enum=Warm;Cold
type StartResult string

// The results of a start.
const (
	StartWarm StartResult = "Warm"
	StartCold StartResult = "Cold"
)

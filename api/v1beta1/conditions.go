package v1beta1

// Condition types that tools such as kstatus, Flux and Argo CD read, of every kind. All of them are always present, and at
// most one is True.
const (
	// ConditionReady is True when the object is as its spec says.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the object becomes ready without manual intervention.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when the object doesn't become ready without manual intervention.
	ConditionStalled = "Stalled"
)

// Condition types of a Memcached beside those of every kind. All of them are always present.
const (
	// ConditionAvailable is True when all desired shards are ready.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the operator or Kubernetes applies the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when a problem requires manual intervention.
	ConditionDegraded = "Degraded"
)

// Reasons of Available.
const (
	// ReasonAllShardsReady: all desired shards are ready.
	//
	// Do: Nothing.
	ReasonAllShardsReady = "AllShardsReady"
	// ReasonShardsNotReady: some shards aren't ready; the message names them, with the cause
	// of each.
	//
	// Do: Wait while shards start. If it lasts, read the reason of Degraded and the state of
	// the shard's pod.
	ReasonShardsNotReady = "ShardsNotReady"
	// ReasonNoShards: spec.size is 0, so there is no shard to connect to, to back up or to
	// restore into.
	//
	// Do: set spec.size to 1 or more. Then create a failed backup or restore again.
	ReasonNoShards = "NoShards"
)

// Reasons of Progressing. Each Gate is one, too.
const (
	// ReasonUpToDate: all shards match the spec.
	//
	// Do: Nothing.
	ReasonUpToDate = "UpToDate"
	// ReasonKeepingImage: all shards match the spec, which leaves the image or the version to the
	// operator, and the operator has another default image now. It updates a few Memcacheds at
	// a time, and none after the update of one is Degraded. This one keeps its image until then.
	//
	// Do: Wait. To update now, or to keep the version, set spec.version. If another update is
	// Degraded, the operator's administrator has to look for it, in all namespaces: Memcacheds
	// that are Degraded and have a status.update.
	ReasonKeepingImage = "KeepingImage"
	// ReasonScalingOut: the operator is adding shards.
	//
	// Do: Wait. If it lasts, read the reason of Degraded: a quota, an admission policy or a
	// lack of nodes can prevent it.
	ReasonScalingOut = "ScalingOut"
	// ReasonScalingIn: the operator is deleting the shards with the highest ordinals.
	//
	// Do: Wait. Keep the deleted servers out of the configuration of your clients.
	ReasonScalingIn = "ScalingIn"
	// ReasonScaleInForbidden: a size with fewer shards was written through /scale, which spec.scaling.scaleSubresource doesn't
	// allow. The operator keeps the shards.
	//
	// Do: if you want fewer shards, change spec.size in the Memcached to that of the status, and then to yours. Or set
	// spec.scaling.scaleSubresource.directions to OutAndIn. Otherwise, correct the autoscaler that the message names.
	ReasonScaleInForbidden = "ScaleInForbidden"
	// ReasonWaitingForClients: status.servers has the new list, and the operator doesn't know when all clients use it. Until
	// then, it keeps the items of keys that move on the former and the new shard equal.
	//
	// Do: give all clients the new list. Then run the command in the message. For the next time, set
	// spec.scaling.switchSeconds.
	ReasonWaitingForClients = "WaitingForClients"
	// ReasonShardsStarting: all shards exist, and some aren't ready yet. A backup or restore waits until each shard has its Service.
	//
	// Do: Wait. If it lasts, read the reason of Degraded and the state of the shard's pod.
	ReasonShardsStarting = "ShardsStarting"
	// ReasonUpdatingShard: the operator is applying a change to the shard that the message
	// names.
	//
	// Do: Wait. status.update shows the progress.
	ReasonUpdatingShard = "UpdatingShard"
	ReasonPaused        = string(GatePaused)
	// ReasonSpecRejected: the operator can't apply the spec, and changes nothing.
	//
	// Do: read the message of Degraded, and correct the spec.
	ReasonSpecRejected = "SpecRejected"
	// ReasonDeleting: the Memcached is being deleted, and its shards with it. Or a MemcachedBackup is, and its snapshot.
	//
	// Do: Wait.
	ReasonDeleting = "Deleting"
	// ReasonWaitingForGarbageCollection: Kubernetes is deleting objects whose names the Memcached
	// needs, such as those of a deleted Memcached with the same name.
	//
	// Do: Wait. If it lasts, look for a finalizer on the objects that the message names.
	ReasonWaitingForGarbageCollection = "WaitingForGarbageCollection"
	// ReasonRetrying: a request to the API server failed; the message says why. The operator
	// retries. For a schedule, the API server rejects the backup of a run, and the operator
	// retries until startingDeadlineSeconds have passed.
	//
	// Do: fix what the message names, for example a quota; otherwise wait.
	ReasonRetrying = "Retrying"
	// ReasonBootstrapping: the shards of a new Memcached are being filled from a snapshot.
	// They serve, and Ready is False until the restore has finished.
	//
	// Do: Wait for the MemcachedRestore that status.bootstrap names.
	ReasonBootstrapping = "Bootstrapping"
	// ReasonBackingUp: the Memcached is being deleted, and its final backup is running. The
	// shards keep serving.
	//
	// Do: Wait. To delete it without a backup, set spec.deletionPolicy to Delete.
	ReasonBackingUp = "BackingUp"
)

// Gate names what blocks the update of the next shard.
type Gate string

// The gates, in the order in which the operator checks them.
const (
	// GatePaused: spec.paused is true, so the operator changes nothing.
	//
	// Do: set spec.paused to false when the operator may continue.
	GatePaused Gate = "Paused"
	// GateUpdateStrategyInvalid: spec.updateStrategy names a time zone that doesn't exist. No shard is
	// changed until it is fixed.
	//
	// Do: use a name of the IANA database, such as Europe/Berlin.
	GateUpdateStrategyInvalid Gate = "UpdateStrategyInvalid"
	// GateUpdateFailed: a shard failed during its update and was rolled back. Or, with
	// updateStrategy.type Handover, its handover failed, and it started without its items. Or
	// memcached lost its items when it restarted for a certificate. The next shards were not
	// changed.
	//
	// Do: revert the spec, or fix the cause and retry with the annotation
	// cache.memcached-operator.io/retry.
	GateUpdateFailed Gate = "UpdateFailed"
	// GateUpdatePathNotAllowed: the new version is of another release series, such as 1.7
	// after 1.6, and memcached may not be able to reload the items. No shard was changed. Or a
	// pod that can't hand over its items has the annotation cache.memcached-operator.io/move.
	//
	// Do: choose a version of the same release series, or set updateStrategy.crossSeriesUpgrade to
	// Allow, which can lose the items. Remove the annotation, or delete the pod, which loses the items.
	GateUpdatePathNotAllowed Gate = "UpdatePathNotAllowed"
	// GateImageNotVerified: the preflight check of the new image hasn't passed yet on every
	// node that hosts a shard.
	//
	// Do: Wait. If it lasts, list the preflight pods and read the reason of Degraded.
	GateImageNotVerified Gate = "ImageNotVerified"
	// GateSecretInvalid: a shard's agent can't use the certificate in the Secret of spec.tls, or the
	// users in that of spec.auth. Shards keep serving with the previous content, and those without TLS or
	// authentication aren't changed. No pod that uses the Secret is replaced.
	//
	// Do: create or correct the Secret as the message says. Nothing restarts for that, and an update
	// continues within two minutes.
	GateSecretInvalid Gate = "SecretInvalid"
	// GateScaling: items move to other shards, since the number of shards changes.
	//
	// Do: Wait. If status.scaling.step is Waiting, do what its message says.
	GateScaling Gate = "Scaling"
	// GateShardInTransition: another shard is starting, is being replaced, or hasn't
	// reported its start yet.
	//
	// Do: Wait. If it lasts, look at the state of that shard's pod.
	GateShardInTransition Gate = "ShardInTransition"
	// GateShardUnavailable: another shard isn't ready, and the operator makes at most one
	// shard unavailable at a time.
	//
	// Do: Wait, or fix that shard: its message in status.shards has the cause.
	GateShardUnavailable Gate = "ShardUnavailable"
	// GateMinPeriodNotElapsed: updateStrategy.minPeriodSeconds haven't passed since the
	// update of the previous shard.
	//
	// Do: Wait, or lower minPeriodSeconds.
	GateMinPeriodNotElapsed Gate = "MinPeriodNotElapsed"
	// GateOutsideMaintenanceWindow: none of updateStrategy.maintenanceWindows is open.
	//
	// Do: Wait for the next window, or remove the windows to update now.
	GateOutsideMaintenanceWindow Gate = "OutsideMaintenanceWindow"
	// GateHitRatioNotRecovered: the hit ratio of the shard that was updated last hasn't recovered yet. After
	// hitRatioGate.timeoutSeconds, the update stops, unless hitRatioGate.mode is Continue.
	//
	// Do: Wait. If it lasts, check your clients, set hitRatioGate.mode to Continue, or revert
	// the spec. If the shard has fewer lookups than before, lower hitRatioGate.minRequests.
	GateHitRatioNotRecovered Gate = "HitRatioNotRecovered"
	// GateRestoreRunning: a MemcachedRestore writes items into this Memcached. The replacement of
	// the next shard waits for it, and so does another restore into the same shards. Restores that
	// haven't started wait until the shard is replaced.
	//
	// Do: Wait, or delete the MemcachedRestore that the message names.
	GateRestoreRunning Gate = "RestoreRunning"
	// GateEmptyStartNotAnnounced: the next shard will be replaced, and the status hasn't announced
	// yet that it starts empty, or would if the handover failed.
	//
	// Do: Nothing: the operator announces it and continues.
	GateEmptyStartNotAnnounced Gate = "EmptyStartNotAnnounced"
)

// Gates are all gates, in the order in which the operator checks them. It reports the first that blocks.
var Gates = []Gate{
	GatePaused, GateUpdateStrategyInvalid, GateUpdateFailed, GateUpdatePathNotAllowed, GateImageNotVerified, GateSecretInvalid, GateScaling, GateShardInTransition,
	GateShardUnavailable, GateMinPeriodNotElapsed, GateOutsideMaintenanceWindow, GateHitRatioNotRecovered, GateRestoreRunning, GateEmptyStartNotAnnounced,
}

// Reasons of Degraded. When several apply, the condition has one of them.
const (
	// ReasonAsExpected: no problem requires manual intervention.
	//
	// Do: Nothing.
	ReasonAsExpected = "AsExpected"
	// ReasonProtectionNotStated: the shards require a login or serve TLS, and the spec neither requires it
	// nor switches it off: the field was removed, or was lost while an older release of the operator was
	// installed. Or this release doesn't know the protection that the message names. The shards keep it.
	//
	// Do: restore spec.auth or spec.tls, or set its mode to Disabled to switch it off. If the release
	// doesn't know it, install the newer release again.
	ReasonProtectionNotStated = "ProtectionNotStated"
	// ReasonVersionUnsupported: the version has known remote crashes. No shard was changed.
	//
	// Do: choose the version that the message names, or a newer one.
	ReasonVersionUnsupported = "VersionUnsupported"
	// ReasonExtraArgsInvalid: spec.config.extraArgs contains a word that memcached can't get: an option that
	// is unknown or that the operator sets, or one of external storage, the proxy or TLS. The message names
	// the word. No shard was changed.
	//
	// Do: remove the word. Other fields of the spec, such as spec.memory and spec.tls, set what it sets.
	ReasonExtraArgsInvalid = "ExtraArgsInvalid"
	// ReasonPodConfigurationTooLarge: the fields of the spec that each pod gets, such as
	// spec.pod.metadata and spec.pod.affinity, have more than 16 KiB as JSON, or the spec more than 32 KiB.
	// No shard was changed.
	//
	// Do: shorten them.
	ReasonPodConfigurationTooLarge = "PodConfigurationTooLarge"
	// ReasonImageInvalid: spec.pod.image isn't an image reference. No shard was changed.
	//
	// Do: fix spec.pod.image.
	ReasonImageInvalid = "ImageInvalid"
	// ReasonNotAllowed: a setting of the operator doesn't allow a value of the spec. The message
	// names both. No shard was changed. If the setting doesn't allow a Secret or the
	// ServiceAccount of a store, backups and restores wait.
	//
	// Do: use a value that the setting allows, or ask the administrator of the operator to change
	// the setting.
	ReasonNotAllowed = "NotAllowed"
	// ReasonNameConflict: an object with the name of a shard, a Service or a policy exists
	// and isn't managed by this Memcached.
	//
	// Do: delete that object, or create the Memcached with another name.
	ReasonNameConflict = "NameConflict"
	// ReasonApplyRejected: the API server rejects an object of this Memcached or a shard's pod, for example
	// because of a quota, an admission policy or an invalid field. The operator retries it twice a minute, and an update
	// whose next pod is rejected goes on when it isn't any more.
	//
	// Do: fix what the message names.
	ReasonApplyRejected = "ApplyRejected"
	// ReasonFinalBackupLate: the final backup of a Memcached that is being deleted has failed, or most of the time until its deadline
	// has passed. A backup that failed is repeated after a minute. The message says what happens at the deadline.
	//
	// Do: fix what the message names. For a slow backup, raise spec.backup.final.deadlineSeconds.
	ReasonFinalBackupLate = "FinalBackupLate"
	// ReasonFinalBackupFailed: the Memcached is being deleted, and had no complete final backup at its deadline. It serves and isn't
	// deleted until a backup is complete; the operator repeats the backup.
	//
	// Do: fix what the message names. To delete the Memcached without a backup, set spec.deletionPolicy to Delete.
	ReasonFinalBackupFailed = "FinalBackupFailed"
	// ReasonImageCannotBePulled: the container runtime can't pull the image; the message
	// contains its error.
	//
	// Do: fix spec.pod.image, spec.version or spec.pod.imagePullSecrets, or the registry.
	ReasonImageCannotBePulled = "ImageCannotBePulled"
	// ReasonShardCrashes: a container of the pod exits, or can't be created. The message contains its last log
	// line, or the error of the container runtime.
	//
	// Do: fix what the message names, such as spec.config.extraArgs, spec.pod.image or the memory limit. Read the
	// log of the previous container with kubectl logs --previous.
	ReasonShardCrashes = "ShardCrashes"
	// ReasonUnschedulable: no node accepts the pod; the message contains the scheduler's
	// reason.
	//
	// Do: free capacity, add nodes, or change spec.pod.affinity, spec.memory or
	// spec.resources.
	ReasonUnschedulable = "Unschedulable"
	// ReasonNodeLost: the node doesn't respond. Kubernetes recreates its pods on other nodes
	// after spec.pod.nodeLossTolerationSeconds, a minute by default. They start empty. A pod that is
	// deleted exists until its node says that it has stopped: after 5 minutes it is reported, as updates wait for it.
	//
	// Do: fix the node, delete its Node object to recreate the pods immediately, or taint it out-of-service.
	// spec.backup.refill restores items from a backup.
	ReasonNodeLost = "NodeLost"
	// ReasonMemoryLimitTooSmall: something else than the operator, such as a VerticalPodAutoscaler or a webhook, has lowered the
	// memory limit of a shard's pod below what memcached needs. The kernel kills it when it is full.
	//
	// Do: exclude the pods from it, and replace the pod: annotate it with cache.memcached-operator.io/move=1.
	ReasonMemoryLimitTooSmall = "MemoryLimitTooSmall"
	// ReasonAgentUnreachable: the agent in a shard's pod hasn't answered the operator for 5
	// minutes. The operator doesn't know how the shard started, and an update doesn't continue.
	// The operator retries, and the condition clears when the agent answers.
	//
	// Do: let the operator's pods connect to TCP port 11212 of the shards' pods: add a rule to
	// the NetworkPolicies that deny it, or exclude the port from the service mesh.
	ReasonAgentUnreachable = "AgentUnreachable"
	ReasonSecretInvalid    = string(GateSecretInvalid)
	// ReasonCertificateExpiring: less than a sixth of the lifetime of a certificate that a shard serves
	// is left, or it has expired. Clients reject it then.
	//
	// Do: renew the certificate in the Secret of spec.tls. With cert-manager, look at the events of
	// the Certificate.
	ReasonCertificateExpiring = "CertificateExpiring"
	// ReasonVersionMismatch: the image contains another memcached version than its tag says.
	//
	// Do: use an image whose tag matches its version, or omit spec.version and name the
	// image by its digest.
	ReasonVersionMismatch       = "VersionMismatch"
	ReasonUpdateStrategyInvalid = string(GateUpdateStrategyInvalid)
	ReasonUpdatePathNotAllowed  = string(GateUpdatePathNotAllowed)
	// ReasonImageUnusable: the preflight check failed: the image contains no memcached, or
	// one that doesn't start with these arguments. No shard was changed.
	//
	// Do: fix spec.pod.image, spec.version or spec.config.extraArgs.
	ReasonImageUnusable        = "ImageUnusable"
	ReasonUpdateFailed         = string(GateUpdateFailed)
	ReasonHitRatioNotRecovered = string(GateHitRatioNotRecovered)
	// ReasonDisruptionBudgetConflict: another PodDisruptionBudget than the operator's selects the pods of a shard, too.
	// Kubernetes rejects every eviction of a pod that has two, so drains of its node don't finish. Nothing else is affected.
	//
	// Do: delete the budget that the message names, or exclude the shards from its selector. If it belongs to a Helm release with
	// the name of the Memcached, create the Memcached with another name.
	ReasonDisruptionBudgetConflict = "DisruptionBudgetConflict"
)

// Reasons of a Memcached's events, beside those of Degraded, and ReasonScaleInForbidden.
const (
	// EventShardReady: a shard became ready for the first time, or again without a restart.
	//
	// Do: Nothing.
	EventShardReady = "ShardReady"
	// EventShardNotReady: a shard is no longer ready, and no update restarts it; the message says
	// why.
	//
	// Do: read the message and the state of the shard's pod.
	EventShardNotReady = "ShardNotReady"
	// EventShardStartedEmpty: a shard restarted without its items; the message has the reason.
	//
	// Do: expect more reads of your database until the shard is warm. Without a planned
	// change, look for the cause in the pod's events: a lost node or a crash. After the deletion
	// of a pod, the reason is why its items were not handed over. spec.backup.refill restores items from a
	// backup.
	EventShardStartedEmpty = "ShardStartedEmpty"
	// EventShardKeptItems: a shard restarted with its items; the message has the number
	// before and after.
	//
	// Do: Nothing.
	EventShardKeptItems = "ShardKeptItems"
	// EventShardHandedOver: a shard moved to another pod with its items; the message has the number
	// before and after, how long the shard was unavailable, and in mode Available for how long
	// clients could read an older value than the one stored last.
	//
	// Do: Nothing. If items are missing, they were stored last in a larger memory, or the pod was
	// given less time than its terminationGracePeriodSeconds.
	EventShardHandedOver = "ShardHandedOver"
	// EventNodeLeaves: a shard moves to another node because its node is cordoned or has one of the
	// taints of updateStrategy.handover.nodeDrain.
	//
	// Do: Nothing.
	EventNodeLeaves = "NodeLeaves"
	// EventScaled: the number of shards changed, and with it the shard of some keys.
	//
	// Do: give your clients the new list in status.servers.
	EventScaled = "Scaled"
	// EventScalingStarted: shards copy the items of the keys that move to them. status.servers doesn't change before they have.
	//
	// Do: Nothing.
	EventScalingStarted = "ScalingStarted"
	// EventScalingPublished: status.servers has the new list. The shards keep the items that moved equal until no client has the former list.
	//
	// Do: give your clients the new list in status.servers. If status.scaling.message contains a command, run it then.
	EventScalingPublished = "ScalingPublished"
	// EventScalingFinished: no shard has items any more that clients look for on another one.
	//
	// Do: Nothing.
	EventScalingFinished = "ScalingFinished"
	// EventScaledCold: the number of shards changed, and the items of the keys that move were not copied. The message says what
	// is required.
	//
	// Do: expect more reads of your database. To copy the items the next time, do what the message says.
	EventScaledCold = "ScaledCold"
	// EventUpdateStarted: an update of the shards began.
	//
	// Do: Nothing.
	EventUpdateStarted = "UpdateStarted"
	// EventUpdateFinished: all shards match the spec; the message has the share of kept
	// items, and for how long shards were unavailable.
	//
	// Do: Nothing.
	EventUpdateFinished = "UpdateFinished"
	// EventHitRatioMeasured: the hit ratio is back after an update, or wasn't within 30 minutes; the
	// message has the number of misses that the update caused. status.lastUpdate keeps it.
	//
	// Do: Nothing if it is back. Otherwise compare the items before and after in status.lastUpdate;
	// spec.updateStrategy.hitRatioGate stops the next update until a shard has its hit ratio back.
	EventHitRatioMeasured = "HitRatioMeasured"
	// EventEmptyStartAnnounced: the operator will replace a shard, which will start empty: a pod
	// hands over its items only if spec.updateStrategy.handover.mode wasn't Disabled when it was created.
	//
	// Do: to prevent it, revert the spec or set spec.paused to true before the replacement.
	EventEmptyStartAnnounced = "EmptyStartAnnounced"
	// EventShardRolledBack: a shard failed during its update and was rolled back.
	//
	// Do: read the reason of Degraded.
	EventShardRolledBack = "ShardRolledBack"
	// EventBootstrapFinished: the restore into a new Memcached has finished; the message reports
	// whether its shards were filled.
	//
	// Do: if they weren't, read the message and the MemcachedRestore that status.bootstrap
	// names.
	EventBootstrapFinished = "BootstrapFinished"
	// EventRefillStarted: a lost shard is being refilled from a backup.
	//
	// Do: Nothing.
	EventRefillStarted = "RefillStarted"
	// EventRefillSkipped: a lost shard stays empty: no complete backup from before the loss
	// is recent enough.
	//
	// Do: schedule backups more often, or raise spec.backup.refill.maxAgeSeconds.
	EventRefillSkipped = "RefillSkipped"
	// EventFinalBackup: a Memcached is being deleted; the message has the state of its final
	// backup.
	//
	// Do: if the Memcached was deleted without a backup, restore from an older one.
	EventFinalBackup = "FinalBackup"
)

// Phase summarizes the conditions of a Memcached in one word.
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
type StartResult string

// The results of a start.
const (
	StartWarm StartResult = "Warm"
	StartCold StartResult = "Cold"
	// StartHandedOver: memcached received the items of the shard's previous pod before it served.
	StartHandedOver StartResult = "HandedOver"
)

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedStatus is the observed state of a cache.
type MemcachedStatus struct {
	// Conditions are Available, Progressing and Degraded, and Ready, Reconciling and Stalled, which
	// tools such as kstatus read. Once the operator has seen the object, all six are always present.
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

	// Phase summarizes the conditions in one word: Running, Progressing, Blocked, Degraded, Paused
	// or Deleting. Releases may add phases: programs should read the conditions instead.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Size is the number of shards that exist.
	//
	// +optional
	// +kubebuilder:default=0
	Size int32 `json:"size"`

	// ReadyShards is the number of shards that are ready.
	//
	// +optional
	// +kubebuilder:default=0
	ReadyShards int32 `json:"readyShards"`

	// UpdatedShards is the number of shards that match the spec.
	//
	// +optional
	// +kubebuilder:default=0
	UpdatedShards int32 `json:"updatedShards"`

	// Version of memcached that the shards report, such as 1.6.45: the oldest one while they run
	// several. shards[].version has the version of each. It is absent until a shard has reported it.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// TargetVersion is the version of memcached that the spec leads to. It is absent if that is the
	// version, or if the image's tag doesn't say it.
	//
	// +optional
	TargetVersion string `json:"targetVersion,omitempty"`

	// Image that the spec selects for the shards. After the operator got another default image,
	// this is the previous one until the operator updates this Memcached.
	//
	// +optional
	Image string `json:"image,omitempty"`

	// DefaultImage is the operator's default image with which the spec selected image. It is
	// absent if spec.pod.image or spec.version determine the image completely.
	//
	// +optional
	DefaultImage string `json:"defaultImage,omitempty"`

	// Selector is the label selector of the shards' pods, for the scale subresource.
	//
	// +optional
	Selector string `json:"selector,omitempty"`

	// Nodes are the names of the pods that host the shards, by ordinal.
	//
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`

	// Servers are the addresses of the shards for a client's configuration, as host:port, by
	// ordinal. A shard keeps its address when its pod is replaced.
	//
	// +optional
	// +listType=atomic
	Servers []string `json:"servers,omitempty"`

	// External is where clients outside the cluster connect. It is absent unless spec.access.external.mode is
	// LoadBalancer.
	//
	// +optional
	External *ExternalStatus `json:"external,omitempty"`

	// TLS is what the agents report of the certificate of spec.tls. It is absent without spec.tls.
	//
	// +optional
	TLS *TLSStatus `json:"tls,omitempty"`

	// Discovery is what clients read from the endpoint of spec.access.discovery. It is absent while that
	// is disabled.
	//
	// +optional
	Discovery *DiscoveryStatus `json:"discovery,omitempty"`

	// Binding is the Secret of spec.access.binding; nil without one.
	//
	// +optional
	Binding *BindingStatus `json:"binding,omitempty"`

	// Scaling is the progress of a change of the number of shards in which items move. It is absent otherwise.
	//
	// +optional
	Scaling *ScalingStatus `json:"scaling,omitempty"`

	// LastScaling is what the last change of the number of shards was in which items moved, or could not. Requires release 1.1.0 or newer.
	//
	// +optional
	LastScaling *ScalingStatus `json:"lastScaling,omitempty"`

	// Purge is the progress and the result of the annotation cache.memcached-operator.io/purge. It is absent without the annotation.
	// Requires release 1.1.0 or newer.
	//
	// +optional
	Purge *PurgeStatus `json:"purge,omitempty"`

	// LimitedSize is the number of shards that the operator keeps instead of spec.size, which was written through /scale
	// beyond what spec.scaling.scaleSubresource allows. It is absent otherwise. Requires release 1.1.0 or newer.
	//
	// +optional
	LimitedSize *LimitedSize `json:"limitedSize,omitempty"`

	// Update is the progress of a change of the spec. It is absent when all shards match the
	// spec.
	//
	// +optional
	Update *UpdateStatus `json:"update,omitempty"`

	// LastUpdate is what the last update that restarted or replaced shards cost, also while it goes on.
	//
	// +optional
	LastUpdate *UpdateCost `json:"lastUpdate,omitempty"`

	// Shards is the state of each shard, by ordinal.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	Shards []ShardStatus `json:"shards,omitempty"`

	// Bootstrap is the state of filling the shards of a new Memcached. It is absent when
	// spec.backup.bootstrap was not set at creation.
	//
	// +optional
	Bootstrap *BootstrapStatus `json:"bootstrap,omitempty"`
}

// BootstrapStatus is the state of filling the shards of a new Memcached.
type BootstrapStatus struct {
	// RestoreName is the name of the MemcachedRestore that fills the shards.
	//
	// +required
	RestoreName string `json:"restoreName"`

	// Phase is Running from the Memcached's creation until the restore has finished, then
	// Complete when it filled the shards or Failed when it didn't.
	//
	// +required
	Phase TransferPhase `json:"phase"`

	// Message describes the state in a sentence.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// IsRunning reports whether the shards are being filled, or will be once they are ready; false without a bootstrap.
func (b *BootstrapStatus) IsRunning() bool {
	return b != nil && b.Phase == TransferRunning
}

// TLSStatus is what the agents report of the shards' certificate.
type TLSStatus struct {
	// NotAfter is when the certificate expires; of several, the one that expires first.
	//
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`

	// Fingerprint is the SHA-256 of that certificate, as hexadecimal digits.
	//
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`

	// PlainConnections is how many connections without TLS clients have open in mode Permissive,
	// when the operator last queried the agents, which it does every minute. It is absent in mode
	// Required.
	//
	// +optional
	PlainConnections *int64 `json:"plainConnections,omitempty"`

	// LastPlainConnectionTime is when a client last opened or closed a connection without TLS, of
	// all shards, truncated to the hour. The start of a shard counts as such a time, since its agent
	// doesn't know of earlier connections. It is absent in mode Required, and until all shards accept
	// both kinds of connections.
	//
	// +optional
	LastPlainConnectionTime *metav1.Time `json:"lastPlainConnectionTime,omitempty"`
}

// ExternalStatus is where clients outside the cluster connect.
type ExternalStatus struct {
	// Servers are the addresses that load balancers have for the shards, as host:port, by ordinal. The
	// list stops before the first shard without one, so that each address stays at the place of its shard.
	//
	// +optional
	// +listType=atomic
	Servers []string `json:"servers,omitempty"`

	// Message says which shards have no address, or why clients can't connect, and what to do; empty if
	// neither is the case.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// DiscoveryStatus is what clients read from the endpoint of spec.access.discovery.
type DiscoveryStatus struct {
	// Endpoint is the address of the endpoint, as host:port.
	//
	// +required
	Endpoint string `json:"endpoint"`

	// Version of the list of shards. It grows with each change, also after the Memcached was
	// deleted and created again.
	//
	// +required
	Version int64 `json:"version"`

	// Size is the number of shards in the list: a new shard is added when it is ready, and one that
	// scaling in removes is removed from the list before it is deleted.
	//
	// +required
	Size int32 `json:"size"`

	// LastChangeTime is when the list got this version.
	//
	// +required
	LastChangeTime metav1.Time `json:"lastChangeTime"`
}

// BindingStatus is the Secret to which workloads are bound.
type BindingStatus struct {
	// Name of the Secret; empty until it exists.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// Size is the number of shards that the Secret lists: new shards are listed when all are ready.
	//
	// +optional
	Size int32 `json:"size,omitempty"`

	// Message says why the Secret doesn't list the shards, and what to do, or why the operator couldn't recreate a deleted Secret;
	// empty if neither applies.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ScalingStatus is the progress of a change of the number of shards in which items move to other shards.
type ScalingStatus struct {
	// ID distinguishes this change from others, such as 3-4-1764251234.
	//
	// +required
	ID string `json:"id"`

	// From is the number of shards that clients used before.
	//
	// +required
	From int32 `json:"from"`

	// To is the number of shards that they will use.
	//
	// +required
	To int32 `json:"to"`

	// Step is Preparing, Copying, Publishing, Waiting, Closing or Finishing. Releases may add steps.
	//
	// +required
	Step ScalingStep `json:"step"`

	// StartTime is when this change began.
	//
	// +required
	StartTime metav1.Time `json:"startTime"`

	// PublishTime is when the new list came into status.servers. It is absent before.
	//
	// +optional
	PublishTime *metav1.Time `json:"publishTime,omitempty"`

	// CompletionTime is when the shards of the former list were deleted, or the new ones had their items. It is absent before.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Moved is how many items the new owners of keys had copied when the new list was published.
	//
	// +optional
	Moved int64 `json:"moved,omitempty"`

	// Deleted is how many items were deleted at the end since only one of both owners had them, or both had changed them.
	//
	// +optional
	Deleted int64 `json:"deleted,omitempty"`

	// Purged is how many copies of the items that moved were deleted from their former owners.
	//
	// +optional
	Purged int64 `json:"purged,omitempty"`

	// StaleMilliseconds is the longest time for which a client with one list could read a value that a client with the other
	// list had changed.
	//
	// +optional
	StaleMilliseconds int64 `json:"staleMilliseconds,omitempty"`

	// Problem says why no items move, and what to do; empty if they do.
	//
	// +optional
	Problem string `json:"problem,omitempty"`

	// Message describes the progress in a sentence.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// LimitedSize is a number of shards other than that of the spec.
type LimitedSize struct {
	// Size is the number of shards.
	//
	// +required
	Size int32 `json:"size"`

	// Message says who wrote spec.size, and what to do.
	//
	// +required
	Message string `json:"message"`
}

// ScalingStep is a step of a change of the number of shards.
type ScalingStep string

// The steps in their order.
const (
	// ScalingPreparing: the operator waits until no update is in progress and all shards can take part. Nothing has changed.
	ScalingPreparing ScalingStep = "Preparing"
	// ScalingCopying: the new owners of keys copy the items. Clients use the former list.
	ScalingCopying ScalingStep = "Copying"
	// ScalingPublishing: the new owners prepare for clients with either list.
	ScalingPublishing ScalingStep = "Publishing"
	// ScalingWaiting: the new list is published, and clients may have either.
	ScalingWaiting ScalingStep = "Waiting"
	// ScalingClosing: no client has the former list. What only one owner of a key has is removed.
	ScalingClosing ScalingStep = "Closing"
	// ScalingFinishing: no items move any more, or none moved. Shards that clients don't use are deleted.
	ScalingFinishing ScalingStep = "Finishing"
)

// PurgeStatus reports a request to count or delete the items of keys that clients look for on other shards.
type PurgeStatus struct {
	// Request is the value of the annotation.
	//
	// +required
	Request string `json:"request"`

	// Phase is Pending, Running, Complete or Failed. Releases may add phases.
	//
	// +required
	Phase TransferPhase `json:"phase"`

	// StartTime is when the operator got the request.
	//
	// +required
	StartTime metav1.Time `json:"startTime"`

	// Shards are what the shards have deleted, or in a dry run would delete, by ordinal.
	//
	// +optional
	// +listType=atomic
	Shards []PurgedShard `json:"shards,omitempty"`

	// Message describes the phase in a sentence, and says what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// PurgedShard is what a shard has deleted, or would delete.
type PurgedShard struct {
	// Items is how many items.
	//
	// +required
	Items int64 `json:"items"`

	// Bytes is the size of their keys and values.
	//
	// +required
	Bytes int64 `json:"bytes"`
}

// IsActive reports whether the request isn't done; false without one.
func (p *PurgeStatus) IsActive() bool {
	return p != nil && (p.Phase == TransferPending || p.Phase == TransferRunning)
}

// UpdateMethod is how a change is applied to a shard, from the least to the most disruptive.
type UpdateMethod string

// The update methods.
const (
	// UpdateLive changes labels, annotations or resources; nothing restarts.
	UpdateLive UpdateMethod = "Live"
	// UpdateRestart restarts memcached, which keeps its items.
	UpdateRestart UpdateMethod = "Restart"
	// UpdateRecreate recreates the container in its pod; memcached keeps its items.
	UpdateRecreate UpdateMethod = "Recreate"
	// UpdateReplace replaces the pod by another one, which receives the items of the first one
	// unless spec.updateStrategy.handover.mode is Disabled.
	UpdateReplace UpdateMethod = "Replace"
)

// UpdateStatus is the progress of a change of the spec.
type UpdateStatus struct {
	// Revision is a hash of the pod configuration that the spec results in.
	//
	// +required
	Revision string `json:"revision"`

	// Shard that is being updated, or that will be updated next.
	//
	// +optional
	Shard string `json:"shard,omitempty"`

	// Method that applies the change to the shard: Live, Restart, Recreate or Replace. Releases may
	// add methods.
	//
	// +optional
	Method UpdateMethod `json:"method,omitempty"`

	// RollingBack is true while the shard is rolled back to its previous configuration.
	//
	// +optional
	RollingBack bool `json:"rollingBack,omitempty"`

	// Gate that blocks the update of the shard, such as OutsideMaintenanceWindow; empty while the shard
	// is being updated. Releases may add gates.
	//
	// +optional
	Gate Gate `json:"gate,omitempty"`

	// Items that the shards which kept items contain after the update.
	//
	// +optional
	Items int64 `json:"items,omitempty"`

	// ItemsBefore is how many items those shards contained before the update.
	//
	// +optional
	ItemsBefore int64 `json:"itemsBefore,omitempty"`

	// LastTransitionTime is when the update of this shard reached this method and gate.
	//
	// +required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// Message describes the progress in a sentence.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// IsRolledBack reports whether the shard is being rolled back or already is: the status in
// between may not have been written. A shard that failed with its new pod has no method left.
func (u *UpdateStatus) IsRolledBack() bool {
	return u.RollingBack || u.Gate == GateUpdateFailed && u.Method != ""
}

// IsFinished reports whether a status without the update has its result: all shards match the spec, and one of them
// started with what the update led to, or no gate blocked it and none is ready: those that were broken get new pods,
// which start afterwards. If it was reverted before, the shards that are ready started with something else.
func (u *UpdateStatus) IsFinished(s *MemcachedStatus) bool {
	started, anyReady := false, false
	for i := range s.Shards {
		if !s.Shards[i].UpToDate {
			return false
		}
		started = started || s.Shards[i].Revision == u.Revision
		anyReady = anyReady || s.Shards[i].Ready
	}
	return s.Update == nil && len(s.Shards) > 0 && (started || u.Gate == "" && !anyReady)
}

// UpdateCost is what an update cost clients.
type UpdateCost struct {
	// Revision is a hash of the pod configuration that the update leads to.
	//
	// +required
	Revision string `json:"revision"`

	// StartTime is when the first shard was changed.
	//
	// +required
	StartTime metav1.Time `json:"startTime"`

	// CompletionTime is when all shards matched the spec. It is absent while the update goes on, and
	// after another change took its place.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Shards is the number of shards that started again, in the same pod or in another one.
	//
	// +required
	Shards int32 `json:"shards"`

	// Items that these shards contained right after their start.
	//
	// +required
	Items int64 `json:"items"`

	// ItemsBefore is how many items they contained before it.
	//
	// +required
	ItemsBefore int64 `json:"itemsBefore"`

	// UnavailableMilliseconds is for how long no memcached responded, as the sum of these shards.
	// A pod that is replaced without a handover adds nothing, since it serves until the other one
	// is ready.
	//
	// +required
	UnavailableMilliseconds int64 `json:"unavailableMilliseconds"`

	// MaxUnavailableMilliseconds is the same for the shard that was unavailable the longest.
	//
	// +required
	MaxUnavailableMilliseconds int64 `json:"maxUnavailableMilliseconds"`

	// ExtraMisses is how many more keys clients didn't find since the start of their shard than
	// with its hit ratio of the minute before. The operator measures it until the hit ratio of each
	// shard is back, for at most 30 minutes after the update. It is absent until then, and for
	// shards with fewer than 1,000 lookups in that minute.
	//
	// +optional
	ExtraMisses *int64 `json:"extraMisses,omitempty"`

	// HitRatioRecoveryTime is when each shard had at least 90% of that hit ratio again, over the
	// last minute and at least 1,000 lookups.
	//
	// +optional
	HitRatioRecoveryTime *metav1.Time `json:"hitRatioRecoveryTime,omitempty"`
}

// Bounds of what a status contains.
const (
	// MaxMessage is the maximum size of a condition's message, in bytes.
	MaxMessage = 1024
	// MaxShardMessage is the maximum size of a shard's message, in bytes.
	MaxShardMessage = 128
	// MaxContainerID is the size of the part of a container's ID that a status contains.
	MaxContainerID = 12
	// MaxVersion is the maximum size of a version that memcached or an agent reports, in bytes.
	MaxVersion = 64
	// MaxRestart is the maximum size of a restart annotation's value in a status. A longer value
	// is hashed.
	MaxRestart = 20
	// MaxPurgeRequest is the maximum size of the value of AnnotationPurge, in bytes.
	MaxPurgeRequest = 64
	// MaxAgentVersion is the maximum size of an agent's version in a status, in bytes.
	MaxAgentVersion = 16
)

// ShardStatus is the state of one shard.
type ShardStatus struct {
	// Name of the shard, its ReplicaSet and its Service: <memcached>-<ordinal>.
	//
	// +required
	Name string `json:"name"`

	// PodName is the name of the pod that hosts the shard; empty while there is none.
	//
	// +optional
	PodName string `json:"podName,omitempty"`

	// NodeName is the name of the node that the pod runs on.
	//
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// Ready is whether the shard serves clients.
	//
	// +required
	Ready bool `json:"ready"`

	// Version that memcached itself reports; empty until it is known.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// AgentVersion is the release of the operator whose agent runs in the pod, in at most 16
	// bytes. A pod keeps its agent until it is replaced, also when the operator is upgraded.
	//
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`

	// Revision is a hash of the pod's configuration at the start that the fields below
	// describe.
	//
	// +optional
	Revision string `json:"revision,omitempty"`

	// UpToDate is whether the pod matches the spec.
	//
	// +required
	UpToDate bool `json:"upToDate"`

	// StartResult is Warm when memcached last started with its items, HandedOver when it received those of
	// the shard's previous pod, Cold when it started empty, and empty until that is known. Other
	// values can follow. While a new pod starts, it describes the previous one.
	//
	// +optional
	StartResult StartResult `json:"startResult,omitempty"`

	// ContainerID is the first 12 characters of the ID of the container whose start version,
	// startResult and the fields below describe.
	//
	// +optional
	ContainerID string `json:"containerID,omitempty"`

	// RestartAnnotation is the value of the pod's restart annotation at that start.
	//
	// +optional
	RestartAnnotation string `json:"restartAnnotation,omitempty"`

	// StartTime is when memcached last became ready.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// Items that memcached contained right after its last start.
	//
	// +optional
	Items int64 `json:"items,omitempty"`

	// ItemsBefore is how many items memcached contained when it was last saved, in the previous pod
	// if startResult is HandedOver.
	//
	// +optional
	ItemsBefore int64 `json:"itemsBefore,omitempty"`

	// GapMilliseconds is for how long no memcached of the shard responded during the handover, if
	// startResult is HandedOver. It doesn't include the time in which clients connect to the new pod.
	//
	// +optional
	GapMilliseconds int64 `json:"gapMilliseconds,omitempty"`

	// AgentUnreachableTime is when the agent in the shard's pod stopped answering the operator's
	// queries on port 11212. It is absent while the agent answers or isn't queried: the operator
	// queries it after a start and during an update.
	//
	// +optional
	AgentUnreachableTime *metav1.Time `json:"agentUnreachableTime,omitempty"`

	// Message says why the shard isn't ready or doesn't match the spec, in at most 128 bytes.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// Memcached is a cache of one or more memcached shards. Planned changes keep its items.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size,selectorpath=.status.selector
// +kubebuilder:resource:shortName=memc,categories=memcached-operator
// +kubebuilder:metadata:labels="servicebinding.io/provisioned-service=true"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".status.version",description="Version that the shards run"
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=".spec.size",description="Desired number of shards"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyShards",description="Shards that are ready"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=".status.updatedShards",description="Shards that match the spec"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Target",type=string,priority=1,JSONPath=".status.targetVersion",description="Version that the spec leads to"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
// +kubebuilder:printcolumn:name="Update",type=string,priority=1,JSONPath=".status.update.message"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name is used for Services: it must consist of lower case letters, digits and '-', start with a letter and end with a letter or digit"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name must have at most 52 characters: the shard's ordinal is appended to it, and the result must be a valid Service name"
type Memcached struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	//
	// +required
	Spec MemcachedSpec `json:"spec"`
	// Status is the observed state.
	//
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status MemcachedStatus `json:"status,omitzero"`
}

// MemcachedList is a list of Memcached objects.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}

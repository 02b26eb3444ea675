package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedSpec is what a person asks for.
//
// The rules below are those that one object can break by itself; what depends
// on more than the object (a version that is refused, an image that cannot be
// pulled) is answered in the status.
//
// +kubebuilder:validation:XValidation:rule="quantity(string(self.memory)).compareTo(quantity('64Mi')) >= 0",message="memory must be at least 64Mi: a restartable cache takes 1Mi for each of up to 63 sizes of chunks before it starts"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.memory)).compareTo(quantity('1Ti')) <= 0",message="memory must be at most 1Ti a shard; use more shards"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.maxItemSize)).compareTo(quantity('512Ki')) >= 0 && double(int(quantity(string(self.maxItemSize)).asApproximateFloat() / 524288.0)) * 524288.0 == quantity(string(self.maxItemSize)).asApproximateFloat()",message="maxItemSize must be a multiple of 512Ki, memcached's largest chunk"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.maxItemSize)).compareTo(quantity('1Gi')) <= 0",message="maxItemSize must be at most 1Gi"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.maxItemSize)).asApproximateFloat() * 2.0 <= quantity(string(self.memory)).asApproximateFloat()",message="maxItemSize must be at most half of memory: memcached does not start otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits) || quantity(string(self.resources.limits['memory'])).asApproximateFloat() >= quantity(string(self.memory)).asApproximateFloat() * 1.1 + 50331648.0 + 1024.0 * double(self.connections)",message="resources.limits.memory is too small for the cache: it must be at least memory * 1.10 + 48Mi + 1Ki * connections, or the kernel ends memcached when it fills"
type MemcachedSpec struct {
	// Size is the number of shards, each one memcached with its own stable
	// address. 0 keeps the Memcached and runs nothing. Default 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Size *int32 `json:"size,omitempty"`

	// Version of memcached, such as 1.6.45. Left out, it is the operator's
	// default, which moves when the operator is upgraded; given, it is pinned.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[.][0-9]+[.][0-9]+$')",message="version must be three numbers such as 1.6.45; an image tag of another form goes into image"
	Version string `json:"version,omitempty"`

	// Image of memcached. Without a tag or digest the version is the tag. Any
	// image that holds a memcached program will do: the official one, Alpine's, a
	// distroless one. Default docker.io/library/memcached.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9][-a-zA-Z0-9._/:@]*$')",message="image must be an image reference such as registry.example.com/memcached:1.6.45"
	Image string `json:"image,omitempty"`

	// ImagePullPolicy of the memcached image. Default: the one of Kubernetes.
	//
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets are Secrets of this namespace with which images are pulled.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Memory of one shard for items (memcached's -m), in whole mebibytes; a part
	// of one is dropped. The container gets more: see resources. Default 64Mi, which
	// is the least.
	//
	// +optional
	// +kubebuilder:default="64Mi"
	Memory *resource.Quantity `json:"memory,omitempty"`

	// Connections is how many connections a shard admits at once (memcached's
	// -c); some of them memcached uses itself. Default 1024.
	//
	// +optional
	// +kubebuilder:default=1024
	// +kubebuilder:validation:Minimum=256
	// +kubebuilder:validation:Maximum=1000000
	Connections *int32 `json:"connections,omitempty"`

	// Threads is how many threads of a shard serve requests (memcached's -t).
	// Default 4.
	//
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Threads *int32 `json:"threads,omitempty"`

	// MaxItemSize is the largest item that is taken (memcached's -I), in bytes: a
	// multiple of 512Ki. Default 1Mi.
	//
	// +optional
	// +kubebuilder:default="1Mi"
	MaxItemSize *resource.Quantity `json:"maxItemSize,omitempty"`

	// ExtraArgs are further argument words for memcached, one a list item, such as
	// "-v" or "-o" followed by "hash_algorithm=murmur3". What the operator sets itself (memory,
	// connections, threads, item size, addresses, the restartable cache) is
	// refused here.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self[0].startsWith('-')",message="extraArgs must begin with an option such as -v, not with a value"
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.matches('^[!-~]+$'))",message="an extraArgs item is one word of printable characters without spaces: put an option's value into the next item"
	// +kubebuilder:validation:XValidation:rule="!self.exists(a, a.matches('^-[mctIpUlseduaAPhiVSZYB]') || a.matches('^--(memory-limit|conn-limit|threads|max-item-size|port|udp-port|listen|unix-socket|unix-mask|memory-file|daemon|user|pidfile|enable-shutdown|help|license|version|protocol|enable-sasl|enable-ssl|auth-file)($|=)'))",message="extraArgs must not hold what the operator sets itself: use spec.memory, connections, threads, maxItemSize; ports, addresses, protocol, user, daemon mode, restartable cache, TLS and authentication are the operator's"
	// +kubebuilder:validation:XValidation:rule="!self.exists(a, a.startsWith('-') && !a.matches('^-(v{1,3}|[CLMFXWkr]|[fnRbDo].*)$') && !a.matches('^--(verbose|disable-cas|enable-largepages|disable-evictions|disable-flush-all|disable-dumping|disable-watch|lock-memory|enable-coredumps|slab-growth-factor|slab-min-size|max-reqs-per-event|listen-backlog|extended)(=.+)?$'))",message="extraArgs holds an option that is not known: write one of memcached's options in full, one a word"
	// +kubebuilder:validation:XValidation:rule="!self.exists(a, a.contains('ext_') || a.contains('proxy_'))",message="extraArgs must not ask for external storage or the proxy: neither keeps its items over a restart"
	ExtraArgs []string `json:"extraArgs,omitempty"`

	// Resources of the memcached container. Default: a memory limit and request
	// of memory * 1.10 + 48Mi + 1Ki * connections, a CPU request of 100m, and no CPU limit,
	// which would throttle a shard under load.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// NodeSelector picks the nodes on which shards may run.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations let shards run on tainted nodes.
	//
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Affinity of the shards' pods. Unless podAntiAffinity or
	// topologySpreadConstraints are given, shards are kept in different zones and on
	// different nodes as far as there are any.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// TopologySpreadConstraints of the shards' pods, in place of the default that
	// affinity tells of.
	//
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PriorityClassName of the shards' pods.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// PodLabels are further labels of the shards' pods.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('app.kubernetes.io/') || k.startsWith('cache.memcached-operator.io/'))",message="podLabels must not hold labels of app.kubernetes.io/ or cache.memcached-operator.io/: they are the operator's"
	PodLabels map[string]string `json:"podLabels,omitempty"`

	// PodAnnotations are further annotations of the shards' pods.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('cache.memcached-operator.io/'))",message="podAnnotations must not hold annotations of cache.memcached-operator.io/: they are the operator's"
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`

	// UpdateStrategy says how a change of the spec reaches the shards that run: one
	// at a time, with their items wherever memcached can keep them.
	//
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// Hashing says how the clients choose a key's shard. The operator needs it only to
	// bring a snapshot into another number of shards.
	//
	// +optional
	Hashing *Hashing `json:"hashing,omitempty"`

	// Bootstrap fills the shards of a new Memcached from a snapshot before they serve.
	// It holds for the shards that are there at first, and does nothing later.
	//
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`

	// Backup says how the operator takes a backup on its own account, which
	// deletionPolicy may ask for. MemcachedBackups are independent of it.
	//
	// +optional
	Backup *FinalBackup `json:"backup,omitempty"`

	// DeletionPolicy says what happens when the Memcached is deleted: Delete ends it at
	// once, Backup takes a backup as spec.backup says, and ends it after that, or after
	// spec.backup.deadline. Default Delete.
	//
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Rewarm fills a shard that was lost unplanned, as with its node, from the newest
	// MemcachedBackup of this Memcached, while it serves. Default: it stays empty.
	//
	// +optional
	Rewarm *Rewarm `json:"rewarm,omitempty"`

	// Paused stops the operator from changing anything of this Memcached. The
	// shards go on serving and the status goes on telling.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Unreadable says which of the fields could not be read, and why; they are
	// missing here. The operator changes nothing then. It is never written.
	Unreadable string `json:"-"`
}

// UpdateStrategy says how a change reaches the shards that run.
type UpdateStrategy struct {
	// MinSecondsBetweenShards is the least time, in seconds, from the change of one
	// shard to that of the next. Default 0.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	MinSecondsBetweenShards *int32 `json:"minSecondsBetweenShards,omitempty"`

	// WhenNotWarm says what to do when a shard that was to keep its items comes
	// back without them: Stop takes that shard back to what it was and leaves the
	// others alone, Continue goes on to the next. Default Stop.
	//
	// +optional
	// +kubebuilder:default=Stop
	WhenNotWarm UpdateAction `json:"whenNotWarm,omitempty"`

	// MaintenanceWindows are the times at which a shard's change may begin. None
	// is any time. A change that went wrong is taken back at any time.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MaintenanceWindows []MaintenanceWindow `json:"maintenanceWindows,omitempty"`

	// HitRatioGate holds the next shard back until the clients of the one before
	// find as much as they did. None: no shard waits for it.
	//
	// +optional
	HitRatioGate *HitRatioGate `json:"hitRatioGate,omitempty"`
}

// UpdateAction is what to do with an update that does not go as it should.
//
// +kubebuilder:validation:Enum=Stop;Continue
type UpdateAction string

// The actions.
const (
	ActionStop     UpdateAction = "Stop"
	ActionContinue UpdateAction = "Continue"
)

// MaintenanceWindow is a time that comes back each week.
type MaintenanceWindow struct {
	// Days of the week on which the window begins. None is every day.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	Days []Weekday `json:"days,omitempty"`

	// Start is the time of day at which the window begins, such as 02:00.
	//
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start"`

	// DurationMinutes is how long the window is open, in minutes; it may reach into
	// the next day.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1440
	DurationMinutes int32 `json:"durationMinutes"`

	// TimeZone of Start, such as Europe/Berlin. Default UTC.
	//
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+/-]*$`
	TimeZone string `json:"timeZone,omitempty"`
}

// Weekday is a day of the week in English.
//
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type Weekday string

// HitRatioGate compares a shard's hit ratio before and after its change.
type HitRatioGate struct {
	// Percent of the hit ratio before that has to be reached again. Default 90.
	//
	// +optional
	// +kubebuilder:default=90
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`

	// MinRequests is how many gets a ratio must come of to count. A shard that had
	// fewer in the minute before its change is not waited for. Default 1000.
	//
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	MinRequests *int32 `json:"minRequests,omitempty"`

	// TimeoutSeconds is how long to wait, in seconds. Default 600.
	//
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// WhenTimedOut says what to do then: Stop waits on and asks for a person,
	// Continue goes on to the next shard. Default Stop.
	//
	// +optional
	// +kubebuilder:default=Stop
	WhenTimedOut UpdateAction `json:"whenTimedOut,omitempty"`
}

// Hashing says how the clients choose a key's shard.
type Hashing struct {
	// Ring is the function: Ketama as libmemcached computes it, Jump as the clients of
	// Grafana's dskit, Rendezvous as pymemcache's HashClient, Modulo (crc32) as
	// gomemcache.
	Ring Ring `json:"ring"`

	// ServerName is how the clients spell a server, which Ketama and Rendezvous hash,
	// with {shard} for a shard's name and {namespace}. Default the form in
	// status.servers, {shard}.{namespace}.svc:11211.
	//
	// +optional
	// +kubebuilder:default="{shard}.{namespace}.svc:11211"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.contains('{shard}')",message="serverName must contain {shard}, which each shard's name takes the place of"
	ServerName string `json:"serverName,omitempty"`
}

// Ring is a function from keys to shards.
//
// +kubebuilder:validation:Enum=Ketama;Jump;Rendezvous;Modulo
type Ring string

// The rings.
const (
	RingKetama     Ring = "Ketama"
	RingJump       Ring = "Jump"
	RingRendezvous Ring = "Rendezvous"
	RingModulo     Ring = "Modulo"
)

// Bootstrap says what a new Memcached is filled from.
//
// +kubebuilder:validation:XValidation:rule="has(self.backup) != has(self.snapshot)",message="a bootstrap is either from a backup or from a snapshot"
type Bootstrap struct {
	// Backup whose snapshot it is.
	//
	// +optional
	Backup *BackupReference `json:"backup,omitempty"`

	// Snapshot that it is, of another cluster for example.
	//
	// +optional
	Snapshot *SnapshotSource `json:"snapshot,omitempty"`

	// Deadline after which the shards serve, warm or not. Default 10m.
	//
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('24h')",message="deadline must be from 10s to 24h"
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// MaxAge of the snapshot: with an older one the shards start empty. Default none.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="maxAge must be positive"
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`

	// MaxTTL is the longest that a restored item may live. Default none.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="maxTTL must be at least 1s"
	MaxTTL *metav1.Duration `json:"maxTTL,omitempty"`
}

// FinalBackup says how a backup is taken before a Memcached goes.
type FinalBackup struct {
	// Store that the snapshot goes to.
	Store SnapshotStore `json:"store"`

	// RateLimit bounds what the copy asks of each shard. A gentle one is the
	// default.
	//
	// +optional
	// +kubebuilder:default={}
	RateLimit *RateLimit `json:"rateLimit,omitempty"`

	// Deadline after which the Memcached goes without it. Default 30m.
	//
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('24h')",message="deadline must be from 10s to 24h"
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// DeletionPolicy says what happens when a Memcached is deleted.
//
// +kubebuilder:validation:Enum=Delete;Backup
type DeletionPolicy string

// The policies.
const (
	DeletionDelete DeletionPolicy = "Delete"
	DeletionBackup DeletionPolicy = "Backup"
)

// FinalizerBackup keeps a Memcached until its last backup has ended.
const FinalizerBackup = "cache.memcached-operator.io/backup"

// Rewarm says when a lost shard is filled again.
type Rewarm struct {
	// MaxAge of the backup: an older one is not used. Default 24h.
	//
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="maxAge must be positive"
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`

	// MaxTTL is the longest that a restored item may live. Default none.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="maxTTL must be at least 1s"
	MaxTTL *metav1.Duration `json:"maxTTL,omitempty"`
}

// MemcachedStatus is what the operator saw last.
type MemcachedStatus struct {
	// ObservedGeneration is the generation of the spec that this status answers.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase says in one word how the Memcached is, for people; programs read the
	// conditions.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Size is the number of shards that exist.
	//
	// +optional
	Size int32 `json:"size"`

	// ReadySize is the number of shards that serve.
	//
	// +optional
	ReadySize int32 `json:"readySize"`

	// Ready is ReadySize of the asked-for size, such as 2/3.
	//
	// +optional
	Ready string `json:"ready,omitempty"`

	// Version is the version that new shards get; each shard tells its own.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Image is the image that new shards get.
	//
	// +optional
	Image string `json:"image,omitempty"`

	// Selector is the label selector of the shards' pods, for the scale
	// subresource.
	//
	// +optional
	Selector string `json:"selector,omitempty"`

	// Nodes are the names of the pods that hold the shards, by ordinal.
	//
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`

	// Servers are the addresses for a client's configuration, as host:port, by
	// ordinal. An address stays with its shard whichever pod holds it.
	//
	// +optional
	// +listType=atomic
	Servers []string `json:"servers,omitempty"`

	// Update tells how far a change of the spec has come; absent when every shard is
	// as it was asked for.
	//
	// +optional
	Update *UpdateStatus `json:"update,omitempty"`

	// Revisions are, by the name of a shard, a hash of what was asked of its pod when
	// its start was told. They are not among what shards tell since some releases of
	// OLM v1 refuse any change below a list.
	//
	// +optional
	Revisions map[string]string `json:"revisions,omitempty"`

	// Shards tell each shard's state, by ordinal.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	Shards []ShardStatus `json:"shards,omitempty"`

	// Bootstrap tells how the shards were filled before they served; absent when
	// spec.bootstrap was not given at first.
	//
	// +optional
	Bootstrap *BootstrapStatus `json:"bootstrap,omitempty"`

	// Conditions are Available, Progressing and Degraded, always all three.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BootstrapStatus tells how the shards of a new Memcached were filled.
type BootstrapStatus struct {
	// Restore is the MemcachedRestore that fills them.
	Restore string `json:"restore"`

	// Phase is Running while the shards do not serve yet, Complete once they were
	// filled, and Failed when they were not, or not in time.
	Phase RunPhase `json:"phase"`

	// Deadline at which the shards serve, warm or not.
	Deadline metav1.Time `json:"deadline"`

	// Message says it in a sentence.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// UpdateStatus tells how far a change of the spec has come.
type UpdateStatus struct {
	// Revision is a hash of what the spec asks of a pod.
	Revision string `json:"revision"`

	// Updated is how many shards are as the spec asks.
	Updated int32 `json:"updated"`

	// Shard that is being changed, or is the next to be.
	//
	// +optional
	Shard string `json:"shard,omitempty"`

	// Step is what is done to the shard, or would be.
	//
	// +optional
	Step string `json:"step,omitempty"`

	// Gate that holds the step back; empty while it is done.
	//
	// +optional
	Gate string `json:"gate,omitempty"`

	// Items that the shards which were changed in place hold after it.
	//
	// +optional
	Items int64 `json:"items,omitempty"`

	// ItemsBefore that they held before it.
	//
	// +optional
	ItemsBefore int64 `json:"itemsBefore,omitempty"`

	// Since when this shard has been at this step and gate.
	Since metav1.Time `json:"since"`

	// Message says it in a sentence.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ShardStatus is the state of one shard.
type ShardStatus struct {
	// Name of the shard, its ReplicaSet and its Service: <memcached>-<ordinal>.
	Name string `json:"name"`

	// Pod that holds the shard; empty while there is none.
	//
	// +optional
	Pod string `json:"pod,omitempty"`

	// Node on which the pod runs.
	//
	// +optional
	Node string `json:"node,omitempty"`

	// Ready says whether the shard serves.
	Ready bool `json:"ready"`

	// Version that memcached itself reports; empty while it is not known.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Current is false when the pod was made from an older spec.
	Current bool `json:"current"`

	// Start is Warm when memcached last started with its items, Cold when it
	// started empty, and empty while that is not known. While a new pod comes up it
	// still tells of the one before.
	//
	// +optional
	Start StartResult `json:"start,omitempty"`

	// ContainerID of the start that Version, Start and the fields below tell of.
	//
	// +optional
	ContainerID string `json:"containerID,omitempty"`

	// Restart is the value of the pod's restart annotation at that start.
	//
	// +optional
	Restart string `json:"restart,omitempty"`

	// StartedAt is when memcached last became ready.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// Items that memcached held right after its last start.
	//
	// +optional
	Items int64 `json:"items,omitempty"`

	// ItemsBefore that memcached held when it was last saved.
	//
	// +optional
	ItemsBefore int64 `json:"itemsBefore,omitempty"`

	// Message says why the shard does not serve, or is not as it was asked for.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// Memcached is a cluster of memcached shards that keeps its items.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size,selectorpath=.status.selector
// +kubebuilder:resource:shortName=mc,categories=all
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".status.version",description="Version that new shards get"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.ready",description="Shards that serve, of those asked for"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type==\"Available\")].message"
// +kubebuilder:printcolumn:name="Update",type=string,priority=1,JSONPath=".status.update.message"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name becomes that of Services: it must consist of lower case letters, digits and '-', start with a letter and end with a letter or digit"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name must have at most 52 characters: the shard's ordinal is added to it, and the whole must fit a Service's name"
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec MemcachedSpec `json:"spec"`
	// +optional
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedList is a list of Memcacheds.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}

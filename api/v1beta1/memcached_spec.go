package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// MemcachedSpec is the desired state of a cache.
//
// The API server rejects values that are invalid by themselves. Problems that depend on
// more than this object, such as an image that can't be pulled, appear in the conditions.
//
// A group that is empty means the same as one that is absent, and what can be switched has a mode:
// a group without one is off, unless the mode has a default.
//
// +kubebuilder:validation:XValidation:rule="quantity(string(self.memory)).compareTo(quantity('64Mi')) >= 0",message="memory must be at least 64Mi: a smaller shard would use more memory for itself than for items"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.memory)).compareTo(quantity('1Ti')) <= 0",message="memory must be at most 1Ti per shard; use more shards"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.config.maxItemSize)).asApproximateFloat() * 2.0 <= quantity(string(self.memory)).asApproximateFloat()",message="config.maxItemSize must be at most half of memory: memcached does not start otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits) || quantity(string(self.resources.limits['memory'])).asApproximateFloat() >= quantity(string(self.memory)).asApproximateFloat() * 1.1 + 83886080.0 + (!has(self.tls) || !has(self.tls.mode) || self.tls.mode == 'Disabled' ? 8192.0 : self.tls.mode == 'Permissive' ? 57344.0 : 32768.0) * double(self.config.maxConnections)",message="resources.limits.memory is too small for the cache: it must be at least memory * 1.10 + 80Mi + 8Ki * config.maxConnections, with TLS 32Ki instead of 8Ki, and 56Ki with tls.mode Permissive; otherwise the kernel kills memcached when the cache fills"
// +kubebuilder:validation:XValidation:rule="self.deletionPolicy != 'Backup' || has(self.backup) && has(self.backup.final)",message="deletionPolicy Backup requires backup.final: set backup.final.store to where the backup goes"
// +kubebuilder:validation:XValidation:rule="!has(self.backup) || !has(self.backup.bootstrap) || has(oldSelf.backup) && has(oldSelf.backup.bootstrap) && self.backup.bootstrap == oldSelf.backup.bootstrap",message="backup.bootstrap fills the shards of a new Memcached only: it can be removed, but not added or changed; to fill the shards now, create a MemcachedRestore"
type MemcachedSpec struct {
	// Size is the number of shards, each one memcached with its own stable address. Default 1; 0 keeps
	// only the Memcached. Changing it adds or removes the shards with the highest ordinals and restarts
	// no other. Clients then look for some keys on other shards: about 1 in size keys with Ketama, Jump
	// and Rendezvous, nearly all with Modulo.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	Size *int32 `json:"size,omitempty"`

	// Version of memcached, such as 1.6.45. Default: the operator's default version, which can change
	// when the operator is upgraded; set it to pin the version. Changing it recreates each shard's
	// container in its pod and keeps the items within a release series such as 1.6.x. A version of
	// another release series replaces the pods and requires updateStrategy.crossSeriesUpgrade.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[.][0-9]+[.][0-9]+$')",message="version must be three numbers such as 1.6.45; put an image tag of another form into pod.image"
	Version string `json:"version,omitempty"`

	// Memory that each shard has for items, such as 4Gi: as many as a memcached with the same -m stores.
	// It is rounded down to whole mebibytes; the container's limit is higher: see resources. Default and
	// minimum 64Mi. Changing it replaces each shard's pod by one that receives its items, the most
	// recently used ones if they don't all fit.
	//
	// +optional
	// +kubebuilder:default="64Mi"
	Memory *resource.Quantity `json:"memory,omitempty"`

	// Resources of the memcached container. Default: a memory limit and request of memory * 1.10 + 80Mi
	// + 8Ki * config.maxConnections, with TLS 32Ki or 56Ki instead of 8Ki; a CPU request of 100m, and no
	// CPU limit, which would throttle a shard under load. Changing CPU and memory resizes the running
	// pods and nothing restarts; where Kubernetes can't do that, the pods are replaced.
	//
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`

	// Config of memcached itself: connections, threads, item size, further options.
	//
	// +optional
	// +kubebuilder:default={}
	Config MemcachedConfig `json:"config,omitzero"`

	// Pod configures the shards' pods: image, labels, nodes, what they run as.
	//
	// +optional
	Pod MemcachedPod `json:"pod,omitzero"`

	// Access configures who reaches the shards and how clients find them: network policy, addresses
	// outside the cluster, discovery, binding, hashing.
	//
	// +optional
	Access MemcachedAccess `json:"access,omitzero"`

	// Scaling configures what happens to the items of the keys that move to other shards when size changes. It
	// also uses access.hashing.
	// Changing it restarts nothing. Requires release 1.1.0 or newer.
	//
	// +optional
	Scaling ScalingSpec `json:"scaling,omitzero"`

	// TLS encrypts the connections of clients with the certificate of a Secret. Default: connections are
	// not encrypted. Changing it restarts memcached and keeps the items. It raises the default of
	// resources: where Kubernetes can't resize a running pod, the pod is replaced.
	//
	// +optional
	TLS TLSSpec `json:"tls,omitzero"`

	// Auth requires that clients log in with a user and a password of a Secret. Default: every client
	// that can connect can use the shards. Changing it restarts memcached and keeps the items.
	//
	// +optional
	Auth AuthSpec `json:"auth,omitzero"`

	// UpdateStrategy configures how changes of the spec roll out, one shard at a time, and what happens
	// to the items of a pod that is replaced. Changing it applies from the next shard on and restarts
	// nothing.
	//
	// +optional
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitzero"`

	// Backup configures the backup before deletion, and what new and lost shards are filled from.
	// Backups themselves are MemcachedBackups and MemcachedScheduledBackups.
	//
	// +optional
	Backup BackupPolicy `json:"backup,omitzero"`

	// Monitoring configures what Prometheus reads of the shards, where the cluster has the CRDs of
	// prometheus-operator. Changing it restarts nothing.
	//
	// +optional
	Monitoring MonitoringSpec `json:"monitoring,omitzero"`

	// DeletionPolicy is what happens when the Memcached is deleted: Delete deletes the shards
	// immediately, Backup takes the backup that backup.final configures first. If that isn't complete
	// by its deadline, backup.final.onFailure applies. Default Delete. Changing it restarts nothing and
	// applies immediately, also while the Memcached is being deleted.
	//
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Paused stops the operator from changing anything that belongs to this Memcached. The shards keep
	// serving, the operator keeps updating the status, and a deleted pod is still recreated by its
	// ReplicaSet. Default false.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// ResourceRequirements are the resources of the memcached container.
//
// The rules reject quantities such as 1e1.5, which match the schema's pattern and which
// resource.Quantity can't decode: one such object would make the list of all Memcacheds
// undecodable. The rules' cost limits the number of resources to 8.
type ResourceRequirements struct {
	// Limits are the maximum amounts that the container can use, such as memory: 2Gi.
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

// MemcachedConfig is the configuration of memcached itself.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxItemSize) || quantity(string(self.maxItemSize)).compareTo(quantity('512Ki')) >= 0 && double(int(quantity(string(self.maxItemSize)).asApproximateFloat() / 524288.0)) * 524288.0 == quantity(string(self.maxItemSize)).asApproximateFloat()",message="maxItemSize must be a multiple of 512Ki, memcached's largest chunk"
// +kubebuilder:validation:XValidation:rule="!has(self.maxItemSize) || quantity(string(self.maxItemSize)).compareTo(quantity('1Gi')) <= 0",message="maxItemSize must be at most 1Gi"
type MemcachedConfig struct {
	// MaxConnections is how many connections a shard accepts at once (memcached's -c);
	// memcached uses some of them itself. Default 1024. Changing it restarts memcached and
	// keeps the items. It changes the default of resources too: where Kubernetes can't resize
	// a running pod, the pod is replaced.
	//
	// +optional
	// +kubebuilder:default=1024
	// +kubebuilder:validation:Minimum=256
	// +kubebuilder:validation:Maximum=1000000
	MaxConnections *int32 `json:"maxConnections,omitempty"`

	// Threads is how many threads of each shard serve requests (memcached's -t). Default 4.
	// Changing it restarts memcached and keeps the items.
	//
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Threads *int32 `json:"threads,omitempty"`

	// MaxItemSize is the size of the largest item that memcached stores (memcached's -I), in
	// bytes: a multiple of 512Ki, such as 2Mi. Default 1Mi. Changing it replaces each shard's
	// pod by one that receives its items, except for those that are too large for it.
	//
	// +optional
	// +kubebuilder:default="1Mi"
	MaxItemSize *resource.Quantity `json:"maxItemSize,omitempty"`

	// ExtraArgs are further arguments of memcached, one word per list item, such as "-v", or "-o" and
	// "hash_algorithm=murmur3". Degraded is ExtraArgsInvalid for an option that is unknown or that the
	// operator sets. Default: none. Changing them restarts memcached and keeps the items, except for -f,
	// -n, -C and the slab sizes of -o: they replace each shard's pod. With -C, shards hand over no items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self[0].startsWith('-')",message="extraArgs must begin with an option such as -v, not with a value"
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.matches('^[!-~]+$'))",message="each extraArgs item must be one word of printable characters without spaces: put an option's value into the next item"
	ExtraArgs []string `json:"extraArgs,omitempty"`
}

// MemcachedPod configures the shards' pods.
type MemcachedPod struct {
	// Image of memcached, such as registry.example.com/memcached:1.6.45-alpine. Without a
	// tag or digest, version is the tag. Any image that contains a memcached executable
	// works. Default docker.io/library/memcached. Changing it has the effect of changing
	// version; before, the operator checks the image on every node that hosts a shard.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9][-a-zA-Z0-9._/:@]*$')",message="image must be an image reference such as registry.example.com/memcached:1.6.45"
	Image string `json:"image,omitempty"`

	// ImagePullPolicy of the memcached image. Default: Kubernetes' default for the image's
	// tag. Changing it applies to pods that are created later.
	//
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets are Secrets in this namespace that the kubelet uses to pull images.
	// Changing them applies to pods that are created later. To change a password, change the
	// Secret.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Metadata adds labels and annotations to the shards' pods, and to the pods that check images and copy
	// backups. Default: none. Changing it updates the running pods; nothing restarts.
	//
	// +optional
	Metadata Metadata `json:"metadata,omitzero"`

	Scheduling `json:",inline"`

	// SecurityContext is what the containers run as. With every value, they comply with the restricted
	// level of Pod Security. Changing it replaces each shard's pod.
	//
	// +optional
	SecurityContext SecurityContext `json:"securityContext,omitzero"`

	// ServiceAccountName is the service account of the shards' pods, such as one with image pull Secrets
	// or an identity in a service mesh, and of Jobs whose store has none. The pods get no token of it.
	// Default: default. Changing it replaces each shard's pod.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// NodeLossTolerationSeconds is how long a shard's pod stays on a node that doesn't respond or isn't
	// ready, in seconds, before Kubernetes replaces it. tolerations with these taints take precedence.
	// Default 60. Changing it applies to pods that are created later.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	NodeLossTolerationSeconds *int32 `json:"nodeLossTolerationSeconds,omitempty"`
}

// Metadata is added to objects of the shards.
type Metadata struct {
	// Labels to add, such as team: search. At most 32.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="labels must have keys of at most 317 and values of at most 63 characters"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('app.kubernetes.io/') || k.startsWith('cache.memcached-operator.io/'))",message="labels must not contain labels of app.kubernetes.io/ or cache.memcached-operator.io/: the operator manages them"
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations to add, such as example.com/owner: search. At most 32 with 8192 characters in total,
	// since each shard has several copies of them.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(self[k])).sum() <= 8192",message="annotations must have at most 8192 characters in total: each shard has several copies of them"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('cache.memcached-operator.io/'))",message="annotations must not contain annotations of cache.memcached-operator.io/: the operator manages them"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Scheduling selects nodes for the shards' pods. Changing it replaces each shard's pod, since a pod can't move
// to another node.
type Scheduling struct {
	// NodeSelector selects the nodes that shards may run on by their labels, such as
	// disktype: ssd. Default: all nodes.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations allow shards to run on tainted nodes. Default: those that Kubernetes adds to
	// every pod, and those of nodeLossTolerationSeconds.
	//
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Affinity of the shards' pods. Default: without podAntiAffinity and
	// topologySpreadConstraints, shards prefer different zones and different nodes.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// TopologySpreadConstraints of the shards' pods. They replace the default that affinity
	// describes. One without labelSelector counts this Memcached's shards.
	//
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PriorityClassName of the shards' pods. Default: the cluster's default priority class.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// SecurityContext is what the containers of the shards' pods run as.
type SecurityContext struct {
	// RunAsUser is the user ID that the containers run as. Default 11211; on OpenShift, the platform chooses
	// it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// RunAsGroup is the group ID that the containers run as. Default 11211; on OpenShift, the platform
	// chooses it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// SELinuxOptions of the containers, such as level: s0:c1,c2. Default: the container runtime chooses
	// them.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.user) && !has(self.role) && (!has(self.type) || self.type in ['container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t'])",message="securityContext.seLinuxOptions can have a level, and a type that Pod Security allows: container_t, container_init_t, container_kvm_t or container_engine_t"
	SELinuxOptions *corev1.SELinuxOptions `json:"seLinuxOptions,omitempty"`

	// SeccompProfile of the containers. Default: type RuntimeDefault. Unconfined is rejected.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.type == (has(self.localhostProfile) ? 'Localhost' : 'RuntimeDefault')",message="securityContext.seccompProfile must have type RuntimeDefault, or type Localhost and a localhostProfile"
	SeccompProfile *corev1.SeccompProfile `json:"seccompProfile,omitempty"`

	// AppArmorProfile of the containers. Default: the container runtime's profile, where nodes support
	// AppArmor. Unconfined is rejected.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.type == (has(self.localhostProfile) ? 'Localhost' : 'RuntimeDefault')",message="securityContext.appArmorProfile must have type RuntimeDefault, or type Localhost and a localhostProfile"
	AppArmorProfile *corev1.AppArmorProfile `json:"appArmorProfile,omitempty"`
}

// MemcachedAccess configures who reaches the shards, and how clients find them.
//
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || self.ipFamilies.size() < 2 || (has(self.ipFamilyPolicy) && self.ipFamilyPolicy != 'SingleStack')",message="two of access.ipFamilies require access.ipFamilyPolicy PreferDualStack or RequireDualStack"
type MemcachedAccess struct {
	// NetworkPolicy configures which clients can connect to the shards, where the network plugin
	// enforces NetworkPolicies. Default: the pods of this namespace. Changing it restarts nothing;
	// it can close connections of clients that it no longer admits.
	//
	// +optional
	NetworkPolicy NetworkPolicySpec `json:"networkPolicy,omitzero"`

	// External gives the shards addresses outside the cluster. Default: clients inside the cluster
	// only. Changing it restarts nothing.
	//
	// +optional
	External ExternalSpec `json:"external,omitzero"`

	// IPFamilyPolicy of all Services: SingleStack, PreferDualStack or RequireDualStack, as in a Service.
	// Default: SingleStack. Changing it adds or removes the second address of each Service, and restarts
	// nothing. status.servers has names, which then resolve to both.
	//
	// +optional
	// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
	IPFamilyPolicy corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`

	// IPFamilies of all Services, such as [IPv6, IPv4]. Default: the cluster's first family, and with two
	// stacks its second one. Changing the second one restarts nothing. Kubernetes can't change the first
	// one of a Service: nothing changes then until you delete the Services, or write the former one.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self[0] != self[1]",message="access.ipFamilies must name each family once"
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`

	// ServiceMetadata adds labels to the Services, and annotations to all but those of external, such
	// as those that a service mesh or DNS reads. Default: none. Changing it restarts nothing.
	//
	// +optional
	ServiceMetadata Metadata `json:"serviceMetadata,omitzero"`

	// Discovery configures an endpoint from which clients with auto discovery read the addresses of
	// the shards, as from Amazon ElastiCache. Default: no endpoint. Changing it restarts nothing.
	//
	// +optional
	Discovery DiscoverySpec `json:"discovery,omitzero"`

	// Binding creates a Secret with what a workload needs to connect, for the Service Binding
	// Specification. Default: no Secret. Changing it restarts nothing.
	//
	// +optional
	Binding BindingSpec `json:"binding,omitzero"`

	// Hashing describes how the clients choose the shard of a key. With it, items move when size changes,
	// and a snapshot can be restored into another number of shards; without it such a restore fails.
	// Changing it restarts nothing. While items move, it starts their copy again, or stops it.
	//
	// +optional
	Hashing *Hashing `json:"hashing,omitempty"`
}

// NetworkPolicySpec configures which clients can connect to the shards.
//
// +kubebuilder:validation:XValidation:rule="!has(self.allowedClients) || self.mode == 'Restricted'",message="networkPolicy.allowedClients requires mode Restricted: remove allowedClients, or set mode to Restricted"
type NetworkPolicySpec struct {
	// Mode is who can connect to port 11211 of the shards: Restricted admits allowedClients, Open
	// admits everyone, even in a namespace whose default policy denies all traffic. With Disabled,
	// the operator creates no NetworkPolicy and deletes its own, so that only your policies apply,
	// which have to admit the operator to the agents' port 11212. Default Restricted. Changing it
	// restarts nothing.
	//
	// +optional
	// +kubebuilder:default=Restricted
	Mode NetworkPolicyMode `json:"mode,omitempty"`

	// AllowedClients are the clients that mode Restricted admits, as in the field from of a
	// NetworkPolicy: pods of this namespace (podSelector), pods of other namespaces
	// (namespaceSelector, with or without podSelector), or addresses (ipBlock). Default: all pods of this
	// namespace, which a list has to name again with "podSelector: {}". Changing them restarts nothing.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, has(c.ipBlock) != (has(c.podSelector) || has(c.namespaceSelector)))",message="each of networkPolicy.allowedClients must be either an ipBlock, or a podSelector, a namespaceSelector or both"
	AllowedClients []networkingv1.NetworkPolicyPeer `json:"allowedClients,omitempty"`

	// AllowedScrapers can connect to the port of the metrics, 9150, as in the field from of a
	// NetworkPolicy. They have no effect with mode Disabled. Default: the pods of this namespace and
	// those of the namespaces in the operator's setting MONITORING_NAMESPACES; none if monitoring.mode is
	// Disabled. A list replaces the default. Changing them restarts nothing.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, has(c.ipBlock) != (has(c.podSelector) || has(c.namespaceSelector)))",message="each of networkPolicy.allowedScrapers must be either an ipBlock, or a podSelector, a namespaceSelector or both"
	AllowedScrapers []networkingv1.NetworkPolicyPeer `json:"allowedScrapers,omitempty"`
}

// NetworkPolicyMode is who can connect to the shards.
//
// +kubebuilder:validation:Enum=Restricted;Open;Disabled
type NetworkPolicyMode string

// The modes of the network policy.
const (
	NetworkPolicyRestricted NetworkPolicyMode = "Restricted"
	NetworkPolicyOpen       NetworkPolicyMode = "Open"
	NetworkPolicyDisabled   NetworkPolicyMode = "Disabled"
)

// ExternalSpec gives the shards addresses outside the cluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.mode) || !(has(self.sourceRanges) || has(self.annotations) || has(self.loadBalancerClass) || has(self.externalTrafficPolicy) || has(self.allocateNodePorts))",message="the fields of external have no effect without a mode: set external.mode to LoadBalancer"
type ExternalSpec struct {
	// Mode LoadBalancer gives each shard a Service of type LoadBalancer for port 11211, with the name of
	// the shard and -ext appended; status.external has the addresses. Combine it with tls and auth, and
	// admit the clients with networkPolicy. Default Disabled. Changing it creates or deletes these
	// Services; the addresses inside the cluster stay, and nothing restarts.
	//
	// +optional
	Mode ExternalMode `json:"mode,omitempty"`

	// SourceRanges are the addresses of the clients that the load balancers admit, such as
	// 192.0.2.0/24, if the controller of your cloud supports it. Default: all addresses. Changing them
	// restarts nothing.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Pattern=`^[0-9a-fA-F:.]+/[0-9]{1,3}$`
	// +kubebuilder:validation:items:MaxLength=43
	SourceRanges []string `json:"sourceRanges,omitempty"`

	// Annotations of these Services, which configure the load balancers as your cloud documents it. In
	// their values, {shard} is replaced by the shard's name and {ordinal} by its number, such as
	// {shard}.example.com. At most 32 with 8192 characters in total. Default: none. Changing them
	// restarts nothing.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(self[k])).sum() <= 8192",message="external.annotations must have at most 8192 characters in total"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('cache.memcached-operator.io/'))",message="external.annotations must not contain annotations of cache.memcached-operator.io/: the operator manages them"
	Annotations map[string]string `json:"annotations,omitempty"`

	// LoadBalancerClass selects which controller provides the load balancers, such as
	// service.k8s.aws/nlb. Default: the cluster's default. Kubernetes can't change it: the operator deletes
	// and creates these Services, so that the shards get other external addresses. Nothing restarts.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	LoadBalancerClass string `json:"loadBalancerClass,omitempty"`

	// ExternalTrafficPolicy Local sends connections to the node of the shard only and keeps the
	// addresses of clients, so that an ipBlock of networkPolicy can name them. Cluster lets every node
	// pass connections on, with its own address. Default Cluster. Changing it can close external
	// connections, and restarts nothing.
	//
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// AllocateNodePorts opens a port for each shard on every node, which sourceRanges doesn't restrict.
	// Set it to false if the load balancers reach pods directly: others have no connection then.
	// Default true. Changing it closes or opens these ports and restarts nothing.
	//
	// +optional
	AllocateNodePorts *bool `json:"allocateNodePorts,omitempty"`
}

// ExternalMode is how clients outside the cluster reach the shards.
//
// +kubebuilder:validation:Enum=LoadBalancer;Disabled
type ExternalMode string

// The modes of external addresses.
const (
	ExternalLoadBalancer ExternalMode = "LoadBalancer"
	ExternalDisabled     ExternalMode = "Disabled"
)

// DiscoverySpec configures an endpoint from which clients read the addresses of the shards.
type DiscoverySpec struct {
	// Mode ElastiCache lets the shards' pods serve the endpoint at port 11211 of the Service that has
	// the name of the Memcached with -discovery appended. Each shard then stores the addresses as an
	// item, too, and the operator deletes a shard that scaling in removes 90 seconds or more after it has
	// removed its address. Default Disabled. Changing it restarts nothing.
	//
	// +optional
	Mode DiscoveryMode `json:"mode,omitempty"`
}

// DiscoveryMode is the protocol of the endpoint.
//
// +kubebuilder:validation:Enum=ElastiCache;Disabled
type DiscoveryMode string

// The modes of discovery.
const (
	DiscoveryElastiCache DiscoveryMode = "ElastiCache"
	DiscoveryDisabled    DiscoveryMode = "Disabled"
)

// IsEnabled reports whether the shards serve the endpoint.
func (d DiscoverySpec) IsEnabled() bool { return d.Mode == DiscoveryElastiCache }

// BindingSpec creates a Secret with what a workload needs to connect.
type BindingSpec struct {
	// Mode Secret creates a Secret that has the name of the Memcached with -binding appended: with the
	// addresses of the shards, and a user with a random password that may log in, also to shards without
	// auth. Disabled keeps the Secret, since the operator can't delete Secrets: delete it to revoke the
	// login. Default Disabled. Changing it restarts nothing.
	//
	// +optional
	Mode BindingMode `json:"mode,omitempty"`
}

// BindingMode is how workloads are bound.
//
// +kubebuilder:validation:Enum=Secret;Disabled
type BindingMode string

// The modes of the binding.
const (
	BindingSecret   BindingMode = "Secret"
	BindingDisabled BindingMode = "Disabled"
)

// IsEnabled reports whether there is a Secret to bind to.
func (b BindingSpec) IsEnabled() bool { return b.Mode == BindingSecret }

// Hashing describes how the clients choose the shard of a key.
type Hashing struct {
	// Algorithm that the clients use: Ketama as in libmemcached, Jump as in the clients of
	// Grafana's dskit, Rendezvous as in pymemcache's HashClient, or Modulo (CRC-32) as in
	// gomemcache.
	//
	// +required
	Algorithm HashAlgorithm `json:"algorithm"`

	// ServerNameTemplate is how the clients write a server's name, which Ketama and
	// Rendezvous hash. {shard} is replaced by the shard's name and {namespace} by the
	// namespace, as in {shard}.{namespace}:11211. Default: the names in status.servers. Changing it
	// has the effects of another algorithm.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.contains('{shard}')",message="serverNameTemplate must contain {shard} as a placeholder for the shard's name"
	ServerNameTemplate string `json:"serverNameTemplate,omitempty"`
}

// HashAlgorithm maps keys to shards.
//
// +kubebuilder:validation:Enum=Ketama;Jump;Rendezvous;Modulo
type HashAlgorithm string

// The hash algorithms.
const (
	HashKetama     HashAlgorithm = "Ketama"
	HashJump       HashAlgorithm = "Jump"
	HashRendezvous HashAlgorithm = "Rendezvous"
	HashModulo     HashAlgorithm = "Modulo"
)

// ScalingSpec configures what happens to the items of the keys that move to other shards.
type ScalingSpec struct {
	// Mode Warm copies the items before status.servers changes, and removes what only one shard has when no client has the
	// former list. It requires access.hashing, a handover mode other than Disabled, at least two shards before and after
	// and, with Modulo, a multiple. Otherwise, and with Cold, the keys that move are missing at first. Default
	// Warm. Cold also stops a change that is in progress.
	//
	// +optional
	// +kubebuilder:default=Warm
	Mode ScalingMode `json:"mode,omitempty"`

	// SwitchSeconds is after how many seconds all clients use a new list in status.servers. Default: 180 with
	// access.discovery. Otherwise the operator waits until you confirm it with the annotation
	// cache.memcached-operator.io/scaled.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	SwitchSeconds *int32 `json:"switchSeconds,omitempty"`

	// ScaleSubresource limits changes of size that are written through /scale, as a HorizontalPodAutoscaler, KEDA and
	// kubectl scale do, and not those of the Memcached itself.
	//
	// +optional
	ScaleSubresource ScaleSubresource `json:"scaleSubresource,omitzero"`
}

// ScaleSubresource limits the changes of the number of shards that are written through /scale.
type ScaleSubresource struct {
	// Directions Out adds shards and removes none: a smaller size has no effect. OutAndIn obeys any size. Default Out.
	//
	// +optional
	// +kubebuilder:default=Out
	Directions ScaleDirections `json:"directions,omitempty"`

	// MaxStep is how many shards a change in which items move adds or removes. If the size differs by more, the next
	// change follows. Default: any number.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	MaxStep *int32 `json:"maxStep,omitempty"`
}

// ScaleDirections is whether shards are added, or added and removed.
//
// +kubebuilder:validation:Enum=Out;OutAndIn
type ScaleDirections string

// The directions of scaling.
const (
	ScaleOut      ScaleDirections = "Out"
	ScaleOutAndIn ScaleDirections = "OutAndIn"
)

// ScalingMode is whether the items of keys that move to other shards move, too.
//
// +kubebuilder:validation:Enum=Warm;Cold
type ScalingMode string

// The modes of scaling.
const (
	ScalingWarm ScalingMode = "Warm"
	ScalingCold ScalingMode = "Cold"
)

// TLSSpec encrypts the connections of clients.
//
// +kubebuilder:validation:XValidation:rule="has(self.mode) || !has(self.secretName) && !has(self.clientCertificates) && !has(self.minTLSVersion)",message="tls has no effect without a mode: set tls.mode to Required or Permissive, or to Disabled"
type TLSSpec struct {
	// Mode is which connections port 11211 accepts: Required accepts TLS only, Permissive both TLS and
	// plain connections while you migrate the clients, which costs each request about 0.1 ms, and Disabled
	// plain connections only. A new cache without it is Disabled; a running one is switched off by
	// Disabled, and not by removing the field. Changing it restarts memcached and keeps the items.
	//
	// +optional
	Mode TLSMode `json:"mode,omitempty"`

	// SecretName is the name of a Secret in this namespace as cert-manager writes it: tls.crt, for the
	// host names of status.servers such as *.default.svc.cluster.local, with its chain, tls.key, and ca.crt for the CA
	// and, with clientCertificates, those of the clients. Default: the name of the Memcached with -tls
	// appended. Changing it replaces each shard's pod; a Secret that changes restarts nothing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="tls.secretName must be the name of a Secret, such as cache-tls"
	SecretName string `json:"secretName,omitempty"`

	// ClientCertificates is whether clients present a certificate that a CA of ca.crt has signed: with
	// Optional, memcached rejects others; with Required, also clients without one. Backups and restores
	// present the certificate of the shards, which must then be valid for clients too. Default None.
	// Changing it restarts memcached and keeps the items.
	//
	// +optional
	ClientCertificates ClientCertificates `json:"clientCertificates,omitempty"`

	// MinTLSVersion is the oldest version of TLS that memcached accepts. Default VersionTLS12. Changing
	// it restarts memcached and keeps the items.
	//
	// +optional
	MinTLSVersion TLSVersion `json:"minTLSVersion,omitempty"`
}

// IsEnabled reports whether connections can be encrypted.
func (t TLSSpec) IsEnabled() bool { return t.Mode == TLSRequired || t.Mode == TLSPermissive }

// AuthSpec requires that clients log in.
//
// +kubebuilder:validation:XValidation:rule="has(self.mode) || !has(self.secretName)",message="auth.secretName has no effect without a mode: set auth.mode to Required, or to Disabled"
type AuthSpec struct {
	// Mode Required admits only clients that log in, Disabled all. A new cache without it is Disabled; a
	// running one is switched off by Disabled, and not by removing the field. Changing it restarts
	// memcached and keeps the items.
	//
	// +optional
	Mode AuthMode `json:"mode,omitempty"`

	// SecretName is the name of a Secret in this namespace with the users: each entry is the name of
	// a user, of the characters a-z, 0-9, '.', '_' and '-', and its value the password, without spaces. At
	// most 7. Default: the name of the Memcached with -auth appended. Changing it replaces each shard's
	// pod; a Secret that changes restarts nothing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="auth.secretName must be the name of a Secret, such as cache-auth"
	SecretName string `json:"secretName,omitempty"`
}

// IsRequired reports whether clients have to log in.
func (a AuthSpec) IsRequired() bool { return a.Mode == AuthRequired }

// AuthMode is whether clients log in.
//
// +kubebuilder:validation:Enum=Required;Disabled
type AuthMode string

// The modes of authentication.
const (
	AuthRequired AuthMode = "Required"
	AuthDisabled AuthMode = "Disabled"
)

// TLSMode is which connections a shard accepts.
//
// +kubebuilder:validation:Enum=Required;Permissive;Disabled
type TLSMode string

// The modes of TLS.
const (
	TLSRequired   TLSMode = "Required"
	TLSPermissive TLSMode = "Permissive"
	TLSDisabled   TLSMode = "Disabled"
)

// ClientCertificates is whether clients present a certificate.
//
// +kubebuilder:validation:Enum=None;Optional;Required
type ClientCertificates string

// The values of ClientCertificates.
const (
	ClientCertificatesNone     ClientCertificates = "None"
	ClientCertificatesOptional ClientCertificates = "Optional"
	ClientCertificatesRequired ClientCertificates = "Required"
)

// TLSVersion is a version of TLS.
//
// +kubebuilder:validation:Enum=VersionTLS12;VersionTLS13
type TLSVersion string

// The versions of TLS, with the names that Kubernetes' components use.
const (
	TLS12 TLSVersion = "VersionTLS12"
	TLS13 TLSVersion = "VersionTLS13"
)

// UpdateStrategy configures how a change of the spec rolls out.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'Handover' || !has(self.handover) || self.handover.mode != 'Disabled'",message="updateStrategy.type Handover requires a handover: set handover.mode to Strict or Available, or type to InPlace"
type UpdateStrategy struct {
	// Type is how a change is applied that would restart memcached, such as another version. InPlace
	// restarts memcached in its pod: it keeps its items, and doesn't answer while it starts. Handover
	// replaces the pod by one that receives its items, and needs room for a second pod; a shard that
	// can't hand over, such as with -C, is updated in place. Default InPlace. Changing it restarts nothing.
	//
	// +optional
	// +kubebuilder:default=InPlace
	Type UpdateType `json:"type,omitempty"`

	// Handover configures what happens to the items of a shard whose pod is replaced: because its
	// node is drained, the pod is evicted or deleted, or a change of the spec requires another pod.
	//
	// +optional
	Handover HandoverSpec `json:"handover,omitzero"`

	// MinPeriodSeconds is the minimum time between the updates of two shards, in seconds.
	// Default 0.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	MinPeriodSeconds *int32 `json:"minPeriodSeconds,omitempty"`

	// OnItemLoss is what happens when a shard that should have kept its items starts without
	// them: Rollback rolls back that shard and leaves the others unchanged, Continue
	// updates the next shard. Default Rollback.
	//
	// +optional
	// +kubebuilder:default=Rollback
	OnItemLoss ItemLossAction `json:"onItemLoss,omitempty"`

	// CrossSeriesUpgrade is whether the operator updates memcached to another release series,
	// such as from 1.6.x to 1.7.x: memcached may not be able to read the items that another
	// release series saved, and a shard may start empty. Forbid changes no shard, Allow rolls the
	// change out. Default Forbid.
	//
	// +optional
	// +kubebuilder:default=Forbid
	CrossSeriesUpgrade CrossSeriesUpgrade `json:"crossSeriesUpgrade,omitempty"`

	// MaintenanceWindows are the times at which the update of a shard may begin. Default: at
	// any time. A rollback may begin at any time.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MaintenanceWindows []MaintenanceWindow `json:"maintenanceWindows,omitempty"`

	// HitRatioGate delays the next shard's update until the hit ratio of the previous shard
	// has recovered. Default: no gate.
	//
	// +optional
	HitRatioGate HitRatioGate `json:"hitRatioGate,omitzero"`
}

// UpdateType is how a change is applied that would restart memcached.
//
// +kubebuilder:validation:Enum=InPlace;Handover
type UpdateType string

// The types of an update.
const (
	UpdateInPlace  UpdateType = "InPlace"
	UpdateHandover UpdateType = "Handover"
)

// HandoverSpec configures what happens to the items of a shard whose pod is replaced.
type HandoverSpec struct {
	// Mode is what the replacement of a pod starts with. Strict: the pod's items; no client reads an older
	// value than the one stored last, and the shard is unavailable for about a second. Available: the
	// items, while both pods serve for 5 seconds or more: clients can read an older value then, and what
	// changes is lost. Disabled: no items. Default Strict. Changing it applies to pods created later.
	//
	// +optional
	// +kubebuilder:default=Strict
	Mode HandoverMode `json:"mode,omitempty"`

	// NodeDrain lets shards leave a node that is about to go before their pods are evicted.
	//
	// +optional
	NodeDrain NodeDrain `json:"nodeDrain,omitzero"`
}

// NodeDrain lets shards leave a node that is about to go.
//
// +kubebuilder:validation:XValidation:rule="has(self.mode) || !has(self.taints)",message="nodeDrain.taints has no effect without a mode: set nodeDrain.mode to Early or Required"
type NodeDrain struct {
	// Mode is what happens when a shard's node is cordoned or gets one of the taints. Early: its shards
	// move to other nodes with their items, one after the other. Required: evictions are also refused
	// until then, unless no other node has room; a cluster autoscaler then removes no node with a
	// shard. Disabled: a shard hands over when its pod is evicted. Default Disabled.
	//
	// +optional
	Mode NodeDrainMode `json:"mode,omitempty"`

	// Taints are the keys of the taints with which a node is about to go. Default: those of the
	// cluster autoscaler, Karpenter, and the termination handlers of AWS and GKE. An example is
	// example.com/spot-interrupted.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=316
	Taints []string `json:"taints,omitempty"`
}

// NodeDrainMode is what happens when the node of a shard is about to go.
//
// +kubebuilder:validation:Enum=Disabled;Early;Required
type NodeDrainMode string

// The modes of a drain.
const (
	NodeDrainDisabled NodeDrainMode = "Disabled"
	NodeDrainEarly    NodeDrainMode = "Early"
	NodeDrainRequired NodeDrainMode = "Required"
)

// DefaultNodeTaints are the default of NodeDrain.Taints.
var DefaultNodeTaints = []string{
	"ToBeDeletedByClusterAutoscaler",
	"karpenter.sh/disrupted",
	"aws-node-termination-handler/spot-itn",
	"aws-node-termination-handler/scheduled-maintenance",
	"aws-node-termination-handler/asg-lifecycle-termination",
	"aws-node-termination-handler/rebalance-recommendation",
	"cloud.google.com/impending-node-termination",
}

// MovesEarly reports whether shards leave a node that is about to go before they are evicted.
func (h HandoverSpec) MovesEarly() bool {
	return h.Mode != HandoverDisabled && (h.NodeDrain.Mode == NodeDrainEarly || h.NodeDrain.Mode == NodeDrainRequired)
}

// HandoverMode is what the replacement of a pod starts with.
//
// +kubebuilder:validation:Enum=Strict;Available;Disabled
type HandoverMode string

// The modes of the handover.
const (
	HandoverStrict    HandoverMode = "Strict"
	HandoverAvailable HandoverMode = "Available"
	HandoverDisabled  HandoverMode = "Disabled"
)

// ItemLossAction is what happens when a shard loses its items in an update.
//
// +kubebuilder:validation:Enum=Rollback;Continue
type ItemLossAction string

// The actions after a loss of items.
const (
	ItemLossRollback ItemLossAction = "Rollback"
	ItemLossContinue ItemLossAction = "Continue"
)

// CrossSeriesUpgrade is whether an update to another release series is allowed.
//
// +kubebuilder:validation:Enum=Forbid;Allow
type CrossSeriesUpgrade string

// The decisions about updates to another release series.
const (
	CrossSeriesForbid CrossSeriesUpgrade = "Forbid"
	CrossSeriesAllow  CrossSeriesUpgrade = "Allow"
)

// MaintenanceWindow is a period that recurs every week.
type MaintenanceWindow struct {
	// Days of the week on which the window opens. Default: every day.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	Days []Weekday `json:"days,omitempty"`

	// Start is the time of day at which the window opens, such as 02:00.
	//
	// +required
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start"`

	// DurationSeconds is how long the window is open, in seconds, such as 7200 for two hours.
	// The window may extend into the next day.
	//
	// +required
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	DurationSeconds int32 `json:"durationSeconds"`

	// TimeZone of start, such as Europe/Berlin. Default UTC.
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

// HitRatioGate compares a shard's hit ratio before and after its update.
//
// +kubebuilder:validation:XValidation:rule="has(self.mode) || !has(self.percent) && !has(self.minRequests) && !has(self.timeoutSeconds)",message="hitRatioGate has no effect without a mode: set hitRatioGate.mode to Stop or Continue"
type HitRatioGate struct {
	// Mode is what happens when the hit ratio has not recovered after timeoutSeconds: Stop keeps waiting
	// and sets Degraded, Continue updates the next shard. With Disabled, the next shard doesn't wait.
	// Default Disabled.
	//
	// +optional
	Mode HitRatioGateMode `json:"mode,omitempty"`

	// Percent of the previous hit ratio that the shard has to reach again. Default 90.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`

	// MinRequests is the minimum number of get requests that a hit ratio is computed from. The gate
	// ignores a shard that had fewer in the minute before its update. Default 1000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinRequests *int32 `json:"minRequests,omitempty"`

	// TimeoutSeconds is how long the operator waits for the hit ratio, in seconds. Default 600.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// IsEnabled reports whether the next shard waits for the hit ratio.
func (g HitRatioGate) IsEnabled() bool {
	return g.Mode == HitRatioGateStop || g.Mode == HitRatioGateContinue
}

// HitRatioGateMode is what happens when a hit ratio does not recover in time.
//
// +kubebuilder:validation:Enum=Stop;Continue;Disabled
type HitRatioGateMode string

// The modes of the gate.
const (
	HitRatioGateStop     HitRatioGateMode = "Stop"
	HitRatioGateContinue HitRatioGateMode = "Continue"
	HitRatioGateDisabled HitRatioGateMode = "Disabled"
)

// BackupPolicy configures the backup before deletion, and what shards are filled from.
type BackupPolicy struct {
	// Final configures the backup that the operator takes when the Memcached is deleted and
	// deletionPolicy is Backup, which requires it. It doesn't affect other backups. Changing it restarts
	// nothing.
	//
	// +optional
	Final *FinalBackup `json:"final,omitempty"`

	// Bootstrap fills the shards of a new Memcached from a snapshot while they serve. Until that is
	// done, the condition Ready is False with reason Bootstrapping. Default: the shards start empty. It
	// can be removed later, but not added or changed; shards that are added later start empty.
	//
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`

	// Refill restores the items of a shard that was lost unexpectedly, for example with its node, while
	// the shard serves. Default: the shard stays empty. Changing it applies to shards that are lost
	// later.
	//
	// +optional
	Refill Refill `json:"refill,omitzero"`
}

// FinalBackup configures the backup that is taken before a Memcached is deleted.
type FinalBackup struct {
	// Store that the snapshot is written to.
	//
	// +required
	Store SnapshotStore `json:"store"`

	// RateLimit limits the load that the backup puts on each shard. Default: 20,000 items and
	// 32 MiB per second.
	//
	// +optional
	// +kubebuilder:default={}
	RateLimit *RateLimit `json:"rateLimit,omitempty"`

	// DeadlineSeconds is how long the deletion waits for the backup until onFailure applies, in seconds. A backup that
	// fails is repeated after a minute, and none may take longer. Default 1800.
	//
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	DeadlineSeconds *int32 `json:"deadlineSeconds,omitempty"`

	// OnFailure is what happens at the deadline without a complete backup: Keep keeps the Memcached, which is Degraded, and
	// repeats the backup until it is complete; Delete deletes the Memcached without it. Default Keep. Changing it restarts
	// nothing and applies immediately, also while the Memcached is being deleted.
	//
	// +optional
	// +kubebuilder:default=Keep
	OnFailure FinalBackupFailure `json:"onFailure,omitempty"`
}

// FinalBackupFailure is what happens when a Memcached has no complete final backup at its deadline.
//
// +kubebuilder:validation:Enum=Keep;Delete
type FinalBackupFailure string

// What happens without a final backup.
const (
	FinalBackupKeep   FinalBackupFailure = "Keep"
	FinalBackupDelete FinalBackupFailure = "Delete"
)

// Bootstrap configures what a new Memcached is filled from.
//
// +kubebuilder:validation:XValidation:rule="has(self.backupRef) != has(self.snapshot)",message="bootstrap requires exactly one of backupRef and snapshot"
type Bootstrap struct {
	// BackupRef is the MemcachedBackup whose snapshot is restored.
	//
	// +optional
	BackupRef *BackupReference `json:"backupRef,omitempty"`

	// Snapshot is restored directly, for example one from another cluster.
	//
	// +optional
	Snapshot *SnapshotSource `json:"snapshot,omitempty"`

	// DeadlineSeconds is how long the restore may take once all shards are ready, in seconds;
	// after that the shards keep what it has restored. Default 21600 (6 hours).
	//
	// +optional
	// +kubebuilder:default=21600
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=604800
	DeadlineSeconds *int32 `json:"deadlineSeconds,omitempty"`

	// MaxAgeSeconds is the maximum age of the snapshot, in seconds. The shards stay empty
	// when the snapshot is older. Default: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`

	// MaxTTLSeconds limits how long a restored item lives from its restore on, in seconds.
	// Items that expire earlier still do. Default: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxTTLSeconds *int32 `json:"maxTTLSeconds,omitempty"`
}

// DeletionPolicy is what happens when a Memcached is deleted.
//
// +kubebuilder:validation:Enum=Delete;Backup
type DeletionPolicy string

// The deletion policies.
const (
	DeletionDelete DeletionPolicy = "Delete"
	DeletionBackup DeletionPolicy = "Backup"
)

// FinalizerFinalBackup keeps a Memcached until its final backup has finished.
const FinalizerFinalBackup = "cache.memcached-operator.io/final-backup"

// Refill configures how a lost shard is filled from a backup.
//
// +kubebuilder:validation:XValidation:rule="has(self.mode) || !has(self.maxAgeSeconds) && !has(self.maxTTLSeconds)",message="refill has no effect without a mode: set refill.mode to NewestBackup"
type Refill struct {
	// Mode NewestBackup restores the newest complete MemcachedBackup of this Memcached. Default Disabled.
	//
	// +optional
	Mode RefillMode `json:"mode,omitempty"`

	// MaxAgeSeconds is the maximum age of the backup, in seconds. Default 86400 (24 hours).
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`

	// MaxTTLSeconds limits how long a restored item lives from its restore on, in seconds.
	// Items that expire earlier still do. Default: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxTTLSeconds *int32 `json:"maxTTLSeconds,omitempty"`
}

// IsEnabled reports whether a lost shard is filled.
func (r Refill) IsEnabled() bool { return r.Mode == RefillNewestBackup }

// RefillMode is what a lost shard is filled from.
//
// +kubebuilder:validation:Enum=NewestBackup;Disabled
type RefillMode string

// The modes of the refill.
const (
	RefillNewestBackup RefillMode = "NewestBackup"
	RefillDisabled     RefillMode = "Disabled"
)

// MonitoringSpec configures what Prometheus reads of the shards.
type MonitoringSpec struct {
	// Mode Prometheus makes the shards targets of the PodMonitor that the operator creates in this
	// namespace, together with a PrometheusRule. The operator deletes both if all Memcacheds of the
	// namespace have Disabled, with which the network policy closes the port of the metrics to everyone
	// but networkPolicy.allowedScrapers. Default Prometheus. Changing it restarts nothing.
	//
	// +optional
	// +kubebuilder:default=Prometheus
	Mode MonitoringMode `json:"mode,omitempty"`

	// Details are further metrics that Prometheus reads: Slabs are those of each slab class, about 40
	// more series for each class that a shard uses. Default: none. Changing them applies from the next
	// scrape on and restarts nothing.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Details []MonitoringDetail `json:"details,omitempty"`
}

// IsEnabled reports whether the shards are targets of the PodMonitor.
func (m MonitoringSpec) IsEnabled() bool { return m.Mode != MonitoringDisabled }

// MonitoringMode is what reads the metrics.
//
// +kubebuilder:validation:Enum=Prometheus;Disabled
type MonitoringMode string

// The modes of monitoring.
const (
	MonitoringPrometheus MonitoringMode = "Prometheus"
	MonitoringDisabled   MonitoringMode = "Disabled"
)

// MonitoringDetail is a group of metrics that isn't read by default.
//
// +kubebuilder:validation:Enum=Slabs
type MonitoringDetail string

// MonitoringSlabs are the metrics of each slab class.
const MonitoringSlabs MonitoringDetail = "Slabs"

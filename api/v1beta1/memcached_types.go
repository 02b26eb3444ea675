package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedSpec is the desired state of a cache.
//
// The API server rejects values that are invalid by themselves. Problems that depend on
// more than this object, such as an image that can't be pulled, appear in the conditions.
//
// +kubebuilder:validation:XValidation:rule="quantity(string(self.memory)).compareTo(quantity('64Mi')) >= 0",message="memory must be at least 64Mi: a smaller shard would use more memory for itself than for items"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.memory)).compareTo(quantity('1Ti')) <= 0",message="memory must be at most 1Ti per shard; use more shards"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.maxItemSize)).compareTo(quantity('512Ki')) >= 0 && double(int(quantity(string(self.maxItemSize)).asApproximateFloat() / 524288.0)) * 524288.0 == quantity(string(self.maxItemSize)).asApproximateFloat()",message="maxItemSize must be a multiple of 512Ki, memcached's largest chunk"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.maxItemSize)).compareTo(quantity('1Gi')) <= 0",message="maxItemSize must be at most 1Gi"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.maxItemSize)).asApproximateFloat() * 2.0 <= quantity(string(self.memory)).asApproximateFloat()",message="maxItemSize must be at most half of memory: memcached does not start otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits) || quantity(string(self.resources.limits['memory'])).asApproximateFloat() >= quantity(string(self.memory)).asApproximateFloat() * 1.1 + 83886080.0 + 8192.0 * double(self.maxConnections)",message="resources.limits.memory is too small for the cache: it must be at least memory * 1.10 + 80Mi + 8Ki * maxConnections, or the kernel kills memcached when the cache fills"
// +kubebuilder:validation:XValidation:rule="self.deletionPolicy != 'Backup' || has(self.finalBackup)",message="deletionPolicy Backup requires finalBackup: set finalBackup.store to where the backup goes"
type MemcachedSpec struct {
	// Size is the number of shards. Each shard is one memcached server with its own
	// stable address. 0 deletes all shards and keeps the Memcached. Default 1.
	// Changing it adds or removes the shards with the highest ordinals and restarts no other
	// shard. The clients then look for some keys on other shards: about 1 in size keys with
	// Ketama, Jump and Rendezvous, nearly all keys with Modulo. For more shards,
	// create several Memcacheds and give clients the addresses of all their shards.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	Size *int32 `json:"size,omitempty"`

	// Version of memcached, such as 1.6.45. Default: the operator's default version, which
	// can change when the operator is upgraded; set it to pin the version. Changing it
	// recreates each shard's container in its pod and keeps the items within a release
	// series such as 1.6.x. An update to another release series replaces the pods, as handover
	// describes, and requires updateStrategy.crossSeriesUpgrade.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[.][0-9]+[.][0-9]+$')",message="version must be three numbers such as 1.6.45; put an image tag of another form into image"
	Version string `json:"version,omitempty"`

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

	// Memory is how much memory each shard has for items, such as 4Gi: it stores as many as a
	// memcached whose -m is the same. It is rounded down to whole mebibytes. The operator adds to
	// it what memcached needs for its chunk sizes, and the container's limit is higher: see
	// resources. Default and minimum 64Mi. Changing it replaces each shard's pod by one that receives
	// its items, the most recently used ones if they don't all fit, or that starts empty if
	// handover.mode is Disabled.
	//
	// +optional
	// +kubebuilder:default="64Mi"
	Memory *resource.Quantity `json:"memory,omitempty"`

	// MaxConnections is how many connections a shard accepts at once (memcached's -c);
	// memcached uses some of them itself. Default 1024. Changing it restarts memcached and
	// keeps the items. It changes the default of resources too: where Kubernetes can't resize
	// a running pod, the pod is replaced, as handover describes.
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
	// pod by one that receives its items, except for those that are too large for it, or that starts
	// empty if handover.mode is Disabled.
	//
	// +optional
	// +kubebuilder:default="1Mi"
	MaxItemSize *resource.Quantity `json:"maxItemSize,omitempty"`

	// ExtraArgs are additional arguments for memcached, one word per list item, such as
	// "-v", or "-o" followed by "hash_algorithm=murmur3". Options that the operator sets
	// (memory, connections, threads, item size, addresses, the restartable cache) are
	// rejected. Default: none. Changing them restarts memcached and keeps the items, except for
	// -f, -n, -C and the slab sizes of -o: memcached can't reload its items with those, and each
	// shard's pod is replaced, as handover describes. With -C, shards can't hand over their items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self[0].startsWith('-')",message="extraArgs must begin with an option such as -v, not with a value"
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.matches('^[!-~]+$'))",message="each extraArgs item must be one word of printable characters without spaces: put an option's value into the next item"
	// +kubebuilder:validation:XValidation:rule="!self.exists(a, a.startsWith('-') && !a.matches('^-(v{1,3}|[CLMFXWkr]|[fnRbDo].*)$') && !a.matches('^--(verbose|disable-cas|enable-largepages|disable-evictions|disable-flush-all|disable-dumping|disable-watch|lock-memory|enable-coredumps|slab-growth-factor|slab-min-size|max-reqs-per-event|listen-backlog|extended)(=.+)?$'))",message="extraArgs contains an option that is unknown or that the operator sets: use spec.memory, maxConnections, threads and maxItemSize; the operator manages ports, addresses, protocol, user, daemon mode, the restartable cache, TLS and authentication; write other options in full, one per word"
	// +kubebuilder:validation:XValidation:rule="!self.exists(a, a.contains('ext_') || a.contains('proxy_'))",message="extraArgs must not enable external storage or the proxy: neither keeps its items over a restart"
	ExtraArgs []string `json:"extraArgs,omitempty"`

	// Resources of the memcached container. Default: a memory limit and request of memory *
	// 1.10 + 80Mi + 8Ki * maxConnections, a CPU request of 100m, and no CPU limit, which would
	// throttle a shard under load. Changing CPU and memory resizes the running pods and nothing
	// restarts. Kubernetes before 1.33 can't resize pods, and no version can remove an amount
	// or change another resource: the pods are then replaced, as handover describes.
	//
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`

	// Scheduling selects nodes for the shards' pods. Changing it replaces each shard's pod, as
	// handover describes, since a pod can't move to another node.
	//
	// +optional
	Scheduling Scheduling `json:"scheduling,omitzero"`

	// PodMetadata adds labels and annotations to the shards' pods. Default: none. Changing it
	// updates the running pods; nothing restarts.
	//
	// +optional
	PodMetadata PodMetadata `json:"podMetadata,omitzero"`

	// PodSecurity is what the shards' pods run as. With every value, they comply with the restricted
	// level of Pod Security. Changing it replaces each shard's pod, as handover describes.
	//
	// +optional
	PodSecurity PodSecurity `json:"podSecurity,omitzero"`

	// NetworkPolicy configures which clients can connect to the shards, where the network plugin
	// enforces NetworkPolicies. Default: the pods of this namespace. Changing it restarts nothing;
	// it can close connections of clients that it no longer admits.
	//
	// +optional
	NetworkPolicy NetworkPolicy `json:"networkPolicy,omitzero"`

	// TLS encrypts the connections of clients with the certificate of a Secret. Default: connections
	// are not encrypted. Changing it restarts memcached and keeps the items. It raises the default of
	// resources to 32Ki for each of maxConnections, or 56Ki with mode Permissive: where Kubernetes can't
	// resize a running pod, and for another secretName, the pod is replaced, as handover describes. A
	// Secret that changes restarts nothing: memcached reloads its certificate.
	//
	// +optional
	TLS *TLS `json:"tls,omitempty"`

	// Auth requires that clients log in with a user and a password of a Secret. Default: every client
	// that can connect can use the shards. Changing it restarts memcached and keeps the items; for
	// another secretName, the pod is replaced, as handover describes. A Secret that changes restarts
	// nothing: memcached reads its users again.
	//
	// +optional
	Auth *Auth `json:"auth,omitempty"`

	// Discovery configures an endpoint from which clients with auto discovery read the addresses of
	// the shards, as from Amazon ElastiCache. Default: no endpoint. Changing it restarts nothing.
	//
	// +optional
	Discovery Discovery `json:"discovery,omitzero"`

	// Binding creates a Secret with what a workload needs to connect, for the Service Binding
	// Specification. Default: no Secret. Changing it restarts nothing.
	//
	// +optional
	Binding Binding `json:"binding,omitzero"`

	// Service configures the Services of the shards: their labels and annotations, such as those that
	// a service mesh, DNS or cloud controller reads, and whether clients outside the cluster reach the
	// shards. Default: no labels and annotations, and clients inside the cluster only. Changing it
	// changes no address inside the cluster; nothing restarts.
	//
	// +optional
	Service Service `json:"service,omitzero"`

	// Monitoring configures what Prometheus reads of the shards, where the cluster has the CRDs of
	// prometheus-operator. Changing it restarts nothing.
	//
	// +optional
	Monitoring Monitoring `json:"monitoring,omitzero"`

	// Handover configures what happens to the items of a shard whose pod is replaced: because its
	// node is drained, the pod is evicted or deleted, or a change of the spec requires another pod.
	//
	// +optional
	Handover Handover `json:"handover,omitzero"`

	// UpdateStrategy configures how a change of the spec rolls out: one shard at a time,
	// with its items wherever memcached can keep them. Changing it applies from the next
	// shard on and restarts nothing.
	//
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// Hashing describes how the clients choose the shard of a key. The operator uses it only
	// to restore a snapshot into another number of shards; without it such a restore fails.
	// Changing it applies from the next restore on and restarts nothing.
	//
	// +optional
	Hashing *Hashing `json:"hashing,omitempty"`

	// Bootstrap fills the shards of a new Memcached from a snapshot while they serve. Until
	// that is done, the condition Ready is False with reason Bootstrapping. Default: the shards
	// start empty. Changing it has no effect once there are shards, also on those that are
	// added later.
	//
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`

	// FinalBackup configures the backup that the operator takes when the Memcached is deleted
	// and deletionPolicy is Backup, which requires it. It doesn't affect other backups.
	// Changing it restarts nothing.
	//
	// +optional
	FinalBackup *FinalBackup `json:"finalBackup,omitempty"`

	// DeletionPolicy is what happens when the Memcached is deleted: Delete deletes the shards
	// immediately. Backup takes a backup as spec.finalBackup configures it, and deletes the
	// shards after that, or after spec.finalBackup.deadlineSeconds. Default Delete. Changing it
	// restarts nothing and applies immediately, also while the Memcached is being deleted.
	//
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Refill restores the items of a shard that was lost unexpectedly, for example with its
	// node, from the newest MemcachedBackup of this Memcached, while the shard serves.
	// Default: the shard stays empty. Changing it applies to shards that are lost later.
	//
	// +optional
	Refill *Refill `json:"refill,omitempty"`

	// Paused stops the operator from changing anything that belongs to this Memcached. The
	// shards keep serving and the operator keeps updating the status. Default false. While it
	// is true, a pod that is deleted is still recreated by its ReplicaSet.
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

// Scheduling selects nodes for the shards' pods.
type Scheduling struct {
	// NodeSelector selects the nodes that shards may run on by their labels, such as
	// disktype: ssd. Default: all nodes.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations allow shards to run on tainted nodes. Default: those that Kubernetes adds to
	// every pod.
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
	// describes.
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

// PodMetadata adds labels and annotations to the shards' pods.
type PodMetadata struct {
	// Labels to add to the shards' pods, such as team: search. At most 32.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="podMetadata.labels must have keys of at most 317 and values of at most 63 characters"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('app.kubernetes.io/') || k.startsWith('cache.memcached-operator.io/'))",message="podMetadata.labels must not contain labels of app.kubernetes.io/ or cache.memcached-operator.io/: the operator manages them"
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations to add to the shards' pods, such as example.com/owner: search. At most 32 with
	// 8192 characters in total, since each shard has several copies of them.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(self[k])).sum() <= 8192",message="podMetadata.annotations must have at most 8192 characters in total: each shard has several copies of them"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('cache.memcached-operator.io/'))",message="podMetadata.annotations must not contain annotations of cache.memcached-operator.io/: the operator manages them"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodSecurity is what the shards' pods run as.
type PodSecurity struct {
	// ServiceAccountName is the service account of the shards' pods, such as one with image pull Secrets or
	// an identity in a service mesh. The pods get no token of it. Default: default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

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
	// +kubebuilder:validation:XValidation:rule="!has(self.user) && !has(self.role) && (!has(self.type) || self.type in ['container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t'])",message="podSecurity.seLinuxOptions can have a level, and a type that Pod Security allows: container_t, container_init_t, container_kvm_t or container_engine_t"
	SELinuxOptions *corev1.SELinuxOptions `json:"seLinuxOptions,omitempty"`

	// SeccompProfile of the containers. Default: type RuntimeDefault. Unconfined is rejected.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.type == (has(self.localhostProfile) ? 'Localhost' : 'RuntimeDefault')",message="podSecurity.seccompProfile must have type RuntimeDefault, or type Localhost and a localhostProfile"
	SeccompProfile *corev1.SeccompProfile `json:"seccompProfile,omitempty"`

	// AppArmorProfile of the containers. Default: the container runtime's profile, where nodes support
	// AppArmor. Unconfined is rejected.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.type == (has(self.localhostProfile) ? 'Localhost' : 'RuntimeDefault')",message="podSecurity.appArmorProfile must have type RuntimeDefault, or type Localhost and a localhostProfile"
	AppArmorProfile *corev1.AppArmorProfile `json:"appArmorProfile,omitempty"`
}

// NetworkPolicy configures which clients can connect to the shards.
//
// +kubebuilder:validation:XValidation:rule="!has(self.allowedClients) || self.mode == 'Restricted'",message="networkPolicy.allowedClients requires mode Restricted: remove allowedClients, or set mode to Restricted"
type NetworkPolicy struct {
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
	// (namespaceSelector, with or without podSelector), or addresses (ipBlock). Pods of backups and
	// restores are always admitted. Default: all pods of this namespace, which a list has to name
	// again with "podSelector: {}". Changing them restarts nothing.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, has(c.ipBlock) != (has(c.podSelector) || has(c.namespaceSelector)))",message="each of networkPolicy.allowedClients must be either an ipBlock, or a podSelector, a namespaceSelector or both"
	AllowedClients []networkingv1.NetworkPolicyPeer `json:"allowedClients,omitempty"`
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

// TLS encrypts the connections of clients.
type TLS struct {
	// Mode is which connections port 11211 accepts: Required accepts TLS only. Permissive accepts
	// both TLS and plain connections while you migrate the clients; it costs each request about a tenth
	// of a millisecond, since the agent forwards the connections. Default Required. Changing it
	// restarts memcached and keeps the items.
	//
	// +optional
	// +kubebuilder:default=Required
	Mode TLSMode `json:"mode,omitempty"`

	// SecretName is the name of a Secret in this namespace as cert-manager writes it: tls.crt is the
	// certificate of all shards with its chain, tls.key its key, and ca.crt the CA that signed it and,
	// with clientCertificates, those of the clients. The certificate must be valid for the host names of
	// status.servers, such as *.default.svc. Default: the name of the Memcached with -tls appended.
	// Changing it replaces each shard's pod, as handover describes; changing the Secret itself doesn't.
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
	// +kubebuilder:default=None
	ClientCertificates ClientCertificates `json:"clientCertificates,omitempty"`

	// MinVersion is the oldest version of TLS that memcached accepts. Default 1.2. Changing it
	// restarts memcached and keeps the items.
	//
	// +optional
	// +kubebuilder:default="1.2"
	MinVersion TLSVersion `json:"minVersion,omitempty"`
}

// Auth requires that clients log in.
type Auth struct {
	// SecretName is the name of a Secret in this namespace with the users: each entry is the name of
	// a user, of the characters a-z, 0-9, '.', '_' and '-', and its value the password, without spaces. At
	// most 7. Default: the name of the Memcached with -auth appended. Changing it replaces each shard's
	// pod, as handover describes; changing the Secret itself doesn't.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="auth.secretName must be the name of a Secret, such as cache-auth"
	SecretName string `json:"secretName,omitempty"`
}

// TLSMode is which connections a shard accepts.
//
// +kubebuilder:validation:Enum=Required;Permissive
type TLSMode string

// The modes of TLS.
const (
	TLSRequired   TLSMode = "Required"
	TLSPermissive TLSMode = "Permissive"
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
// +kubebuilder:validation:Enum="1.2";"1.3"
type TLSVersion string

// The versions of TLS.
const (
	TLS12 TLSVersion = "1.2"
	TLS13 TLSVersion = "1.3"
)

// Discovery configures an endpoint from which clients read the addresses of the shards.
type Discovery struct {
	// Enabled is whether the shards' pods serve the endpoint at port 11211 of the Service that has the
	// name of the Memcached with -discovery appended. While it is true, each shard stores the addresses
	// as an item, too, and the operator deletes a shard that scaling in removes 90 seconds after it has
	// removed its address. Default false. Changing it restarts nothing.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// Binding creates a Secret with what a workload needs to connect.
type Binding struct {
	// Enabled is whether the operator creates a Secret that has the name of the Memcached with -binding
	// appended: with the addresses of the shards, and a user with a random password that may log in, also to
	// shards without auth. Setting it to false keeps the Secret, since the operator can't delete Secrets:
	// delete it to revoke the login. Default false. Changing it restarts nothing.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// Service configures the Services of the shards.
type Service struct {
	// Type is ClusterIP if clients connect from inside the cluster only. With LoadBalancer, each shard
	// also has a Service of type LoadBalancer, with memcached's port 11211 only, that has the name of the
	// shard with -ext appended; status.external has the addresses. Combine it with tls and auth, and
	// admit the clients with networkPolicy. Default ClusterIP. Changing it creates or deletes these
	// Services; the shards keep their addresses inside the cluster and their items, and nothing restarts.
	//
	// +optional
	// +kubebuilder:default=ClusterIP
	Type ServiceType `json:"type,omitempty"`

	// LoadBalancerSourceRanges are the addresses of the clients that the load balancers admit, such as
	// 192.0.2.0/24, if the controller of your cloud supports it. They have no effect with type ClusterIP.
	// Default: all addresses. Changing them restarts nothing.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Pattern=`^[0-9a-fA-F:.]+/[0-9]{1,3}$`
	// +kubebuilder:validation:items:MaxLength=43
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`

	// Labels to add to the Services, such as team: search. At most 32.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="service.labels must have keys of at most 317 and values of at most 63 characters"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('app.kubernetes.io/') || k.startsWith('cache.memcached-operator.io/'))",message="service.labels must not contain labels of app.kubernetes.io/ or cache.memcached-operator.io/: the operator manages them"
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations to add to the Services, such as example.com/owner: search. At most 32 with 8192
	// characters in total, since each shard has a copy of them.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(self[k])).sum() <= 8192",message="service.annotations must have at most 8192 characters in total: each shard has a copy of them"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('cache.memcached-operator.io/'))",message="service.annotations must not contain annotations of cache.memcached-operator.io/: the operator manages them"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ServiceType is from where clients reach the shards.
//
// +kubebuilder:validation:Enum=ClusterIP;LoadBalancer
type ServiceType string

// The types of Services.
const (
	ServiceClusterIP    ServiceType = "ClusterIP"
	ServiceLoadBalancer ServiceType = "LoadBalancer"
)

// Monitoring configures what Prometheus reads of the shards.
type Monitoring struct {
	// Enabled is whether the shards are targets of the PodMonitor that the operator creates in this
	// namespace, together with a PrometheusRule. The operator deletes both if it is false for all
	// Memcacheds of the namespace. If it is false, the network policy of the operator closes the port
	// of the metrics to everyone but the peers in from. Default true. Changing it restarts nothing.
	//
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// Slabs is whether Prometheus also reads the metrics of each slab class: about 40 more series
	// for each class that a shard uses. Default false. Changing it applies from the next scrape on
	// and restarts nothing.
	//
	// +optional
	Slabs bool `json:"slabs,omitempty"`

	// From are the peers that can connect to the port of the metrics, 9150, as in the field from of a
	// NetworkPolicy, where the network plugin enforces NetworkPolicies. It has no effect if
	// networkPolicy.mode is Disabled. Default: if enabled is true, the pods of this namespace and
	// those of the namespaces in the operator's setting MONITORING_NAMESPACES. A list replaces the
	// default. Changing it restarts nothing.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, has(c.ipBlock) != (has(c.podSelector) || has(c.namespaceSelector)))",message="each of monitoring.from must be either an ipBlock, or a podSelector, a namespaceSelector or both"
	From []networkingv1.NetworkPolicyPeer `json:"from,omitempty"`
}

// Handover configures what happens to the items of a shard whose pod is replaced.
type Handover struct {
	// Mode is what the replacement of a pod starts with. Strict copies the items of the pod that is
	// being deleted, which serves in the meantime, and then moves the clients: no client reads an
	// older value than the one stored last, and the shard is unavailable for about a second. A pod
	// needs the time in docs/sizing.md to be deleted. The replacement starts empty if the pod fails
	// instead of being deleted, if it isn't given that time, or if memory or extraArgs don't allow
	// it; the shard's event has the reason. With Disabled, the replacement always starts empty.
	// Default Strict. Changing it restarts nothing, and applies to pods that are created later: a
	// pod hands over its items only if both it and its replacement were created with Strict.
	//
	// +optional
	// +kubebuilder:default=Strict
	Mode HandoverMode `json:"mode,omitempty"`
}

// HandoverMode is what the replacement of a pod starts with.
//
// +kubebuilder:validation:Enum=Strict;Available;Disabled
type HandoverMode string

// The modes of the handover. The CRD describes Strict and Disabled only: OLM v1 rejects an upgrade to a
// CRD with another description of a field.
const (
	HandoverStrict HandoverMode = "Strict"
	// HandoverAvailable: the replacement serves new connections while the first pod still serves those
	// that are open, for at least 5 seconds. The shard is available throughout, and in this time a client
	// can read an older value than the one stored last through another connection. Items that change in
	// this time are lost.
	HandoverAvailable HandoverMode = "Available"
	HandoverDisabled  HandoverMode = "Disabled"
)

// UpdateStrategy configures how a change of the spec rolls out.
type UpdateStrategy struct {
	// Type is how a change is applied that would restart memcached, such as another version. InPlace
	// restarts memcached in its pod: it keeps its items, and doesn't answer while it starts. Handover
	// replaces the pod by one that receives its items, as handover.mode describes: each shard needs
	// room for a second pod during its update. A shard whose pod can't hand over its items, such as
	// with -C, is updated in place. No shard is updated while handover.mode is Disabled. Default
	// InPlace. Changing it restarts nothing.
	//
	// +optional
	// +kubebuilder:default=InPlace
	Type UpdateType `json:"type,omitempty"`

	// MinIntervalSeconds is the minimum time between the updates of two shards, in seconds.
	// Default 0.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	MinIntervalSeconds *int32 `json:"minIntervalSeconds,omitempty"`

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
	HitRatioGate *HitRatioGate `json:"hitRatioGate,omitempty"`
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
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start"`

	// DurationSeconds is how long the window is open, in seconds, such as 7200 for two hours.
	// The window may extend into the next day.
	//
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
type HitRatioGate struct {
	// Percent of the previous hit ratio that the shard has to reach again. Default 90.
	//
	// +optional
	// +kubebuilder:default=90
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`

	// MinRequests is the minimum number of get requests that a hit ratio is computed from. The
	// gate ignores a shard that had fewer in the minute before its update. Default 1000.
	//
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	MinRequests *int32 `json:"minRequests,omitempty"`

	// TimeoutSeconds is how long the operator waits for the hit ratio, in seconds. Default 600.
	//
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// OnTimeout is what happens after that: Stop keeps waiting and sets Degraded, Continue
	// updates the next shard. Default Stop.
	//
	// +optional
	// +kubebuilder:default=Stop
	OnTimeout TimeoutAction `json:"onTimeout,omitempty"`
}

// TimeoutAction is what happens when a hit ratio does not recover in time.
//
// +kubebuilder:validation:Enum=Stop;Continue
type TimeoutAction string

// The actions after a timeout.
const (
	TimeoutStop     TimeoutAction = "Stop"
	TimeoutContinue TimeoutAction = "Continue"
)

// Hashing describes how the clients choose the shard of a key.
type Hashing struct {
	// Algorithm that the clients use: Ketama as in libmemcached, Jump as in the clients of
	// Grafana's dskit, Rendezvous as in pymemcache's HashClient, or Modulo (CRC-32) as in
	// gomemcache.
	Algorithm HashAlgorithm `json:"algorithm"`

	// ServerNameTemplate is how the clients write a server's name, which Ketama and
	// Rendezvous hash. {shard} is replaced by the shard's name and {namespace} by the
	// namespace. Default {shard}.{namespace}.svc:11211, the form in status.servers.
	//
	// +optional
	// +kubebuilder:default="{shard}.{namespace}.svc:11211"
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

// FinalBackup configures the backup that is taken before a Memcached is deleted.
type FinalBackup struct {
	// Store that the snapshot is written to.
	Store SnapshotStore `json:"store"`

	// RateLimit limits the load that the backup puts on each shard. Default: 20,000 items and
	// 32 MiB per second.
	//
	// +optional
	// +kubebuilder:default={}
	RateLimit *RateLimit `json:"rateLimit,omitempty"`

	// DeadlineSeconds is how long the deletion waits for the backup, in seconds; after that
	// the Memcached is deleted without it. Default 1800.
	//
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	DeadlineSeconds *int32 `json:"deadlineSeconds,omitempty"`
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
type Refill struct {
	// MaxAgeSeconds is the maximum age of the backup, in seconds. Default 86400 (24 hours).
	//
	// +optional
	// +kubebuilder:default=86400
	// +kubebuilder:validation:Minimum=1
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`

	// MaxTTLSeconds limits how long a restored item lives from its restore on, in seconds.
	// Items that expire earlier still do. Default: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxTTLSeconds *int32 `json:"maxTTLSeconds,omitempty"`
}

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
	// absent if spec.image or spec.version determine the image completely.
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

	// External is where clients outside the cluster connect. It is absent unless spec.service.type is
	// LoadBalancer.
	//
	// +optional
	External *ExternalStatus `json:"external,omitempty"`

	// TLS is what the agents report of the certificate of spec.tls. It is absent without spec.tls.
	//
	// +optional
	TLS *TLSStatus `json:"tls,omitempty"`

	// Discovery is what clients read from the endpoint of spec.discovery. It is absent while that
	// is disabled.
	//
	// +optional
	Discovery *DiscoveryStatus `json:"discovery,omitempty"`

	// Binding is the Secret of spec.binding; nil without one.
	//
	// +optional
	Binding *BindingStatus `json:"binding,omitempty"`

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
	// spec.bootstrap was not set at creation.
	//
	// +optional
	Bootstrap *BootstrapStatus `json:"bootstrap,omitempty"`
}

// BootstrapStatus is the state of filling the shards of a new Memcached.
type BootstrapStatus struct {
	// RestoreName is the name of the MemcachedRestore that fills the shards.
	RestoreName string `json:"restoreName"`

	// Phase is Running from the Memcached's creation until the restore has finished, then
	// Complete when it filled the shards or Failed when it didn't.
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

// DiscoveryStatus is what clients read from the endpoint of spec.discovery.
type DiscoveryStatus struct {
	// Endpoint is the address of the endpoint, as host:port.
	Endpoint string `json:"endpoint"`

	// Version of the list of shards. It grows with each change, also after the Memcached was
	// deleted and created again.
	Version int64 `json:"version"`

	// Size is the number of shards in the list: a new shard is added when it is ready, and one that
	// scaling in removes is removed from the list before it is deleted.
	Size int32 `json:"size"`

	// LastChangeTime is when the list got this version.
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

	// Message says why the Secret doesn't list the shards, and what to do; empty if it does.
	//
	// +optional
	Message string `json:"message,omitempty"`
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
	// unless spec.handover.mode is Disabled.
	UpdateReplace UpdateMethod = "Replace"
)

// UpdateStatus is the progress of a change of the spec.
type UpdateStatus struct {
	// Revision is a hash of the pod configuration that the spec results in.
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

// UpdateCost is what an update cost clients.
type UpdateCost struct {
	// Revision is a hash of the pod configuration that the update leads to.
	Revision string `json:"revision"`

	// StartTime is when the first shard was changed.
	StartTime metav1.Time `json:"startTime"`

	// CompletionTime is when all shards matched the spec. It is absent while the update goes on, and
	// after another change took its place.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Shards is the number of shards that started again, in the same pod or in another one.
	Shards int32 `json:"shards"`

	// Items that these shards contained right after their start.
	Items int64 `json:"items"`

	// ItemsBefore is how many items they contained before it.
	ItemsBefore int64 `json:"itemsBefore"`

	// UnavailableMilliseconds is for how long no memcached responded, as the sum of these shards.
	// A pod that is replaced without a handover adds nothing, since it serves until the other one
	// is ready.
	UnavailableMilliseconds int64 `json:"unavailableMilliseconds"`

	// MaxUnavailableMilliseconds is the same for the shard that was unavailable the longest.
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
	// MaxAgentVersion is the maximum size of an agent's version in a status, in bytes.
	MaxAgentVersion = 16
)

// ShardStatus is the state of one shard.
type ShardStatus struct {
	// Name of the shard, its ReplicaSet and its Service: <memcached>-<ordinal>.
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
// +kubebuilder:resource:shortName=memc,categories=memcached
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
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	//
	// +required
	Spec MemcachedSpec `json:"spec"`
	// Status is the observed state.
	//
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedList is a list of Memcached objects.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}

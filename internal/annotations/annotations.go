// Package annotations names the annotations and label values that the operator, its agents
// and its Jobs use among themselves. They are not part of the API.
package annotations

// Annotations of a shard's pod. The kubelet projects Arguments, Protection, Stop, Receive, Discovery and Scaling into the
// container, where the agent reads them.
const (
	// Arguments are memcached's arguments as a JSON array.
	Arguments = "cache.memcached-operator.io/arguments"
	// Protection is, as JSON, which protections of the cache the spec states, and their modes (ADR 25).
	Protection = "cache.memcached-operator.io/protection"
	// Stop announces that the next stop terminates the container and not the pod.
	Stop = "cache.memcached-operator.io/stop"
	// Receive is, as agent/wire.Request, whose items the pod receives: those of the shard's other pod, although that one isn't being
	// deleted, or has less time than its own grace period.
	Receive = "cache.memcached-operator.io/receive"
	// Discovery is the list of the shards as clients with auto discovery read it: a line with its
	// version, and one with the shards as host|ip|port.
	Discovery = "cache.memcached-operator.io/discovery"
	// Scaling is, as agent/wire.Scaling, which keys of other shards the pod gets while the number of shards changes.
	Scaling = "cache.memcached-operator.io/scaling"
	// Handover is the mode of the handover with which the pod was created.
	Handover = "cache.memcached-operator.io/handover"
	// Revision is the hash of the pod configuration that was applied last. It doesn't cover
	// what the operator itself adds, so that a new operator doesn't make shards outdated.
	Revision = "cache.memcached-operator.io/revision"
	// Spec is, as JSON, the part of the spec that Revision is the hash of.
	Spec = "cache.memcached-operator.io/spec"
)

// Annotations that record the progress of an update.
const (
	// Update is, as JSON, the record of a shard's last update: on its pod for an update in
	// place, on its ReplicaSet for a replacement.
	Update = "cache.memcached-operator.io/update"
	// Failed is, as JSON on a shard's ReplicaSet, which update failed on the shard and why.
	Failed = "cache.memcached-operator.io/failed"
	// CreationRetried is, on a ReplicaSet whose pod the API server rejects, when the operator changed it last, so that its
	// controller tries again.
	CreationRetried = "cache.memcached-operator.io/creation-retried"
)

// LoadBalancerClass of the Service of a load balancer is the class with which the operator created it: a policy of the cluster may replace
// that.
const LoadBalancerClass = "cache.memcached-operator.io/load-balancer-class"

// NodeLeaves is how a value of the annotation "move" begins that the operator sets because the pod's node is about to go.
// Maintenance windows and other delays don't apply to it.
const NodeLeaves = "node-leaves:"

const (
	// Refills of a MemcachedRestore is the UID of the pod that the operator refills with it.
	Refills = "cache.memcached-operator.io/refills"
	// Transfer of a MemcachedBackup or a MemcachedRestore is, as JSON, what the operator must remember of it. One that has
	// finished and is recreated with it doesn't run again.
	Transfer = "cache.memcached-operator.io/transfer"
	// TransferOf of a Job and its pod is the object that it works for, such as
	// MemcachedBackup/nightly. A label can't contain all names.
	TransferOf = "cache.memcached-operator.io/transfer-of"
)

// Listed is the label of the pods that stay while other shards leave: the ID of the scaling. The selector of a Service has no negation.
const Listed = "cache.memcached-operator.io/listed"

// Values of the label app.kubernetes.io/name on pods that no Service, budget or policy of a
// shard selects.
const (
	// PreflightName is that of pods that check an image on a node.
	PreflightName = "memcached-preflight"
	// SnapshotName is that of pods that copy items to a store and back.
	SnapshotName = "memcached-snapshot"
)

// OperatorPodLabels returns the labels of the operator's own pods, which NetworkPolicies admit.
func OperatorPodLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "memcached-operator", "control-plane": "controller-manager"}
}

// Package resources builds the Kubernetes objects of a Memcached. It is a pure function of the spec,
// the shards' pod revisions and the operator's options: it reads nothing.
//
// For a Memcached "cache" of size 3:
//
//	NetworkPolicy       cache                memcached's port is open to the clients of the spec, the agent's to operator and shards
//	Service             cache                headless: cache-0.cache.<namespace>.svc.<domain>
//	PodDisruptionBudget cache                evictions of one shard at a time
//	Service             cache-0 … cache-2    a shard's address, which outlives its pods
//	Service             cache-0-ext …        a shard's address outside the cluster, with access.external.mode LoadBalancer
//	ReplicaSet          cache-0 … cache-2    one replica; the template configures the next pod
//
// A ReplicaSet's template applies to pods that are created later and never to the running one
// (docs/adr/0001), so another template disturbs nothing.
package resources

// Package manifests turns a Memcached into the objects that Kubernetes runs: a
// pure function of the spec and of what the operator was started with. It reads
// nothing and knows nothing of what exists.
//
// For a Memcached "cache" of size 3:
//
//	NetworkPolicy       cache                memcached's port open, the agent's to operator and shards
//	Service             cache                headless: cache-0.cache.<namespace>.svc
//	PodDisruptionBudget cache                one shard out at a time
//	Service             cache-0 … cache-2    a shard's address, whichever pod holds it
//	ReplicaSet          cache-0 … cache-2    one replica; the template is what the next pod will be
//
// A ReplicaSet's template applies to pods made later and never touches the pod
// that runs (docs/adr/0001), so building another template harms nothing.
package manifests

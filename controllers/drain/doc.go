// Package drain moves shards off nodes that are about to go, before their pods are evicted:
//
//	nodes that are cordoned or have one of the taints   →   the annotation "move" of the pods of shards on them
//
// That annotation does the rest, as if a user had set it: the shard gets another pod on another node, which receives its
// items (controllers/memcached). It is removed when the node stays after all.
package drain

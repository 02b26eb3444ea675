// Package memcached keeps what runs as a Memcached asks for.
//
// A reconcile is four steps, each in the file of its name:
//
//	observe   all reads: objects from the cache, absent names from the API server,
//	          shards that have started anew from their agents   → observed
//	plan      pure: what to write, what to end, what keeps it from more → plan
//	apply     the writes, in the plan's order
//	status    pure: what to tell of it; one write, and events after it
//	gather    pure: how long small news wait for others to be written with
//
// How a change of the spec reaches shards that run is a part of the plan:
//
//	asked     what was asked of each shard, and which of its pods holds it
//	shards    what was seen of each shard, ready to be decided about
//	change    the class of each field, and what separates a pod from what is asked
//	proofs    images on nodes, before any shard is touched
//	rollout   pure: the next step for one shard, or the gate that holds it
//	steps     that step as writes
//	update    what the status tells of it
//
// Backups and restores are other controllers' work; these ask for it and wait:
//
//	bootstrap a new Memcached is filled before it serves
//	deletion  a last backup is taken before a Memcached goes
//	rewarm    a shard that was lost is filled again
//	runs      what is read of backups and restores, and how they are made
//
// Nothing is decided by but what stands in the API server, so the operator may be
// killed between any two writes. What is kept between reconciles saves work (memo), and
// the cache holds of each object what is read (cache).
//
// Rules: a failed read of the API ends the reconcile and leaves the status alone;
// a shard that cannot be asked is an observation, not an error; an object that
// belongs to somebody else is neither written nor ended; when nothing changed,
// nothing is written.
package memcached

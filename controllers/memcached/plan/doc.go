// Package plan decides what to do about an observation. Its functions are pure: they have no
// client and no clock.
//
//	plan         Make, which calls the planners, and its result, the Plan
//	actions      the writes that a planner wants
//
// The planners, in the order in which Make calls them:
//
//	finalbackup  the finalizer, and the backup before a Memcached is deleted
//	bootstrap    fills a new Memcached from a snapshot
//	refill       fills a shard that was lost
//	rollout      the next step for one shard, or a gate: what package rollout decides by
//	step         the step as writes (podpatch), and as desired states of the shards
//	scaling      which items move when the number of shards changes
//	discovery    the list of shards that clients with auto discovery read
//	binding      the Secret that workloads are bound to
//	resources    the objects that are missing or not up to date; scaling in
//	agents       when to query agents again
//
// No planner has a receiver, and none modifies the result of another one: it takes it as an
// argument.
package plan
